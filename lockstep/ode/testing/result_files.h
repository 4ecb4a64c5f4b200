// For tests of result files: a folder, a problem, and a solution of it made by hand, whose numbers say where they
// belong.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/testing/plain_function.h"

namespace lockstep::ode::testing {

inline constexpr std::size_t kComponents = 3;

// A folder of its own for each test, so that leftovers are seen.
class ResultFiles : public ::testing::Test {
 protected:
  ResultFiles()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("result_file_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~ResultFiles() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }

  std::filesystem::path folder_;
};

inline Problem growing_ensemble(std::size_t trajectories, std::size_t save_points) {
  Problem problem;
  problem.rhs = plain_function(kComponents, 1, [](double, auto u, auto p, auto du) {
    for (int i = 0; i < 3; ++i) du(i) = p(0) * u(i);
  });
  problem.initial_states.resize(trajectories * kComponents);
  std::iota(problem.initial_states.begin(), problem.initial_states.end(), 0.0);
  problem.parameters = {-1};
  problem.end_times = {1};
  for (std::size_t i = 0; i < save_points; ++i) {
    problem.save_times.push_back(static_cast<double>(i + 1) / static_cast<double>(save_points));
  }
  return problem;
}

inline ResultMetadata by_hand() {
  return {"A test", {"x", "y", "z"}, {"rate"}, {{"method", std::string("by hand")}, {"rtol", 1e-3}}};
}

// A number that says where it belongs.
inline double number(std::size_t trajectory, std::size_t time, std::size_t component) {
  return static_cast<double>(trajectory) + static_cast<double>(time) / 128 + static_cast<double>(component) / 4;
}

template <class T>
void fill(const SolutionBlock& block, std::size_t save_points) {
  for (std::size_t i = 0; i < block.count; ++i) {
    const std::size_t trajectory = block.first + i;
    T* state = static_cast<T*>(block.state) + i * save_points * kComponents;
    T* end_state = static_cast<T*>(block.end_state) + i * kComponents;
    for (std::size_t c = 0; c < kComponents; ++c) {
      for (std::size_t t = 0; t < save_points; ++t)
        state[t * kComponents + c] = static_cast<T>(number(trajectory, t, c));
      end_state[c] = static_cast<T>(number(trajectory, 100, c));
    }
    block.records[i] = {trajectory % 5 == 0 ? Status::not_finite : Status::success, static_cast<int>(trajectory), 2, 3,
                        static_cast<double>(trajectory) / 2};
  }
}

// Commits all trajectories in blocks of `block`, in an order shuffled by `seed`, from `threads` threads.
template <class T>
void write_all(ResultWriter& writer, const Problem& problem, std::size_t block, unsigned seed, int threads) {
  std::vector<std::size_t> firsts;
  for (std::size_t first = 0; first < problem.trajectories(); first += block) firsts.push_back(first);
  std::shuffle(firsts.begin(), firsts.end(), std::mt19937(seed));
  std::vector<std::thread> pool;
  for (int thread = 0; thread < threads; ++thread) {
    pool.emplace_back([&, thread] {
      for (std::size_t i = static_cast<std::size_t>(thread); i < firsts.size();
           i += static_cast<std::size_t>(threads)) {
        const SolutionBlock b = writer.acquire(firsts[i], std::min(block, problem.trajectories() - firsts[i]));
        fill<T>(b, problem.save_points());
        writer.commit(b);
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
}

// Commits rows [first, end) of the problem.
template <class T>
void write_rows(ResultWriter& writer, const Problem& problem, std::size_t first, std::size_t end) {
  const SolutionBlock block = writer.acquire(first, end - first);
  fill<T>(block, problem.save_points());
  writer.commit(block);
}

}  // namespace lockstep::ode::testing

// A solved ensemble, stored, and read back whole and in parts.
#include "lockstep/ode/read_solution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kTrajectories = 613;  // no multiple of a tile
constexpr std::size_t kPoints = 11;

Problem ensemble() {
  Problem problem;
  problem.rhs = system("lorenz");
  for (std::size_t i = 0; i < kTrajectories; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), {1 + 0.001 * static_cast<double>(i), 0, 20});
  }
  problem.parameters = {10, 28, 8.0 / 3};
  problem.end_times = {1};
  for (std::size_t i = 0; i < kPoints; ++i) problem.save_times.push_back(0.1 * static_cast<double>(i));
  problem.save_times.back() = 1;
  return problem;
}

// The file of one solve, and the same solve in memory.
class StoredSolution : public ::testing::Test {
 protected:
  StoredSolution()
      : path_(
            fs::path(::testing::TempDir()) /
            ("read_solution_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + ".h5")) {
    fs::remove(path_);
  }
  ~StoredSolution() override { fs::remove(path_); }

  void write(const Problem& problem, Precision precision) {
    options_.precision = precision;
    ResultWriter writer(path_, problem, precision, {"Lorenz", {"x", "y", "z"}, {"sigma", "rho", "beta"}, {}});
    solve(problem, options_, writer);
    writer.finish({});
  }
  std::string message(const Part& part) const {
    return message_of([&] { read_solution(path_, part); });
  }

  fs::path path_;
  Options options_;
};

template <class T>
void expect_same_bits(std::span<const T> a, std::span<const T> b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size_bytes()), 0);
}

TEST_F(StoredSolution, the_whole_file_is_the_solution_in_memory) {
  const Problem problem = ensemble();
  write(problem, Precision::f32);
  const Solution expected = solve(problem, options_);
  const Solution solution = read_solution(path_);
  ASSERT_EQ(solution.trajectories(), kTrajectories);
  ASSERT_EQ(solution.save_points(), kPoints);
  ASSERT_EQ(solution.components(), 3u);
  expect_same_bits(solution.states<float>(), expected.states<float>());
  expect_same_bits(solution.end_states<float>(), expected.end_states<float>());
  EXPECT_EQ(std::vector<double>(solution.times().begin(), solution.times().end()), problem.save_times);
  for (std::size_t i = 0; i < kTrajectories; ++i) {
    EXPECT_EQ(solution.record(i).status, expected.record(i).status);
    EXPECT_EQ(solution.record(i).accepted, expected.record(i).accepted);
    EXPECT_EQ(solution.record(i).rejected, expected.record(i).rejected);
    EXPECT_EQ(solution.record(i).evaluations, expected.record(i).evaluations);
    EXPECT_EQ(solution.record(i).end_time, expected.record(i).end_time);
  }
}

TEST_F(StoredSolution, a_part_is_the_same_numbers_in_the_order_asked_for) {
  write(ensemble(), Precision::f64);
  const Solution whole = read_solution(path_);
  const Solution part =
      read_solution(path_, {.trajectories = {7, 300, 3}, .times = {1, 8, 2}, .components = {"z", "x"}});
  ASSERT_EQ(part.trajectories(), 100u);
  ASSERT_EQ(part.save_points(), 4u);
  ASSERT_EQ(part.components(), 2u);
  EXPECT_THAT(part.times(), ElementsAre(whole.times()[1], whole.times()[3], whole.times()[5], whole.times()[7]));
  for (std::size_t i = 0; i < 100; ++i) {
    const std::size_t row = 7 + 3 * i;
    EXPECT_EQ(part.record(i).accepted, whole.record(row).accepted);
    EXPECT_EQ(part.end_state(i, 0), whole.end_state(row, 2));
    EXPECT_EQ(part.end_state(i, 1), whole.end_state(row, 0));
    for (std::size_t t = 0; t < 4; ++t) {
      EXPECT_EQ(part.state(i, t, 0), whole.state(row, 1 + 2 * t, 2));
      EXPECT_EQ(part.state(i, t, 1), whole.state(row, 1 + 2 * t, 0));
    }
  }
}

TEST_F(StoredSolution, pieces_put_together_are_the_whole) {
  write(ensemble(), Precision::f32);
  const ResultFile file(path_);
  const Solution whole = read_solution(file);
  std::vector<float> states;
  for (std::size_t first = 0; first < file.trajectories(); first += 100) {
    const Solution piece = read_solution(file, {.trajectories = {first, 100}});
    const auto numbers = piece.states<float>();
    states.insert(states.end(), numbers.begin(), numbers.end());
  }
  expect_same_bits(std::span<const float>(states), whole.states<float>());
}

TEST_F(StoredSolution, times_of_each_trajectory_come_along) {
  Problem problem = ensemble();
  problem.save_times.clear();
  for (std::size_t i = 0; i < kTrajectories; ++i) {
    for (const double part : {0.25, 0.5, 1.0}) problem.save_times.push_back(part / static_cast<double>(i + 1));
  }
  problem.save_times_per_trajectory = true;
  write(problem, Precision::f32);
  const Solution part = read_solution(path_, {.trajectories = {100, 10}, .times = {1}});
  EXPECT_TRUE(part.times_per_trajectory());
  EXPECT_EQ(part.save_points(), 2u);
  EXPECT_EQ(part.times()[0], 0.5 / 101);
  EXPECT_EQ(part.times()[19], 1.0 / 110);
}

TEST_F(StoredSolution, an_empty_part_is_empty_and_a_wrong_one_is_named) {
  write(ensemble(), Precision::f32);
  EXPECT_EQ(read_solution(path_, {.trajectories = {kTrajectories}}).trajectories(), 0u);
  EXPECT_EQ(read_solution(path_, {.times = {0, 0}}).save_points(), 0u);
  EXPECT_THAT(message({.trajectories = {kTrajectories + 1}}),
              HasSubstr("part.trajectories: found a first of 614, expected at most 613"));
  EXPECT_THAT(message({.times = {0, 5, 0}}), HasSubstr("part.times: found a stride of 0"));
  EXPECT_THAT(message({.components = {"w"}}), HasSubstr("part.components: found \"w\", expected one of x, y, z"));
}

}  // namespace
}  // namespace lockstep::ode

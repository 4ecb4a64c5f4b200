// Solves on a device that is the host, or on a card, and comparisons of every bit and count.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>

#include "lockstep/ode/cuda/engine.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/cuda/testing/host_runtime.h"

namespace lockstep::ode::cuda {

struct CountingSink : MemorySink {
  using MemorySink::MemorySink;
  void commit(const SolutionBlock& block) override { committed += block.count; }
  std::size_t committed = 0;
};

inline Solution solve_on(HostDevice& device, const Problem& problem, const Options& options,
                         std::size_t budget = std::size_t{1} << 28, Summary* summary = nullptr,
                         Runtime* card = nullptr) {
  Solution solution(options.precision, problem.trajectories(), problem.rhs->components(), problem.save_times,
                    problem.save_times_per_trajectory);
  CountingSink sink(solution);
  HostRuntime host(device);
  const DeviceTarget target{card != nullptr ? card : &host, 0, budget};
  const Summary result = options.precision == Precision::f32 ? advance<float>(problem, options, target, sink, {})
                                                             : advance<double>(problem, options, target, sink, {});
  EXPECT_EQ(sink.committed, problem.trajectories());
  if (summary != nullptr) *summary = result;
  return solution;
}

template <class T>
void expect_same_numbers(std::span<const T> a, std::span<const T> b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(T)), 0) << "number " << i << ": " << a[i] << " and " << b[i];
  }
}

inline void expect_same(const Solution& a, const Solution& b) {
  ASSERT_EQ(a.trajectories(), b.trajectories());
  for (std::size_t i = 0; i < a.trajectories(); ++i) {
    ASSERT_EQ(a.record(i).status, b.record(i).status) << i;
    ASSERT_EQ(a.record(i).accepted, b.record(i).accepted) << i;
    ASSERT_EQ(a.record(i).rejected, b.record(i).rejected) << i;
    ASSERT_EQ(a.record(i).evaluations, b.record(i).evaluations) << i;
    ASSERT_EQ(a.record(i).end_time, b.record(i).end_time) << i;
  }
  if (a.precision() == Precision::f32) {
    expect_same_numbers(a.states<float>(), b.states<float>());
    expect_same_numbers(a.end_states<float>(), b.end_states<float>());
  } else {
    expect_same_numbers(a.states<double>(), b.states<double>());
    expect_same_numbers(a.end_states<double>(), b.end_states<double>());
  }
}

// The machine's GPU where it was asked for, else null: the host.
inline Runtime* wanted_card() {
  const char* wanted = std::getenv("LOCKSTEP_TEST_DEVICE");
  if (wanted == nullptr || std::string_view(wanted) != "cuda") return nullptr;
  const LoadedRuntime& loaded = load_runtime();
  if (loaded.runtime == nullptr) throw std::runtime_error("LOCKSTEP_TEST_DEVICE=cuda: " + loaded.missing);
  return loaded.runtime;
}

}  // namespace lockstep::ode::cuda

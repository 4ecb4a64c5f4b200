// Solves whose kernel is compiled from a text: by it, by the CPU's engine and by the plain reference, on a device that
// is the host, where what the text compiles to stands in for it, or on a card.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>

#include "lockstep/ode/cuda/nvrtc.h"
#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/cuda/testing/kept_code.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode::cuda {

class OnEveryEngine : public ::testing::Test {
 protected:
  // All three on one problem; `Derivative` is what its text compiles to, whose method comes as `Scheme`.
  template <class T, class Derivative, class Scheme>
  void expect_same_everywhere(const Problem& problem, Options options) {
    SCOPED_TRACE(problem.rhs->description() + ", " + options.method + ", " + std::string(to_string(options.precision)) +
                 ", " + std::to_string(problem.trajectories()) + " trajectories");
    options.device = DeviceChoice::cpu();
    const Lowered<T> lowered = lower_problem<T>(problem, options);
    ASSERT_TRUE(lowered.source);
    kernel_ = lowered.kernel;
    Runtime* const card = wanted_card();
    if (card == nullptr) {
      kept_.keep(runtime_, *lowered.source, "code");
      device_.sources[lowered.kernel] = [](HostDevice& device, const void* launch) {
        run_body<KernelBody<T, Scheme, Derivative>>(device, "text", launch);
      };
    } else if (!load_nvrtc().missing.empty()) {
      GTEST_SKIP() << load_nvrtc().missing;
    }
    const Solution cpu = solve(problem, options);
    for (const TrajectoryRecord& record : cpu.records()) {
      ++ended_[record.status];
      rejected_ += record.rejected;
    }
    expect_same(cpu, solve_on(device_, problem, options, std::size_t{1} << 28, nullptr, card));
    expect_same(cpu, solve_reference(problem, options));
  }

  KeptCode kept_;
  HostDevice device_;
  HostRuntime runtime_{device_};
  std::string kernel_;           // the last one's name
  std::map<Status, int> ended_;  // trajectories of all solves, and the attempts that were rejected
  int rejected_ = 0;
};

}  // namespace lockstep::ode::cuda

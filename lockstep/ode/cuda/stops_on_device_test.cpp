// Steps that end at stops and states that change there at once, in the kernels' own source run by the host, against the
// CPU engine: the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/testing/impulses.h"
#include "lockstep/ode/cuda/testing/moved_jumps.h"
#include "lockstep/ode/cuda/testing/on_both.h"
#include "lockstep/ode/cuda/testing/threshold.h"

namespace lockstep::ode::cuda {
namespace {

using ::testing::HasSubstr;

// Spans start and end at stops, before and between them, some backwards.
TEST(DeviceKernels, end_steps_at_stops_as_the_cpu_engine_does) {
  const Problem problem = uneven(net(jumping_net(2, 9), {"net", true}), {0.5, 0.2}, {}, 23, 0.25);
  for (const std::string_view name : explicit_method_names()) {
    SCOPED_TRACE(name);
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      expect_same_on_both(problem, with_fixed_stops(set_for(name, precision)));
      if (!method(name).error.empty()) expect_same_on_both(problem, with_stops(set_for(name, precision)));
    }
  }
  for (const auto& with : {with_stops, with_fixed_stops}) {
    Options options = with(set_for("tsit5", Precision::f64));
    expect_same_on_both(lorenz(23), options);
    for (options.max_steps = 1; options.max_steps < 12; ++options.max_steps) expect_same_on_both(problem, options);
  }
}

// Each trajectory at its own, whatever the batches.
TEST(DeviceKernels, end_steps_at_stops_that_parameters_move) {
  const Problem problem = uneven(moved_jumps(2, 9), {0.5, 0.2}, {1}, 53, 0.25);
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    const Options adaptive = set_for("tsit5", precision);
    expect_same_on_both(problem, adaptive);
    expect_same_on_both(problem, fixed(adaptive, 0.01));
    expect_same_on_both(problem, with_stops(adaptive));
    Options passing = adaptive;
    passing.stop_at_knots = false;
    expect_same_on_both(problem, passing);
    passing = adaptive;
    passing.device = DeviceChoice::cpu();
    const Solution cpu = solve(problem, passing);
    HostDevice device;
    expect_same(cpu, solve_on(device, problem, adaptive, 40'000, nullptr, wanted_card()));
    if (wanted_card() == nullptr) {
      EXPECT_GT(device.batches.size(), 1u);
    }
    Problem shared = problem;
    shared.parameters = {1.02};
    expect_same_on_both(shared, adaptive);
  }
}

// Shared ones and each trajectory's own, in kernels that know the problem and those that read it, whatever the batches.
TEST(DeviceKernels, change_states_at_once_as_the_cpu_engine_does) {
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    const Problem problems[] = {
        uneven(system("lorenz"), {1, 2, 20}, {10, 28, 8.0 / 3}, 53, 0.2),
        uneven(net(mlp::random_mlp({2, 9, 2}, {ActivationKind::tanh}, 3)), {0.5, 0.2}, {}, 53, 0.2)};
    for (const Problem& problem : problems) {
      for (const std::string_view name : {"tsit5", "rk4", "dop853"}) {
        const Options options = set_for(name, precision);
        if (options.control != StepControl::fixed) {
          expect_same_on_both(with_impulses(problem), options);
          expect_same_on_both(with_own_impulses(problem), options);
        }
        expect_same_on_both(with_impulses(problem), fixed(options, 0.01));
        expect_same_on_both(with_own_impulses(problem), fixed(options, 0.01));
      }
    }
    Options options = set_for("tsit5", precision);
    for (options.max_steps = 1; options.max_steps < 12; ++options.max_steps)
      expect_same_on_both(with_own_impulses(problems[0]), options);
    options = set_for("tsit5", precision);
    HostDevice device;
    expect_same(solve(with_own_impulses(problems[1]), options),
                solve_on(device, with_own_impulses(problems[1]), options, 40'000, nullptr, wanted_card()));
    if (wanted_card() == nullptr) {
      EXPECT_GT(device.batches.size(), 1u);
    }
    Problem watched = with_own_impulses(problems[1]);
    watched.event = {threshold(2, 0, 0, 0.75), TerminalEvent::Direction::either};
    EXPECT_THAT(lockstep::message_of([&] { solve_on(device, watched, options); }),
                HasSubstr("problem.impulses: found impulses beside an event or a guard that stops"));
  }
}

TEST(TilesOnTheDevice, change_states_at_once_as_the_cpu_engine_does) {
  const Problem problem =
      uneven(net(mlp::random_mlp({3, 33, 3}, {ActivationKind::silu}, 3)), {0.5, 0.2, -0.4}, {}, 71, 0.2);
  for (const auto& with : {with_impulses, with_own_impulses}) {
    EXPECT_EQ(expect_same_on_both(with(problem), set_for("tsit5", Precision::f32)), "tiles_f32");
    expect_same_on_both(with(problem), fixed(set_for("rk4", Precision::f32), 0.01));
    expect_same_on_both(with(problem), set_for("dop853", Precision::f64));
  }
}

TEST(TilesOnTheDevice, end_steps_at_stops_that_parameters_move) {
  const Problem problem = uneven(moved_jumps(3, 33), {0.5, 0.2, -0.4}, {1}, 7, 0.25);
  EXPECT_EQ(expect_same_on_both(problem, set_for("tsit5", Precision::f32)), "tiles_f32");
  expect_same_on_both(problem, set_for("tsit5", Precision::f64));
}

TEST(TilesOnTheDevice, end_steps_at_stops_as_the_cpu_engine_does) {
  const Problem problem = uneven(net(jumping_net(3, 33), {"net", true}), {0.5, 0.2, -0.4}, {}, 7, 0.25);
  for (const auto& with : {with_stops, with_fixed_stops}) {
    EXPECT_EQ(expect_same_on_both(problem, with(set_for("tsit5", Precision::f32))), "tiles_f32");
    expect_same_on_both(problem, with(set_for("dop853", Precision::f64)));
  }
}

}  // namespace
}  // namespace lockstep::ode::cuda

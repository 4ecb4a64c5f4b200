// Solves whose steps meet the spacing of time: at large times, and where one of many that share their steps blows up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "lockstep/ode/methods.h"
#include "lockstep/ode/numerics.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/plain_function.h"

namespace lockstep::ode {
namespace {

using testing::plain_function;

// A mass on a spring, 20 radians a second, pushed at 3 radians a second since `origin`: the exact solution from rest is
// x = (cos 3 s - cos 20 s) / (20^2 - 3^2), s = t - origin. Both the state and the push must know the time.
Problem pushed_spring(double origin) {
  Problem problem;
  problem.rhs = plain_function(2, 0, [origin](double t, auto u, auto, auto du) {
    using T = std::decay_t<decltype(u(0))>;
    du(0) = u(1);
    du(1) = T(std::cos(3 * (t - origin))) - T(400) * u(0);
  });
  problem.initial_states = {0, 0};
  problem.start_times = {origin};
  problem.end_times = {origin + 3};
  problem.save_times = {origin + 1.5, origin + 3};
  return problem;
}

// With h in the state and fl(t + h) - t in time each step would be off by up to half an ulp of t, 1.2e-7 s at 1.7e9 s,
// and the oscillation by 20 radians times their sum. As it is, what remains is the push, read at rounded times: an
// acceleration off by 3 x 1.2e-7 at most, for 3 s at a frequency of 20, moves x by 3 x 3.6e-7 / 20 at the very worst,
// and as the signs change from stage to stage by a hundredth of it; the tolerance of 1e-9 leaves a few times itself.
TEST(StepSize, large_times_cost_no_accuracy) {
  Options options;
  options.precision = Precision::f64;
  options.rtol = options.atol = 1e-9;
  options.method = "dop853";
  for (const double origin : {0.0, 1e6, 1.7e9}) {
    const Problem problem = pushed_spring(origin);
    const Solution solution = solve(problem, options);
    ASSERT_EQ(solution.record(0).status, Status::success);
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      const double since = problem.save_times[k] - origin;
      const double exact = (std::cos(3 * since) - std::cos(20 * since)) / 391;
      EXPECT_NEAR(solution.state(0, k, 0), exact, 1e-8) << "from t = " << origin;
    }
  }
}

// Decays fast beside the unit of time begin with a first step of a hundred trial steps, which is 1 / rate. An estimate
// that vanishes there, as bs3's does, would let an error of 0.0345 pass.
TEST(StepSize, no_method_takes_its_first_step_where_its_estimate_vanishes) {
  for (const std::string_view name : explicit_method_names()) {
    if (method(name).error.empty()) continue;
    for (const double rate : {1.0, 1e3, 1e5, 1e9}) {
      Problem problem;
      problem.rhs = plain_function(1, 0, [rate](double, auto u, auto, auto du) {
        using T = std::decay_t<decltype(u(0))>;
        du(0) = T(-rate) * u(0);
      });
      problem.initial_states = {1};
      problem.end_times = {5 / rate};
      problem.save_times = {1 / rate, 5 / rate};
      Options options;
      options.method = name;
      options.precision = Precision::f64;
      options.rtol = options.atol = 1e-4;
      const Solution solution = solve(problem, options);
      EXPECT_NEAR(solution.state(0, 0, 0), std::exp(-1.0), 100 * options.rtol) << name << ", " << rate;
      EXPECT_NEAR(solution.state(0, 1, 0), std::exp(-5.0), 100 * options.rtol) << name << ", " << rate;
    }
  }
}

// A first step that time cannot resolve grows until it can.
TEST(StepSize, a_first_step_below_times_spacing_grows) {
  Problem problem = pushed_spring(1.7e9);
  Options options;
  options.initial_step = 1e-30;
  const Solution solution = solve(problem, options);
  EXPECT_EQ(solution.record(0).status, Status::success);
}

// Steps of 1e-7 s among times 2.4e-7 s apart: several have the same time, and which of them a save point takes must not
// depend on how many are made in one go.
TEST(StepSize, fixed_steps_below_times_spacing_are_saved_where_the_reference_does) {
  Problem problem;
  problem.rhs = system("lorenz");
  problem.start_times.clear();
  for (int i = 0; i < 23; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), {1 + 0.1 * i, 2, 20});
    const double start = 1.7e9 + 1e-4 * (i % 3), length = (i % 7 == 6 ? -1 : 1) * (i % 5 == 4 ? 9e-4 : 3e-4);
    problem.start_times.push_back(start);
    problem.end_times.push_back(start + length);
    for (const double share : {0.0, 0.1, 0.105, 0.37, 0.5}) problem.save_times.push_back(start + share * length);
  }
  problem.parameters = {10, 28, 8.0 / 3};
  problem.save_times_per_trajectory = true;
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    Options options;
    options.precision = precision;
    options.control = StepControl::fixed;
    options.dt = 1e-7;
    const Solution solution = solve(problem, options), reference = solve_reference(problem, options);
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      EXPECT_EQ(solution.record(i).accepted, reference.record(i).accepted) << i;
      for (std::size_t k = 0; k < 5; ++k)
        EXPECT_EQ(solution.state(i, k, 0), reference.state(i, k, 0)) << i << ", " << k;
    }
  }
}

// u' = u^2 is 1 / (1 / u0 - t): the middle one leaves at t = 1, the ones around it have far to go.
TEST(StepSize, a_trajectory_that_blows_up_leaves_those_who_share_its_steps) {
  Problem problem;
  problem.rhs = plain_function(1, 0, [](double, auto u, auto, auto du) { du(0) = u(0) * u(0); });
  problem.initial_states = {0.1, 1, -2};
  problem.end_times = {3};
  problem.save_times = {0.5, 2, 3};
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    Options options;
    options.precision = precision;
    options.control = StepControl::common;
    options.rtol = options.atol = 1e-6;
    const Solution solution = solve(problem, options);
    for (const std::size_t i : {0u, 2u}) {
      EXPECT_EQ(solution.record(i).status, Status::success);
      for (const std::size_t k : {0u, 1u, 2u}) {
        EXPECT_NEAR(solution.state(i, k, 0), 1 / (1 / problem.initial_states[i] - problem.save_times[k]), 1e-5);
      }
    }
    EXPECT_THAT(solution.record(1).status, ::testing::AnyOf(Status::step_too_small, Status::not_finite));
    EXPECT_NEAR(solution.record(1).end_time, 1, 1e-4);
    EXPECT_NEAR(solution.state(1, 0, 0), 2, 1e-4);
    EXPECT_TRUE(std::isnan(solution.state(1, 1, 0)));
    const Solution reference = solve_reference(problem, options);
    for (const std::size_t i : {0u, 1u, 2u}) {
      EXPECT_EQ(solution.record(i).status, reference.record(i).status);
      EXPECT_EQ(solution.record(i).accepted, reference.record(i).accepted);
      EXPECT_EQ(solution.record(i).rejected, reference.record(i).rejected);
      EXPECT_EQ(solution.end_state(i, 0), reference.end_state(i, 0));
    }
  }
}

// The logarithm of 1 + 1e6 t: steps grow with the time, from far below the spacing of times at the span's end on.
TEST(StepSize, a_long_span_may_begin_with_short_steps) {
  Problem problem;
  problem.rhs = plain_function(1, 0, [](double t, auto u, auto, auto du) {
    using T = std::decay_t<decltype(u(0))>;
    du(0) = T(1 / (1e-6 + t));
  });
  problem.initial_states = {0, 1, 2};
  problem.start_times = {0, 0, 1e12};
  problem.end_times = {1e12, 1e3, 0};
  const double exact[] = {std::log1p(1e18), 1 + std::log1p(1e9), 2 - std::log1p(1e18)};
  Options options;
  options.precision = Precision::f64;
  options.rtol = options.atol = 1e-8;
  const Solution solution = solve(problem, options), reference = solve_reference(problem, options);
  for (const std::size_t i : {0u, 1u, 2u}) {
    EXPECT_EQ(solution.record(i).status, Status::success) << i;
    EXPECT_NEAR(solution.end_state(i, 0), exact[i], 1e-5) << i;
    EXPECT_LT(solution.record(i).accepted, 500) << i;
    EXPECT_EQ(solution.record(i).accepted, reference.record(i).accepted) << i;
    EXPECT_EQ(solution.end_state(i, 0), reference.end_state(i, 0)) << i;
  }
}

// Where time resolves a step its size is what time advances by.
TEST(StepSize, a_step_is_the_difference_of_its_times) {
  using D = ScalarLane<double>;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double t : {0.0, 1.0, -3.5, 1.7e9, -1e15}) {
    for (const double end : {t + 1e6, t - 1e6}) {
      for (const double h : {1e-3, 0.1, 777.7, 9.9e5, 2e6}) {
        const auto step = scalar::propose_step<D>(t, end, h, infinity);
        EXPECT_EQ(step.last, h > 9.9e5);
        EXPECT_EQ(step.h, step.t_new != t ? step.t_new - t : std::copysign(h, end - t));
        EXPECT_NEAR(step.h, std::copysign(std::min(h, 1e6), end - t), std::fabs(t) * 0x1p-52 + 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::ode

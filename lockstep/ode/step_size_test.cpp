// Solves whose steps meet the spacing of time: at large times, and where one of many that share their steps blows up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/ode/numerics.h"
#include "lockstep/ode/reference.h"
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

// A first step that time cannot resolve grows until it can.
TEST(StepSize, a_first_step_below_times_spacing_grows) {
  Problem problem = pushed_spring(1.7e9);
  Options options;
  options.initial_step = 1e-30;
  const Solution solution = solve(problem, options);
  EXPECT_EQ(solution.record(0).status, Status::success);
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

// What a linearly implicit method saves between the ends of its steps, where something decays much faster than these.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/ode/differentiable_event.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/jumps.h"

namespace lockstep::ode {
namespace {

// u' = p0 (g(t) - u), g = sin(p1 t): far behind u is (sin(p1 t) - e cos(p1 t)) / (1 + e^2), e = p1 / p0.
Rhs following() {
  return differentiable_function<1, 2>("following", [](auto t, const auto& u, const auto& p, auto& du) {
    using lockstep::math::sin;
    du[0] = p[0] * (sin(p[1] * t) - u[0]);
  });
}

// du[0] = p0 (-u0): with an impulse, after which it is p1 exp(-p0 (t - t_impulse)).
Rhs forgetting() {
  return differentiable_function<2, 1>("forgetting", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = -p[0] * u[0];
    du[1] = -u[1];
  });
}

Options options_for(double tolerance, Precision precision = Precision::f64) {
  Options options{.method = "rodas5p", .precision = precision, .threads = 1};
  options.rtol = options.atol = tolerance;
  return options;
}

std::vector<double> times_to(double end, std::size_t count) {
  std::vector<double> times;
  for (std::size_t k = 1; k <= count; ++k) times.push_back(end * static_cast<double>(k) / static_cast<double>(count));
  return times;
}

// A low-pass filter of 1 ns that 50 Hz pass, which it follows at steps of some milliseconds; and rates at which less of
// the embedded error has vanished. An error within the step may be 2.5 times that in its middle: 1 / 0.4 of it is where
// the largest part of a transient is that the middle sees 0.35 of (the interpolant's growth at h lambda = -infinity).
TEST(ImplicitInterpolant, keeps_the_tolerance_however_fast_a_component_decays) {
  Problem problem;
  problem.rhs = following();
  problem.initial_states = {0};
  problem.end_times = {0.1};
  problem.save_times = times_to(0.1, 1999);
  for (const double rate : {1e4, 1e6, 1e9}) {
    problem.parameters = {rate, 314.159265};
    for (const double tolerance : {1e-3, 1e-6, 1e-8}) {
      const Solution solution = solve(problem, options_for(tolerance));
      ASSERT_EQ(solution.record(0).status, Status::success);
      double worst = 0;
      for (std::size_t k = 0; k < problem.save_times.size(); ++k) {
        const double phase = 314.159265 * problem.save_times[k], lag = 314.159265 / rate;
        const double transient = lag * std::exp(-rate * problem.save_times[k]);
        const double exact = (std::sin(phase) - lag * std::cos(phase) + transient) / (1 + lag * lag);
        worst = std::max(worst, std::abs(solution.state(0, k, 0) - exact));
      }
      EXPECT_LT(worst, 2.5 * tolerance * 2) << rate << ", " << tolerance;
    }
  }
}

TEST(ImplicitInterpolant, follows_what_an_impulse_sets_off) {
  Problem problem;
  problem.rhs = forgetting();
  problem.initial_states = {0, 1};
  problem.end_times = {3};
  problem.save_times = times_to(3, 3000);
  problem.impulses = {{1, 0, 1}};
  for (const double rate : {1e3, 1e5, 1e9}) {
    problem.parameters = {rate};
    for (const double tolerance : {1e-3, 1e-6}) {
      const Solution solution = solve(problem, options_for(tolerance));
      double worst = 0;
      for (std::size_t k = 0; k < problem.save_times.size(); ++k) {
        const double t = problem.save_times[k];
        const double exact = t > 1 ? std::exp(-rate * (t - 1)) : 0;
        worst = std::max(worst, std::abs(solution.state(0, k, 0) - exact));
      }
      EXPECT_LT(worst, 5 * tolerance) << rate << ", " << tolerance;
      EXPECT_LT(solution.record(0).accepted + solution.record(0).rejected, 100);
    }
  }
}

// u0 falls through 0.5 at ln 2 / rate behind the impulse.
TEST(ImplicitInterpolant, events_are_where_the_state_is) {
  Problem problem;
  problem.rhs = forgetting();
  problem.initial_states = {0, 1};
  problem.parameters = {1e5};
  problem.end_times = {3};
  problem.impulses = {{1, 0, 1}};
  problem.event = TerminalEvent{
      differentiable_event_function<2, 1>("half", [](auto, const auto& u, const auto&) { return u[0] - 0.5; })};
  problem.event->direction = TerminalEvent::Direction::falling;
  for (const double tolerance : {1e-3, 1e-5}) {
    const Solution solution = solve(problem, options_for(tolerance));
    ASSERT_EQ(solution.record(0).status, Status::terminated);
    // An error of the state over its rate, rate / 2 there.
    EXPECT_NEAR(solution.record(0).end_time, 1 + std::log(2) / 1e5, 5 * tolerance / (0.5 * 1e5));
  }
}

TEST(ImplicitInterpolant, steps_do_not_depend_on_what_is_saved) {
  Problem problem;
  problem.rhs = following();
  problem.initial_states = {0};
  problem.parameters = {1e7, 20};
  problem.end_times = {1};
  const Solution none = solve(problem, options_for(1e-5));
  problem.save_times = times_to(1, 37);
  const Solution all = solve(problem, options_for(1e-5));
  EXPECT_EQ(none.end_state(0, 0), all.end_state(0, 0));
  EXPECT_EQ(none.record(0).accepted, all.record(0).accepted);
  EXPECT_EQ(none.record(0).rejected, all.record(0).rejected);
}

// Transients, some of them faster than times can tell, of trajectories beside each other.
TEST(ImplicitInterpolant, the_engine_has_the_bits_of_the_reference) {
  Problem problem;
  problem.rhs = forgetting();
  for (std::size_t i = 0; i < 35; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), {i % 3 == 0 && i < 25 ? 1.0 : 0.0, 1});
    problem.parameters.push_back(std::pow(10.0, static_cast<double>(i)));
  }
  problem.end_times = {3};
  problem.save_times = {1e-9, 1, 1.001, 3};
  problem.impulses = {{1, 0, 1}, {2, 0, 1, 0.5}};
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    for (const StepControl control : {StepControl::per_trajectory, StepControl::common}) {
      Options options = options_for(1e-4, precision);
      options.control = control;
      const Solution expected = solve_reference(problem, options);
      if (control == StepControl::per_trajectory) {
        for (std::size_t i = 0; i < 35; ++i) EXPECT_EQ(expected.record(i).status, Status::success) << i;
      }
      for (const CpuTarget target : available_cpu_targets()) {
        options.cpu_target = target;
        testing::expect_same(expected, solve(problem, options), std::string(to_string(target)));
      }
    }
  }
}

// The evaluation at the start, that of the first step's size; stages 3 to 10 of tableau.h, the second one's being the
// first one's; and, where steps are chosen, that in the middle.
TEST(ImplicitInterpolant, evaluations_are_nine_an_adaptive_attempt_and_eight_a_fixed_one) {
  Problem problem;
  problem.rhs = following();
  problem.initial_states = {0};
  problem.parameters = {1e4, 20};
  problem.end_times = {1};
  Options options = options_for(1e-5);
  const TrajectoryRecord adaptive = solve(problem, options).record(0);
  EXPECT_EQ(adaptive.evaluations, 2 + 9 * (adaptive.accepted + adaptive.rejected));
  options.control = StepControl::fixed;
  options.dt = 0.1;
  EXPECT_EQ(solve(problem, options).record(0).evaluations, 1 + 8 * 10);
}

}  // namespace
}  // namespace lockstep::ode

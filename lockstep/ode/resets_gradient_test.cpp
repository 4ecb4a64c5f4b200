// Derivatives through resets, against differences of exact solutions and of solves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/differentiable_event.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/jumps.h"

namespace lockstep::ode {
namespace {

using Direction = TerminalEvent::Direction;
using ::testing::HasSubstr;
using testing::tight;
using testing::weight;
using testing::weighted_sum;

// A ball over a floor that rises at the speed p2: height, speed, time of the last bounce, bounces. p0: gravity, p1: the
// share of the speed against the floor that is left.
constexpr std::size_t kComponents = 4, kParameters = 3;
Problem balls(std::size_t count) {
  Problem problem;
  problem.rhs = differentiable_function<4, 3>("falling", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = u[1];
    du[1] = -p[0];
    du[2] = 0 * u[2];
    du[3] = 0 * u[3];
  });
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i);
    for (const double u : {1 + 0.02 * x, 0.5 - 0.03 * x, 0.0, 0.0}) problem.initial_states.push_back(u);
    for (const double p : {9.81 + 0.05 * x, 0.8 - 0.002 * x, 0.1 + 0.001 * x}) problem.parameters.push_back(p);
  }
  problem.end_times = {1.6};
  problem.save_times = {0, 0.3, 0.9, 1.6};
  problem.resets = {{differentiable_event_function<4, 3>(
                         "over the floor", [](auto t, const auto& u, const auto& p) { return u[0] - p[2] * t; }),
                     differentiable_reset_function<4, 3>("bounce",
                                                         [](auto t, const auto& u, const auto& p, auto& next) {
                                                           next[0] = p[2] * t;
                                                           next[1] = p[2] - p[1] * (u[1] - p[2]);
                                                           next[2] = 0 * u[2] + t;
                                                           next[3] = u[3] + 1;
                                                         }),
                     Direction::falling}};
  return problem;
}

// Up to the time `until`, or the bounce that is number `most`; the end time last.
std::vector<double> flown(const Problem& own, double until, double most = 1e9) {
  const double g = own.parameters[0], r = own.parameters[1], s = own.parameters[2];
  double x = own.initial_states[0], v = own.initial_states[1] - s, now = 0, count = own.initial_states[3],
         last = own.initial_states[2];
  while (true) {
    const double flight = (v + std::sqrt(v * v + 2 * g * x)) / g;
    if (now + flight >= until) break;
    now += flight;
    v = r * (g * flight - v);
    x = 0;
    ++count;
    last = now;
    if (count >= most) return {s * now, s + v, last, count, now};
  }
  const double h = until - now;
  return {x + v * h - g / 2 * h * h + s * until, s + v - g * h, last, count, until};
}

double slope(double& number, const std::function<double()>& value) { return testing::slope(number, value, 1e-6); }
// Without the error in h^2, which is large where a trajectory all but grazes its threshold.
double extrapolated_slope(double& number, const std::function<double()>& value, double h) {
  return (4 * testing::slope(number, value, h) - testing::slope(number, value, 2 * h)) / 3;
}

// By central differences of the exact solution: 1e-6 squared of third derivatives of some thousands, and roundings of
// 1e-15 divided by 1e-6. Counts have no derivative, and none of their initial value but 1.
TEST(ResetGradient, is_that_of_the_exact_solution) {
  for (const char* method : {"tsit5", "dop853"}) {
    const Problem problem = balls(40);
    Options options = tight();
    options.method = method;
    const std::size_t saves = problem.save_points();
    const Gradients back = solve_with_gradients(problem, options, weighted_sum);
    const Gradients again =
        solve_with_gradients(problem, options, weighted_sum, {.memory_bytes = 1});  // steps replayed
    EXPECT_EQ(back.initial_states, again.initial_states);
    EXPECT_EQ(back.parameters, again.parameters);
    const Sensitivities forward = solve_with_sensitivities(problem, options);
    const Solution plain = solve(problem, options);
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      SCOPED_TRACE(std::string(method) + ", trajectory " + std::to_string(i));
      EXPECT_GE(plain.end_state(i, 3), 2);
      EXPECT_EQ(forward.records[i].evaluations, plain.record(i).evaluations);
      Problem own = problem.part(i, 1);
      const auto value = [&] {
        double sum = 0;
        for (std::size_t k = 0; k < saves; ++k) {
          const std::vector<double> u = flown(own, own.save_times[k]);
          for (std::size_t c = 0; c < kComponents; ++c) sum += weight(kComponents * k + c) * u[c];
        }
        return sum;
      };
      const auto expect = [&](double& number, double ours, const std::vector<double>& by, std::size_t d,
                              std::size_t columns) {
        double sum = 0;
        for (std::size_t at = 0; at < kComponents * saves; ++at)
          sum += weight(at) * by[(i * kComponents * saves + at) * columns + d];
        const double expected = slope(number, value);
        EXPECT_NEAR(ours, expected, 1e-7) << d << " of " << columns;
        EXPECT_NEAR(sum, expected, 1e-7) << d << " of " << columns;
      };
      for (std::size_t d = 0; d < kComponents; ++d)
        expect(own.initial_states[d], back.initial_states[kComponents * i + d], forward.by_initial_state, d,
               kComponents);
      for (std::size_t d = 0; d < kParameters; ++d)
        expect(own.parameters[d], back.parameters[kParameters * i + d], forward.by_parameter, d, kParameters);
      for (std::size_t at = 0; at < kComponents * saves; ++at)
        EXPECT_EQ(forward.states[i * kComponents * saves + at], plain.state(i, at / kComponents, at % kComponents));
    }
  }
}

// The second bounce ends it, by the state that the reset leaves: its time moves with everything before.
TEST(ResetGradient, of_an_end_by_a_reset_is_that_of_its_time) {
  Problem problem = balls(35);
  problem.event = TerminalEvent{
      differentiable_event_function<4, 3>("second", [](auto, const auto& u, const auto&) { return u[3] - 1.5; })};
  const EndLoss loss = [](std::size_t, std::span<const double>, const TrajectoryEnd& end, EndSlopes& slopes) {
    EXPECT_TRUE(end.terminated);
    slopes.end_time = 2;
    for (std::size_t c = 0; c < kComponents; ++c) slopes.end_state[c] = 1 + static_cast<double>(c);
    return 2 * end.time + end.state[0] + 2 * end.state[1] + 3 * end.state[2] + 4 * end.state[3];
  };
  const Gradients back = solve_with_gradients(problem, tight(), loss);
  const Sensitivities forward = solve_with_sensitivities(problem, tight());
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    SCOPED_TRACE("trajectory " + std::to_string(i));
    Problem own = problem.part(i, 1);
    const auto end = [&](std::size_t of) { return flown(own, 1.6, 2)[of]; };
    EXPECT_NEAR(forward.records[i].end_time, end(4), 1e-12);
    const auto value = [&] { return 2 * end(4) + end(0) + 2 * end(1) + 3 * end(2) + 4 * end(3); };
    for (std::size_t d = 0; d < 3; ++d) {  // a count moved is another number of bounces
      EXPECT_NEAR(back.initial_states[kComponents * i + d], slope(own.initial_states[d], value), 1e-7);
      EXPECT_NEAR(back.parameters[kParameters * i + d], slope(own.parameters[d], value), 1e-7);
      EXPECT_NEAR(forward.end_time_by_parameter[kParameters * i + d], slope(own.parameters[d], [&] { return end(4); }),
                  1e-7);
      for (std::size_t c = 0; c < kComponents; ++c)
        EXPECT_NEAR(forward.end_state_by_parameter[(kComponents * i + c) * kParameters + d],
                    slope(own.parameters[d], [&] { return end(c); }), 1e-7);
    }
  }
}

// Where the event shares the reset's threshold it is the end, and derivatives are those of the event alone.
TEST(ResetGradient, of_an_event_at_the_same_threshold_is_that_of_the_event) {
  Problem problem = balls(35);
  problem.event = TerminalEvent{problem.resets[0].function, Direction::falling};
  const EndLoss loss = [](std::size_t, std::span<const double>, const TrajectoryEnd& end, EndSlopes& slopes) {
    slopes.end_time = 2;
    slopes.end_state[1] = 1;
    return 2 * end.time + end.state[1];
  };
  const Gradients both = solve_with_gradients(problem, tight(), loss);
  const Sensitivities forward = solve_with_sensitivities(problem, tight());
  problem.resets.clear();
  const Gradients alone = solve_with_gradients(problem, tight(), loss);
  const Sensitivities forward_alone = solve_with_sensitivities(problem, tight());
  for (std::size_t i = 0; i < alone.parameters.size(); ++i) {
    EXPECT_NEAR(both.parameters[i], alone.parameters[i], 1e-12);
    EXPECT_NEAR(forward.end_time_by_parameter[i], forward_alone.end_time_by_parameter[i], 1e-12);
  }
  for (std::size_t i = 0; i < alone.initial_states.size(); ++i)
    EXPECT_NEAR(both.initial_states[i], alone.initial_states[i], 1e-12);
}

// A pendulum between a wall at the angle p0, from which it springs back with p1 of its speed, and a kick that carries
// it over a second threshold: against differences of solves to 1e-12, whose own errors they magnify to 1e-7.
TEST(ResetGradient, of_a_pendulum_is_that_of_its_solves) {
  Problem problem;
  problem.rhs = differentiable_function<3, 2>("pendulum", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = u[1];
    using std::sin;
    du[1] = -sin(u[0]) - 0.1 * u[1];
    du[2] = u[0] * u[0];
  });
  for (std::size_t i = 0; i < 33; ++i) {
    for (const double u : {-1 + 0.01 * static_cast<double>(i), 0.2, 0.0}) problem.initial_states.push_back(u);
    for (const double p : {0.4 + 0.002 * static_cast<double>(i), 0.9}) problem.parameters.push_back(p);
  }
  problem.end_times = {9};
  problem.save_times = {2.5, 5, 9};
  problem.impulses = {{4, 2, 10}};
  problem.resets = {
      {differentiable_event_function<3, 2>("wall", [](auto, const auto& u, const auto& p) { return u[0] - p[0]; }),
       differentiable_reset_function<3, 2>("spring",
                                           [](auto, const auto& u, const auto& p, auto& next) {
                                             next[0] = p[0];
                                             next[1] = -p[1] * u[1];
                                             next[2] = u[2];
                                           }),
       Direction::rising},
      {differentiable_event_function<3, 2>("over", [](auto, const auto& u, const auto&) { return u[2] - 8; }),
       differentiable_reset_function<3, 2>("halve",
                                           [](auto, const auto& u, const auto& p, auto& next) {
                                             next[0] = u[0];
                                             next[1] = u[1] * p[1];
                                             next[2] = 0.1 * u[2] * u[2];
                                           }),
       Direction::rising}};
  Options options;
  options.precision = Precision::f64;
  options.method = "vern9";
  options.rtol = options.atol = 1e-12;
  const Gradients back = solve_with_gradients(problem, options, weighted_sum);
  const Sensitivities forward = solve_with_sensitivities(problem, options);
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    SCOPED_TRACE("trajectory " + std::to_string(i));
    Problem own = problem.part(i, 1);
    const auto value = [&] {
      const Solution solution = solve(own, options);
      double sum = 0;
      for (std::size_t at = 0; at < 9; ++at) sum += weight(at) * solution.state(0, at / 3, at % 3);
      return sum;
    };
    const auto forwards = [&](const std::vector<double>& by, std::size_t d, std::size_t columns) {
      double sum = 0;
      for (std::size_t at = 0; at < 9; ++at) sum += weight(at) * by[(i * 9 + at) * columns + d];
      return sum;
    };
    for (std::size_t d = 0; d < 2; ++d) {
      const double start = extrapolated_slope(own.initial_states[d], value, 1e-5);
      const double parameter = extrapolated_slope(own.parameters[d], value, 1e-5);
      EXPECT_NEAR(back.initial_states[3 * i + d], start, 2e-6);
      EXPECT_NEAR(back.parameters[2 * i + d], parameter, 2e-6);
      EXPECT_NEAR(forwards(forward.by_initial_state, d, 3), start, 2e-6);
      EXPECT_NEAR(forwards(forward.by_parameter, d, 2), parameter, 2e-6);
    }
  }
}

// x' = 1 below c and 0.25 from there on, the mode being a component: x(t) = c + (t - c + x0) / 4.
TEST(ResetGradient, of_a_mode_that_switches_is_that_of_a_jump_at_a_state) {
  Problem problem;
  problem.rhs = differentiable_function<2, 1>("slowed", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = 1 - 0.75 * u[1];
    du[1] = 0 * u[1];
  });
  problem.initial_states = {0, 0, 0.5, 0};
  problem.parameters = {1, 1.25};
  problem.end_times = {2};
  problem.save_times = {2};
  problem.resets = {
      {differentiable_event_function<2, 1>("x - c", [](auto, const auto& u, const auto& p) { return u[0] - p[0]; }),
       differentiable_reset_function<2, 1>("slow", [](auto, const auto& u, const auto&, auto& next) {
         next[0] = u[0];
         next[1] = 0 * u[1] + 1;
       })}};
  const Sensitivities sensitivities = solve_with_sensitivities(problem, tight());
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(sensitivities.states[2 * i],
                problem.parameters[i] + (2 - problem.parameters[i] + problem.initial_states[2 * i]) / 4, 1e-14);
    EXPECT_NEAR(sensitivities.by_initial_state[4 * i], 0.25, 1e-14);
    EXPECT_NEAR(sensitivities.by_parameter[2 * i], 0.75, 1e-14);
  }
}

TEST(ResetGradient, functions_without_derivatives_are_refused) {
  const auto message = [&](const Problem& problem) {
    return message_of([&] { solve_with_gradients(problem, tight(), weighted_sum); });
  };
  Problem problem = balls(2);
  problem.resets[0].function = event_function<4, 3>("opaque", [](auto, const auto& u, const auto&) { return u[0]; });
  EXPECT_THAT(message(problem), HasSubstr("problem.resets[0].function: found event opaque"));
  problem = balls(2);
  problem.resets[0].state = function<4, 3>("opaque", [](auto, const auto& u, const auto&, auto& next) {
    for (std::size_t c = 0; c < 4; ++c) next[c] = u[c];
  });
  EXPECT_THAT(message(problem), HasSubstr("problem.resets[0].state: found function opaque"));
}

}  // namespace
}  // namespace lockstep::ode

// Events and resets whose functions jump with the time: what lies before the jump counts, then the leap itself; steps
// end at the jumps that such a function alone knows of.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ode/differentiable_event.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/jumps.h"

namespace lockstep::ode {
namespace {

using Direction = TerminalEvent::Direction;
using testing::expect_same;
using testing::tight;

constexpr double kOn = 100, kOff = 102;
double pulse(auto t) { return t >= kOn && t < kOff ? 12 : 0; }

// A cell of 10 s that is charged by a pulse of 2 s, p0 12 A: u' = (p0 pulse - u) / 10, u(0) = 0.
Problem cells(std::size_t count) {
  Problem problem;
  problem.rhs = differentiable_function<1, 1>(
      "cell", [](auto t, const auto& u, const auto& p, auto& du) { du[0] = (p[0] * pulse(t) - u[0]) / 10; });
  problem.initial_states.assign(count, 0.0);
  for (std::size_t i = 0; i < count; ++i) problem.parameters.push_back(0.05 * (1 + 0.01 * static_cast<double>(i)));
  problem.end_times = {200};
  // What is left of the voltage: under load it falls below zero, without load it never would.
  problem.event = TerminalEvent{
      differentiable_event_function<1, 1>(
          "voltage", [](auto t, const auto& u, const auto& p) { return 0.7 - 0.05 * pulse(t) - u[0] + 0 * p[0]; }),
      Direction::falling};
  return problem;
}
// 12 p0 (1 - exp(-h / 10)) = 0.1
double met(const Problem& problem, std::size_t i) { return kOn - 10 * std::log1p(-0.1 / (12 * problem.parameters[i])); }

TEST(LeapingFunctions, are_met_before_the_jump_that_takes_them_back) {
  const Problem problem = cells(33);
  for (const std::string_view name : method_names()) {
    for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
      const bool fixed = control == StepControl::fixed;
      if (!fixed && method(name).error.empty()) continue;
      if (method(name).is_linearly_implicit()) continue;  // which wants equations
      if (fixed && method(name).order < 4) continue;
      SCOPED_TRACE(std::string(name) + " with control " + std::to_string(static_cast<int>(control)));
      Options options = tight();
      if (method(name).order < 4) options.rtol = options.atol = 1e-8;
      options.method = name;
      options.control = control;
      if (fixed) options.dt = 0.5;
      options.stops = {kOn, kOff};
      const Solution solution = solve(problem, options);
      expect_same(solution, solve_reference(problem, options), "one and the other");
      for (std::size_t i = 0; i < problem.trajectories(); ++i) {
        ASSERT_EQ(solution.record(i).status, Status::terminated);
        EXPECT_NEAR(solution.record(i).end_time, met(problem, i), 1e-5);
      }
    }
  }
}

// Functions that nothing but the time moves, up at 1 and down at 2.
double gate(auto t) { return t < 1 || t >= 2 ? -1 : 1; }

Problem gated(std::size_t count) {
  Problem problem;
  problem.rhs = differentiable_function<1, 1>(
      "decay", [](auto, const auto& u, const auto& p, auto& du) { du[0] = -p[0] * u[0]; });
  for (std::size_t i = 0; i < count; ++i) {
    problem.initial_states.push_back(1 + 0.1 * static_cast<double>(i));
    problem.parameters.push_back(0.5 + 0.01 * static_cast<double>(i));
  }
  problem.end_times = {3};
  problem.save_times = {1, 3};
  return problem;
}
Rhs gate_function() {
  return differentiable_event_function<1, 1>(
      "gate", [](auto t, const auto& u, const auto& p) { return gate(t) + 0 * u[0] * p[0]; });
}

TEST(LeapingFunctions, meet_their_event_where_they_leap) {
  for (const auto& [direction, first, last, time] : {std::tuple{Direction::rising, 0.0, 3.0, 1.0},
                                                     {Direction::falling, 0.0, 3.0, 2.0},
                                                     {Direction::rising, 3.0, 0.0, 2.0},
                                                     {Direction::either, 3.0, 0.0, 2.0},
                                                     {Direction::falling, 3.0, 0.0, 1.0},
                                                     {Direction::either, 1.0, 3.0, 2.0}}) {
    Problem problem = gated(33);
    problem.event = TerminalEvent{gate_function(), direction};
    problem.start_times = {first};
    problem.end_times = {last};
    problem.save_times.clear();
    for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
      Options options = tight();
      options.method = control == StepControl::fixed ? "rk4" : "vern7";
      options.control = control;
      if (control == StepControl::fixed) options.dt = 0.125;
      options.stops = {1, 2};
      const Solution solution = solve(problem, options);
      expect_same(solution, solve_reference(problem, options), "one and the other");
      for (std::size_t i = 0; i < problem.trajectories(); ++i) {
        ASSERT_EQ(solution.record(i).status, Status::terminated);
        EXPECT_EQ(solution.record(i).end_time, time);  // not a rounding beside it
        const double expected = problem.initial_states[i] * std::exp(-problem.parameters[i] * (time - first));
        EXPECT_NEAR(solution.end_state(i, 0), expected, 1e-4 * expected);
      }
    }
  }
}

Reset scaled_where_the_gate(Direction direction) {
  return {gate_function(),
          differentiable_reset_function<1, 1>(
              "scaled", [](auto, const auto& u, const auto& p, auto& next) { next[0] = (1 + p[0]) * u[0]; }),
          direction};
}

// At 1 the state is scaled, then kicked; at 2 nothing happens.
TEST(LeapingFunctions, strike_resets_before_impulses_of_the_same_time) {
  Problem problem = gated(40);
  problem.resets = {scaled_where_the_gate(Direction::rising)};
  problem.impulses = {{1, 0, 0.25}};
  problem.keep_events = true;
  Options options = tight();
  options.stops = {1, 2};
  const Solution solution = solve(problem, options);
  expect_same(solution, solve_reference(problem, options), "one and the other");
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    const double p = problem.parameters[i], before = problem.initial_states[i] * std::exp(-p);
    ASSERT_EQ(solution.events(i).size(), 1u);
    EXPECT_EQ(solution.events(i)[0].time, 1);
    EXPECT_NEAR(solution.state(i, 0, 0), before, 1e-9);
    EXPECT_NEAR(solution.end_state(i, 0), ((1 + p) * before + 0.25) * std::exp(-2 * p), 1e-9);
  }
}

// d u(3) of u0 (1 + p) exp(-3 p), at a time that nothing moves.
TEST(LeapingFunctions, have_the_derivatives_of_a_reset_at_a_fixed_time) {
  Problem problem = gated(40);
  problem.resets = {scaled_where_the_gate(Direction::rising)};
  for (const std::string_view method : {"tsit5", "dop853", "vern9"}) {
    Options options = tight();
    options.method = method;
    options.stops = {1, 2};
    const Gradients gradients = solve_with_gradients(problem, options, testing::weighted_sum);
    const Sensitivities sensitivities = solve_with_sensitivities(problem, options);
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      const double p = problem.parameters[i], u0 = problem.initial_states[i];
      const double first = std::exp(-p), last = (1 + p) * std::exp(-3 * p);
      const double w0 = testing::weight(0), w1 = testing::weight(1);
      const double by_state = w0 * first + w1 * last;
      const double by_parameter = u0 * (-w0 * first + w1 * std::exp(-3 * p) * (1 - 3 * (1 + p)));
      EXPECT_NEAR(gradients.initial_states[i], by_state, 1e-8) << method;
      EXPECT_NEAR(gradients.parameters[i], by_parameter, 1e-8) << method;
      EXPECT_NEAR(sensitivities.by_initial_state[2 * i + 1], last, 1e-8) << method;
      EXPECT_NEAR(sensitivities.by_parameter[2 * i + 1], u0 * std::exp(-3 * p) * (1 - 3 * (1 + p)), 1e-8) << method;
    }
  }
}

TEST(LeapingFunctions, end_at_a_time_without_a_derivative) {
  Problem problem = gated(40);
  problem.save_times.clear();
  problem.event = TerminalEvent{gate_function(), Direction::falling};
  const EndLoss loss = [](std::size_t, std::span<const double>, const TrajectoryEnd& end, EndSlopes& slopes) {
    slopes.end_time = 5;
    slopes.end_state[0] = 1;
    return 5 * end.time + end.state[0];
  };
  for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
    Options options = tight();
    options.control = control;
    if (control == StepControl::fixed) options.dt = 0.01;
    options.stops = {1, 2};
    const Gradients gradients = solve_with_gradients(problem, options, loss);
    const Sensitivities sensitivities = solve_with_sensitivities(problem, options);
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      const double p = problem.parameters[i], u0 = problem.initial_states[i];
      EXPECT_NEAR(gradients.initial_states[i], std::exp(-2 * p), 1e-8);
      EXPECT_NEAR(gradients.parameters[i], -2 * u0 * std::exp(-2 * p), 1e-8);
      EXPECT_EQ(sensitivities.end_time_by_initial_state[i], 0);
      EXPECT_EQ(sensitivities.end_time_by_parameter[i], 0);
      EXPECT_NEAR(sensitivities.end_state_by_parameter[i], -2 * u0 * std::exp(-2 * p), 1e-8);
    }
  }
}

// The derivative by p0 of where the crossing within the pulse lies.
TEST(LeapingFunctions, have_the_derivatives_of_a_crossing_before_the_jump) {
  const Problem problem = cells(33);
  const EndLoss loss = [](std::size_t, std::span<const double>, const TrajectoryEnd& end, EndSlopes& slopes) {
    slopes.end_time = 1;
    return end.time;
  };
  Options options = tight();
  options.method = "vern9";
  options.stops = {kOn, kOff};
  const Gradients gradients = solve_with_gradients(problem, options, loss);
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    const double share = 0.1 / (12 * problem.parameters[i]);
    EXPECT_NEAR(gradients.parameters[i], -10 * share / (1 - share) / problem.parameters[i], 1e-5);
  }
}

// u - table(t), as a graph.
Rhs above(const std::vector<double>& knots, const std::vector<double>& values, double by) {
  graph::Graph graph;
  graph.inputs = {{"u", 0, 2}, {"t", 1, 1}};
  graph.nodes = {{"level", graph::Columns{{0}}, {0}},
                 {"wanted", testing::table(knots, values, true), {1}},
                 {"by", graph::Constant{{by}}, {}},
                 {"least", graph::Binary{graph::BinaryKind::add}, {3, 4}},
                 {"above", graph::Binary{graph::BinaryKind::subtract}, {2, 5}}};
  graph.outputs = {{"above", 6, 1}};
  return graph_function(graph, 0, "above");
}
Rhs switched(double to) {
  return function<2>("switched", [to](auto, const auto& u, const auto&, auto& next) {
    next[0] = u[0];
    next[1] = to + 0 * u[1];
  });
}

// A room that is heated by 3 - 0.1 (u - 10) where that is on, by a thermostat half a degree to either side of what is
// wanted, which jumps: how often it is told to switch.
std::size_t switchings(const std::vector<double>& knots, const std::vector<double>& values, double until) {
  double u = 15, rest = 40;  // to which it tends: 40 or 10
  std::size_t count = 0;
  const auto switch_to = [&](double to) {
    rest = to;
    ++count;
  };
  for (std::size_t i = 0; i < knots.size(); ++i) {
    double t = knots[i];
    const double next = i + 1 < knots.size() ? knots[i + 1] : until;
    if (i > 0 && u < values[i - 1] + 0.5 && u >= values[i] + 0.5) switch_to(10);
    if (i > 0 && u > values[i - 1] - 0.5 && u <= values[i] - 0.5) switch_to(40);
    while (true) {
      const double level = values[i] + (rest == 40 ? 0.5 : -0.5), share = (level - rest) / (u - rest);
      const double when = share > 0 && share < 1 ? t - 10 * std::log(share) : until;
      if (when >= next) break;
      switch_to(rest == 40 ? 10 : 40);
      u = level;
      t = when;
    }
    u = rest + (u - rest) * std::exp(-0.1 * (next - t));
  }
  return count;
}

TEST(LeapingFunctions, tell_their_jumps_to_the_steps) {
  const std::vector<double> knots{0, 6, 8.25, 17, 22, 30, 32.25}, values{16, 20, 18, 21, 16, 20, 18};
  Problem problem;
  problem.rhs = function<2>("room", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = 3 * u[1] - 0.1 * (u[0] - 10);
    du[1] = 0 * u[1];
  });
  problem.initial_states = {15, 1};
  problem.end_times = {40};
  problem.resets = {{above(knots, values, -0.5), switched(1), Direction::falling},
                    {above(knots, values, 0.5), switched(0), Direction::rising}};
  problem.keep_events = true;
  Options options = tight();
  EXPECT_EQ(stop_times(problem, options), std::vector<double>(knots.begin() + 1, knots.end()));
  for (const std::string_view name : method_names()) {
    if (method(name).error.empty() || method(name).is_linearly_implicit()) continue;
    options.method = name;
    options.rtol = options.atol = method(name).order < 4 ? 1e-7 : 1e-10;
    const Solution solution = solve(problem, options);
    EXPECT_EQ(solution.events(0).size(), switchings(knots, values, 40)) << name;
    expect_same(solution, solve_reference(problem, options), std::string(name));
  }
  options.stop_at_knots = false;
  EXPECT_TRUE(stop_times(problem, options).empty());
}

}  // namespace
}  // namespace lockstep::ode

#include "lockstep/ode/sensitivity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/kernels/graph/graph.h"
#include "lockstep/ode/differentiable_event.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/gradient_cases.h"

namespace lockstep::ode {
namespace {

using namespace testing;

// Bound as in gradient_test: 1e-12 of the largest derivative of the trajectory.
TEST(Sensitivity, agrees_with_dual_numbers_column_by_column) {
  for (const Case& c : all_cases()) {
    for (const Mode& mode : {Mode{"tsit5", StepControl::per_trajectory}, Mode{"dop853", StepControl::common},
                             Mode{"rk4", StepControl::fixed}, Mode{"rodas5p", StepControl::per_trajectory},
                             Mode{"rodas5p", StepControl::common}, Mode{"rodas5p", StepControl::fixed}}) {
      if (!has_derivatives(c, mode.method)) continue;
      const Problem problem = ensemble(c, 34);
      const Options options = f64(mode.method, mode.control);
      const Sensitivities ours = solve_with_sensitivities(problem, options);
      const Gradients steps =
          solve_with_gradients(problem, options, TrajectoryLoss(linear_loss), {.keep = GradientOptions::Keep::steps});
      const std::size_t n = problem.rhs->components(), m = problem.rhs->parameters(), row = problem.save_points() * n;
      const Numbers weights = problem.rhs->weights();
      const std::vector<Dual<double>> w(weights.begin(), weights.end());
      for (const std::size_t trajectory : {std::size_t{0}, std::size_t{33}}) {
        for (std::size_t column = 0; column < n + m; ++column) {
          std::vector<Dual<double>> u, p;
          for (std::size_t i = 0; i < n; ++i) u.emplace_back(problem.initial_states[trajectory * n + i], i == column);
          for (std::size_t i = 0; i < m; ++i) p.emplace_back(problem.parameters[trajectory * m + i], n + i == column);
          const auto states = replay<Dual<double>>(
              method(mode.method),
              [&]<class M>(const auto& t, const std::vector<M>& y, const std::vector<M>& q) {
                return plain_rhs<M>(c, t, y, q, std::vector<M>(w.begin(), w.end()));
              },
              u, p, steps.steps[trajectory], problem.save_times);
          double largest = 0;
          for (const auto& state : states) largest = std::max(largest, std::fabs(state.slope));
          for (std::size_t i = 0; i < row; ++i) {
            const double slope = column < n ? ours.by_initial_state[(trajectory * row + i) * n + column]
                                            : ours.by_parameter[(trajectory * row + i) * m + column - n];
            EXPECT_NEAR(slope, states[i].slope, 1e-12 * largest)
                << c.name << " " << mode.method << " column " << column;
          }
        }
      }
    }
  }
}

// Of one component's equation, the others' cotangents being zero. Both systems differ by roundings alone, some hundred
// of 1.1e-16 in the sums of 100 steps, each at most ten times as large at the end: 1e-12 of the largest.
TEST(Sensitivity, of_a_graph_are_those_of_the_built_in_system) {
  graph::Graph g;
  g.inputs = {{"u", 0, 2}, {"p", 1, 4}};
  const auto add = [&](graph::Operation operation, std::vector<std::size_t> inputs) {
    g.nodes.push_back({"n" + std::to_string(g.nodes.size()), std::move(operation), std::move(inputs)});
    return g.inputs.size() + g.nodes.size() - 1;
  };
  const auto both = [&](graph::BinaryKind kind, std::size_t a, std::size_t b) {
    return add(graph::Binary{kind}, {a, b});
  };
  std::vector<std::size_t> u, p;
  for (std::uint32_t i = 0; i < 2; ++i) u.push_back(add(graph::Columns{{i}}, {0}));
  for (std::uint32_t i = 0; i < 4; ++i) p.push_back(add(graph::Columns{{i}}, {1}));
  const auto multiply = graph::BinaryKind::multiply, subtract = graph::BinaryKind::subtract;
  const auto prey = both(multiply, u[0], both(subtract, p[0], both(multiply, p[1], u[1])));
  const auto predator = both(multiply, u[1], both(subtract, both(multiply, p[3], u[0]), p[2]));
  g.outputs = {{"du", add(graph::Concatenate{}, {prey, predator}), 2}};

  Problem problem;
  problem.rhs = system("lotka_volterra");
  problem.initial_states = {1, 1};
  problem.parameters = {1.5, 1, 3, 1};
  problem.end_times = {2.7};
  problem.save_times = {1.35, 2.7};
  const Options options = f64("rk4", StepControl::fixed);
  const Sensitivities expected = solve_with_sensitivities(problem, options);
  problem.rhs = net(g);
  const Sensitivities found = solve_with_sensitivities(problem, options);
  const auto expect_near = [](const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    double largest = 0;
    for (const double x : b) largest = std::max(largest, std::fabs(x));
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12 * largest) << i;
  };
  expect_near(found.by_initial_state, expected.by_initial_state);
  expect_near(found.by_parameter, expected.by_parameter);
}

// NaN is equal to NaN.
void expect_part(const std::vector<double>& part, const std::vector<double>& whole, std::size_t each, std::size_t first,
                 const std::string& what) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    const double expected = whole[first * each + i];
    ASSERT_TRUE(part[i] == expected || (std::isnan(part[i]) && std::isnan(expected))) << what << ", number " << i;
  }
}
void expect_part(const Sensitivities& part, const Sensitivities& whole, const Problem& of_part, std::size_t first,
                 const std::string& what) {
  const std::size_t n = of_part.rhs->components(), m = of_part.rhs->parameters(), row = of_part.save_points() * n;
  expect_part(part.by_initial_state, whole.by_initial_state, row * n, first, what + ", by initial state");
  expect_part(part.by_parameter, whole.by_parameter, row * m, first, what + ", by parameter");
  expect_part(part.end_state_by_initial_state, whole.end_state_by_initial_state, n * n, first, what + ", end");
  expect_part(part.end_state_by_parameter, whole.end_state_by_parameter, n * m, first, what + ", end");
  expect_part(part.end_time_by_initial_state, whole.end_time_by_initial_state, n, first, what + ", time");
  expect_part(part.end_time_by_parameter, whole.end_time_by_parameter, m, first, what + ", time");
}

// Few trajectories leave lanes to directions, many fill a tile.
TEST(Sensitivity, of_few_trajectories_have_the_bits_of_many) {
  std::vector<Case> cases = all_cases();
  cases.push_back(trained_case());
  for (const Case& c : cases) {
    for (const Mode& mode : {Mode{"tsit5", StepControl::per_trajectory}, Mode{"rk4", StepControl::fixed},
                             Mode{"rodas5p", StepControl::per_trajectory}}) {
      if (!has_derivatives(c, mode.method)) continue;
      for (const Precision precision : {Precision::f32, Precision::f64}) {
        Problem problem = ensemble(c, 32);
        if (c.name == std::string("lorenz")) {  // each at its time
          problem.event = TerminalEvent{
              differentiable_event_function<3, 3>("x", [](auto, const auto& u, const auto&) { return u[0] - 10; })};
        }
        Options options = f64(mode.method, mode.control);
        if (mode.control != StepControl::fixed) options.stops = {0.1, 0.35};
        options.precision = precision;
        const Sensitivities whole = solve_with_sensitivities(problem, options);
        EXPECT_EQ(whole.records[0].status, problem.event ? Status::terminated : Status::success);
        for (const auto& [first, count] :
             {std::pair<std::size_t, std::size_t>{0, 1}, {31, 1}, {7, 2}, {0, 3}, {20, 8}, {3, 16}, {1, 31}}) {
          const Problem part = problem.part(first, count);
          expect_part(
              solve_with_sensitivities(part, options), whole, part, first,
              std::string(c.name) + " " + mode.method + " " + std::to_string(count) + " from " + std::to_string(first));
        }
      }
    }
  }
}

// More directions of one trajectory than a tile has lanes, of each trajectory its own.
TEST(Sensitivity, along_many_directions_few_trajectories_have_the_bits_of_many) {
  constexpr std::size_t kDirections = 43;
  const Problem problem = ensemble(lorenz_case(), 32);
  Directions directions;
  for (std::size_t d = 0; d < kDirections; ++d)
    directions.parameters.push_back(d % 4 < 3 ? d % 4 : Directions::kNoParameter);
  for (std::size_t i = 0; i < 32 * 3 * kDirections; ++i)
    directions.initial_states.push_back(std::sin(static_cast<double>(i)));
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    Options options = f64("tsit5", StepControl::per_trajectory);
    options.precision = precision;
    const DirectionalDerivatives whole = solve_along(problem, directions, options);
    const std::size_t each = problem.save_points() * 3 * kDirections;
    for (const std::size_t count : {1u, 2u, 5u, 31u}) {
      Directions of_part = directions;
      of_part.initial_states.assign(directions.initial_states.end() - static_cast<int>(count * 3 * kDirections),
                                    directions.initial_states.end());
      expect_part(solve_along(problem.part(32 - count, count), of_part, options).by_direction, whole.by_direction, each,
                  32 - count, std::to_string(count));
    }
  }
}

TEST(Sensitivity, states_have_the_bits_of_solve) {
  const Problem problem = ensemble(lorenz_case(), 40);
  const Options options = f64("tsit5", StepControl::per_trajectory);
  const Sensitivities ours = solve_with_sensitivities(problem, options);
  const Solution solution = solve(problem, options);
  EXPECT_TRUE(std::equal(ours.states.begin(), ours.states.end(), solution.states<double>().begin()));
  EXPECT_EQ(ours.records[39].accepted, solution.record(39).accepted);
}

TEST(Sensitivity, of_a_trajectory_that_fails_is_nan_from_there_on) {
  Problem problem;
  problem.rhs =
      differentiable_function<1>("blow_up", [](auto, const auto& u, const auto&, auto& du) { du[0] = u[0] * u[0]; });
  problem.initial_states = {2};
  problem.end_times = {1};
  problem.save_times = {0.25, 1};
  const Sensitivities ours = solve_with_sensitivities(problem, f64("tsit5", StepControl::per_trajectory));
  EXPECT_NE(ours.records[0].status, Status::success);
  EXPECT_NEAR(ours.by_initial_state[0], 4, 1e-3);  // u = u0 / (1 - u0 t): du/du0 = 1 / (1 - u0 t)^2; tolerance 1e-5
  EXPECT_TRUE(std::isnan(ours.by_initial_state[1]));
  problem.event = TerminalEvent{event_function<1>("x", [](auto, const auto& u, const auto&) { return u[0] - 1; })};
  EXPECT_THROW(solve_with_sensitivities(problem), Error);
}

}  // namespace
}  // namespace lockstep::ode

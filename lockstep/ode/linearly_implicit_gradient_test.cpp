// Derivatives of solves by the linearly implicit method: stiff ones, and all that may happen on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/differentiable_event.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/gradient_cases.h"
#include "lockstep/ode/testing/graph_maker.h"
#include "lockstep/ode/testing/jumps.h"

namespace lockstep::ode {
namespace {

using namespace testing;
using ::testing::HasSubstr;

const std::string kMethod = "rodas5p";

Options implicit_options(StepControl control, double tolerance = 1e-5) {
  Options options = f64(kMethod, control);
  options.rtol = options.atol = tolerance;
  return options;
}

// Robertson's reaction with rates of its own in each trajectory.
Problem reactions(std::size_t count) {
  Problem problem{.rhs = system("robertson"), .end_times = {40}, .save_times = {0, 0.3, 4, 11, 40}};
  for (std::size_t i = 0; i < count; ++i) {
    const double x = 1 + 0.01 * static_cast<double>(i);
    for (const double u : {1.0, 0.0, 0.0}) problem.initial_states.push_back(u);
    for (const double p : {0.04 * x, 3e7 / x, 1e4 * x}) problem.parameters.push_back(p);
  }
  return problem;
}
Options for_reactions(Precision precision = Precision::f64) {
  Options options = implicit_options(StepControl::per_trajectory);
  options.precision = precision;
  options.rtol = 1e-5;
  options.component_atol = {1e-8, 1e-12, 1e-8};
  return options;
}

// The intermediate species varies with p by 1e-11, where it is 1e-5: losses weigh the species by their sizes.
double weighed_by_species(std::size_t, std::span<const double> states, std::span<double> bar) {
  double sum = 0;
  for (std::size_t at = 0; at < states.size(); ++at) {
    bar[at] = weight(at) * (at % 3 == 1 ? 1e5 : 1);
    sum += bar[at] * states[at];
  }
  return sum;
}

// Through steps h with h |J| up to 1e5: solutions lose up to 5 digits more than those of problems that are not stiff,
// for which gradient_test.cpp has 1e-12. Held against dual numbers in units of each parameter's own.
TEST(LinearlyImplicitGradient, of_a_stiff_reaction_is_that_of_dual_numbers) {
  const Problem problem = reactions(34);
  const Gradients found = solve_with_gradients(problem, for_reactions(), TrajectoryLoss(weighed_by_species),
                                               {.keep = GradientOptions::Keep::steps});
  ASSERT_EQ(found.left_out, 0u);
  const auto plain = [](const auto&, const auto& u, const auto& p) {
    const auto slow = p[0] * u[0], back = p[2] * (u[1] * u[2]), fast = p[1] * (u[1] * u[1]);
    return std::vector{back - slow, slow - back - fast, fast};
  };
  using D = Dual<double>;
  for (const std::size_t i : {std::size_t{0}, std::size_t{33}}) {
    for (std::size_t column = 0; column < 6; ++column) {
      std::vector<D> u, p;
      const double* given = &problem.parameters[3 * i];
      for (std::size_t c = 0; c < 3; ++c) u.emplace_back(problem.initial_states[3 * i + c], c == column);
      for (std::size_t q = 0; q < 3; ++q) p.emplace_back(given[q], 3 + q == column ? given[q] : 0.0);
      const std::vector<D> states = replay<D>(method(kMethod), plain, u, p, found.steps[i], problem.save_times);
      double sum = 0, size = 0;
      for (std::size_t at = 0; at < states.size(); ++at) {
        const double term = weight(at) * (at % 3 == 1 ? 1e5 : 1) * states[at].slope;
        sum += term;
        size += std::fabs(term);
      }
      const double ours =
          column < 3 ? found.initial_states[3 * i + column] : found.parameters[3 * i + column - 3] * given[column - 3];
      EXPECT_GT(size, 1e-3);
      EXPECT_NEAR(ours, sum, 1e-9 * size) << "trajectory " << i << ", column " << column;
    }
  }
}

// Against float64 with other steps: both within their tolerances, 1e-4 in float32.
TEST(LinearlyImplicitGradient, float32_serves_too) {
  const Problem problem = reactions(3);
  Options options = for_reactions(Precision::f32);
  options.rtol = 1e-4;
  const Gradients found = solve_with_gradients(problem, options, TrajectoryLoss(weighed_by_species));
  options.precision = Precision::f64;
  options.rtol = 1e-7;
  const Gradients exact = solve_with_gradients(problem, options, TrajectoryLoss(weighed_by_species));
  for (std::size_t i = 0; i < found.parameters.size(); ++i)
    EXPECT_NEAR(found.parameters[i] / exact.parameters[i], 1, 5e-3) << i;
}

// A body that falls towards a floor, and a pointer that follows it at once; p = (gravity, drag, share of the speed that
// a bounce leaves).
//   x' = v,  v' = k (2 cos(t) - v tanh(v)) - g,  s' = r (1 + 0.2 steps(t)) (x + 0.1 t - s)
graph::Graph falling_body(double r) {
  GraphMaker made({{"u", 0, 3}, {"p", 1, 3}, {"t", 2, 1}});
  const auto scaled = [&](std::size_t a, double by) { return made.node(graph::Rescale{{by}, {0}}, {a}); };
  using enum graph::BinaryKind;
  const std::size_t x = made.column(0, 0), v = made.column(0, 1), s = made.column(0, 2);
  const std::size_t drag = made.binary(multiply, v, made.node(graph::Activate{{ActivationKind::tanh}}, {v}));
  const std::size_t push = scaled(made.node(graph::Unary{graph::UnaryKind::cosine}, {2}), 2);
  const std::size_t force = made.binary(
      subtract, made.binary(multiply, made.column(1, 1), made.binary(subtract, push, drag)), made.column(1, 0));
  const std::size_t rate = made.node(graph::Rescale{{0.2 * r}, {r}}, {made.node(table(kKnots, kValues, true), {2})});
  const std::size_t followed =
      made.binary(multiply, rate, made.binary(subtract, made.binary(add, x, scaled(2, 0.1)), s));
  made.outputs = {{"du", made.node(graph::Concatenate{}, {v, force, followed}), 3}};
  return made;
}

Problem bodies(std::size_t count, double rate = 1000) {
  Problem problem{.rhs = net(falling_body(rate)), .end_times = {1.6}, .save_times = {0, 0.2, 0.9, 1.6}};
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i % 29);
    for (const double u : {1 + 0.02 * x, 0.5 - 0.03 * x, 1.0}) problem.initial_states.push_back(u);
    for (const double p : {9.81 + 0.05 * x, 0.2 + 0.01 * x, 0.8 - 0.002 * x}) problem.parameters.push_back(p);
  }
  return problem;
}
Problem bouncing(std::size_t count) {
  Problem problem = bodies(count);
  problem.resets = {
      {differentiable_event_function<3, 3>("height", [](auto, const auto& u, const auto&) { return u[0]; }),
       differentiable_reset_function<3, 3>("bounce",
                                           [](auto, const auto& u, const auto& p, auto& next) {
                                             next[0] = 0 * u[0];
                                             next[1] = -p[2] * u[1];
                                             next[2] = u[2];
                                           }),
       TerminalEvent::Direction::falling}};
  problem.impulses = {{0.35, 1, 0.5, 0.75}, {1.2, 1, 0.25}};
  return problem;
}
Problem backwards(std::size_t count) {
  Problem problem = bodies(count, 1);  // what follows runs away
  problem.start_times = {1.6};
  problem.end_times = {0};
  std::ranges::reverse(problem.save_times);
  return problem;
}
Problem landing(std::size_t count) {
  Problem problem = bodies(count);
  problem.event = TerminalEvent{differentiable_event_function<3, 3>(
      "height", [](auto, const auto& u, const auto& p) { return u[0] - 0.1 * p[2]; })};
  return problem;
}

double weighted_end(std::size_t trajectory, std::span<const double> states, const TrajectoryEnd& end,
                    EndSlopes& slopes) {
  double sum = 2 * end.time;
  slopes.end_time = 2;
  for (std::size_t c = 0; c < 3; ++c) {
    slopes.end_state[c] = 1 + static_cast<double>(c);
    sum += slopes.end_state[c] * end.state[c];
  }
  for (std::size_t at = 0; at < states.size(); ++at) {
    if (std::isnan(states[at])) continue;
    slopes.states[at] = coefficient(trajectory, at);
    sum += slopes.states[at] * states[at];
  }
  return sum;
}

struct Turn {
  const char* name;
  Problem problem;
  StepControl control;
};
std::vector<Turn> turns(std::size_t count) {
  return {{"bodies", bodies(count), StepControl::per_trajectory},
          {"bodies, common steps", bodies(count), StepControl::common},
          {"bodies, fixed steps", bodies(count), StepControl::fixed},
          {"bodies, backwards", backwards(count), StepControl::per_trajectory},
          {"bouncing", bouncing(count), StepControl::per_trajectory},
          {"landing", landing(count), StepControl::per_trajectory},
          {"landing, fixed steps", landing(count), StepControl::fixed}};
}

// Both are sums of the same products in other orders; a step's solutions lose up to 2 digits beside those of problems
// that are not stiff, for which gradient_test.cpp has 1e-12 of the sum of magnitudes.
TEST(LinearlyImplicitGradient, forwards_and_backwards_agree_through_events_resets_and_impulses) {
  for (const auto& [name, problem, control] : turns(37)) {
    const Options options = implicit_options(control);
    const Gradients back = solve_with_gradients(problem, options, EndLoss(weighted_end));
    const Sensitivities forward = solve_with_sensitivities(problem, options);
    const std::size_t row = 3 * problem.save_points();
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      for (std::size_t d = 0; d < 6; ++d) {
        const std::size_t j = d % 3;
        const auto pick = [&](const Numbers& by_state, const Numbers& by_parameter, std::size_t at) {
          return (d < 3 ? by_state : by_parameter)[at * 3 + j];
        };
        double sum = 0, size = 0;
        const auto add = [&](double coefficient, double slope) {
          if (std::isnan(slope)) return;  // never reached
          sum += coefficient * slope;
          size += std::fabs(coefficient * slope);
        };
        add(2, pick(forward.end_time_by_initial_state, forward.end_time_by_parameter, i));
        for (std::size_t c = 0; c < 3; ++c)
          add(1 + static_cast<double>(c),
              pick(forward.end_state_by_initial_state, forward.end_state_by_parameter, 3 * i + c));
        for (std::size_t at = 0; at < row; ++at)
          add(coefficient(i, at), pick(forward.by_initial_state, forward.by_parameter, i * row + at));
        const double ours = d < 3 ? back.initial_states[3 * i + j] : back.parameters[3 * i + j];
        EXPECT_NEAR(ours, sum, 1e-10 * (1e-3 + size)) << name << ", trajectory " << i << ", column " << d;
      }
    }
  }
}

// Central differences of solves at 1e-11: their error is the solves', some 1e-10, over 2e-4, and 1e-8 of third
// derivatives of a loss of some ten.
TEST(LinearlyImplicitGradient, is_that_of_differences_of_solves) {
  for (const auto& [name, problem, control] : turns(1)) {
    Options options = implicit_options(control, 1e-11);
    if (control == StepControl::fixed) options.dt = 0.01;  // the same steps: no error of solves
    const Gradients found = solve_with_gradients(problem, options, EndLoss(weighted_end));
    Problem moved = problem;
    const auto expect = [&, &name = name](double& number, double ours, std::size_t column) {
      const double expected = slope(
          number, [&] { return solve_with_gradients(moved, options, EndLoss(weighted_end)).loss; }, 1e-4);
      EXPECT_NEAR(ours, expected, 1e-6) << name << ", column " << column;
    };
    for (std::size_t j = 0; j < 3; ++j) {
      expect(moved.initial_states[j], found.initial_states[j], j);
      expect(moved.parameters[j], found.parameters[j], 3 + j);
    }
  }
}

TEST(LinearlyImplicitGradient, has_the_same_bits_on_any_threads_targets_and_memory) {
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    for (const auto& [name, problem, control] : turns(101)) {
      Options options = implicit_options(control, precision == Precision::f32 ? 1e-4 : 1e-7);
      options.precision = precision;
      const auto gradients = [&, &problem = problem](std::size_t bytes) {
        return solve_with_gradients(problem, options, EndLoss(weighted_end), {.memory_bytes = bytes});
      };
      constexpr std::size_t kPlenty = std::size_t{1} << 30;
      const Gradients one = gradients(kPlenty);
      EXPECT_EQ(one.left_out, 0u);
      const auto expect_one = [&, &name = name](const Gradients& found, const std::string& what) {
        EXPECT_EQ(found.loss, one.loss) << name << what;
        EXPECT_EQ(found.initial_states, one.initial_states) << name << what;
        EXPECT_EQ(found.parameters, one.parameters) << name << what;
      };
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{60'000}, std::size_t{400'000}})
        expect_one(gradients(bytes), ", " + std::to_string(bytes) + " bytes");
      options.threads = 3;
      expect_one(gradients(kPlenty), ", three threads");
      options.threads = 1;
      for (const CpuTarget target : available_cpu_targets()) {
        options.cpu_target = target;
        expect_one(gradients(kPlenty), ", " + std::string(to_string(target)));
      }
    }
  }
}

// A part of an ensemble has the bits of the whole; a trajectory that fails beside others does not touch them.
TEST(LinearlyImplicitGradient, of_a_trajectory_depends_on_it_alone) {
  Problem problem = bodies(40);
  const Options options = implicit_options(StepControl::per_trajectory);
  const Gradients whole = solve_with_gradients(problem, options, TrajectoryLoss(weighted_sum));
  const Gradients part = solve_with_gradients(problem.part(7, 5), options, TrajectoryLoss(weighted_sum));
  problem.parameters[3 * 9] = 1.7e308;  // its speed overflows
  const Gradients beside = solve_with_gradients(problem, options, TrajectoryLoss(weighted_sum));
  EXPECT_EQ(beside.left_out, 1u);
  for (std::size_t at = 0; at < 15; ++at) {
    EXPECT_EQ(part.initial_states[at], whole.initial_states[21 + at]) << at;
    EXPECT_EQ(part.parameters[at], whole.parameters[21 + at]) << at;
    const bool failed = at / 3 == 2;  // trajectory 9
    EXPECT_EQ(beside.initial_states[21 + at], failed ? 0 : whole.initial_states[21 + at]) << at;
    EXPECT_EQ(beside.parameters[21 + at], failed ? 0 : whole.parameters[21 + at]) << at;
  }
}

TEST(LinearlyImplicitGradient, what_has_no_second_derivatives_says_so) {
  Problem problem = ensemble(pendulum_case(), 2);
  const Options options = implicit_options(StepControl::per_trajectory);
  const auto expected = HasSubstr("problem.rhs: found function pendulum, which has no second derivatives");
  EXPECT_THAT(message_of([&] { solve_with_gradients(problem, options, TrajectoryLoss(linear_loss)); }), expected);
  EXPECT_THAT(message_of([&] { solve_with_sensitivities(problem, options); }), expected);
  EXPECT_NO_THROW(solve(problem, options));
}

}  // namespace
}  // namespace lockstep::ode

#include "lockstep/ode/guard.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// du/dt = net(u) with one weight: u(t) = e^t u0.
Rhs growth() { return net({.layers = {{1, 1, {1.0}, {0.0}, {}}}}); }

// Starts at 0.5, 0.9, 1.5 and -2; e = 2.718 takes the second beyond 2 at t = ln(2 / 0.9), never the first.
Problem problem() {
  Problem problem;
  problem.rhs = growth();
  problem.initial_states = {0.5, 0.9, 1.5, -2};
  problem.end_times = {1};
  problem.save_times = {0, 0.5, 1};
  return problem;
}
const Range kRange{{-1}, {2}};
const Options kOptions{.rtol = 1e-10, .atol = 1e-10, .precision = Precision::f64, .threads = 1};

struct Result {
  Solution solution;
  Summary summary;
  std::vector<Excursion> excursions = {};
};

Result guarded(Problem problem, GuardAction action) {
  if (action == GuardAction::stop) problem.event = leaves_range(problem.rhs, kRange);
  Result result{Solution(Precision::f64, problem.trajectories(), 1, problem.save_times, false), {}};
  MemorySink memory(result.solution);
  GuardedSink sink(memory, problem, Precision::f64, kRange, action);
  result.summary = solve(problem, kOptions, sink, {});
  sink.correct(result.summary);
  result.excursions = sink.excursions();
  return result;
}

TEST(Guard, flag_changes_statuses_and_no_state) {
  const Solution plain = solve(problem(), kOptions);
  const Result flagged = guarded(problem(), GuardAction::flag);
  const Status expected[] = {Status::success, Status::outside_range, Status::outside_range, Status::outside_range};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(flagged.solution.record(i).status, expected[i]) << i;
    EXPECT_EQ(flagged.solution.record(i).end_time, 1);
    for (std::size_t time = 0; time < 3; ++time) EXPECT_EQ(flagged.solution.state(i, time, 0), plain.state(i, time, 0));
  }
  EXPECT_EQ(flagged.summary.count_of[static_cast<std::size_t>(Status::success)], 1u);
  EXPECT_EQ(flagged.summary.count_of[static_cast<std::size_t>(Status::outside_range)], 3u);
}

TEST(Guard, stop_ends_a_trajectory_where_it_leaves) {
  const Result stopped = guarded(problem(), GuardAction::stop);
  EXPECT_EQ(stopped.solution.record(0).status, Status::success);
  EXPECT_EQ(stopped.solution.record(1).status, Status::outside_range);
  // The solution is known to the tolerance; the interpolant's error at rtol 1e-10 is of its order.
  EXPECT_NEAR(stopped.solution.record(1).end_time, std::log(2 / 0.9), 1e-8);
  EXPECT_NEAR(stopped.solution.end_state(1, 0), 2, 1e-8);
  EXPECT_TRUE(std::isnan(stopped.solution.state(1, 2, 0)));
  EXPECT_FALSE(std::isnan(stopped.solution.state(1, 1, 0)));
  EXPECT_EQ(stopped.summary.count_of[static_cast<std::size_t>(Status::outside_range)], 3u);
  EXPECT_EQ(stopped.summary.count_of[static_cast<std::size_t>(Status::terminated)], 0u);
}

TEST(Guard, stop_ends_a_trajectory_that_starts_outside_at_its_start) {
  const Result stopped = guarded(problem(), GuardAction::stop);
  EXPECT_EQ(stopped.solution.record(3).status, Status::outside_range);
  EXPECT_EQ(stopped.solution.record(3).end_time, 0);
  EXPECT_EQ(stopped.solution.end_state(3, 0), -2);
  EXPECT_EQ(stopped.solution.state(3, 0, 0), -2);
  EXPECT_TRUE(std::isnan(stopped.solution.state(3, 1, 0)));
}

TEST(Guard, a_bound_itself_is_inside) {
  Problem at_bound = problem();
  at_bound.initial_states = {-1};
  at_bound.end_times = {-1};  // backwards, towards zero
  at_bound.save_times = {0, -1};
  for (const GuardAction action : {GuardAction::flag, GuardAction::stop}) {
    EXPECT_EQ(guarded(at_bound, action).solution.record(0).status, Status::success) << to_string(action);
  }
}

TEST(Guard, clamp_evaluates_the_net_at_the_nearest_point_of_its_range) {
  Problem clamped = problem();
  clamped.rhs = clamp_to_range(growth(), kRange);
  const Solution solution = solve(clamped, kOptions);
  // Beyond 2 the rate stays 2: u = 2 + 2 (t - ln(2 / u0)); below -1 it is -1: u = -2 - t. The kink costs the method
  // some digits of its tolerance.
  EXPECT_NEAR(solution.state(2, 2, 0), 2 + 2 * (1 - std::log(2 / 1.5)), 1e-8);
  EXPECT_NEAR(solution.state(3, 2, 0), -3, 1e-8);
  EXPECT_EQ(solution.state(0, 2, 0), solve(problem(), kOptions).state(0, 2, 0));
  EXPECT_NE(clamped.rhs->digest(), growth()->digest());
}

// L = u(1) of each of the four, and of each alone: of a full tile and of lanes that stand idle.
TEST(Guard, clamp_has_the_derivatives_of_what_it_computes) {
  Problem clamped = problem();
  clamped.rhs = clamp_to_range(growth(), kRange);
  const double e = std::exp(1.0);
  // u(1) is e u0 of the first, 2 + 2 (1 - log(2 / u0)) of those that reach 2, and u0 - 1 of the last. The weight w and
  // the bias b of u' = w u + b: e u0 + ... of the first, and u0 - w + b of the last.
  const double by_u0[] = {e, 2 / 0.9, 2 / 1.5, 1};
  const auto last = [](std::size_t, std::span<const double> states, std::span<double> slopes) {
    slopes.back() = 1;
    return states.back();
  };
  const Gradients all = solve_with_gradients(clamped, kOptions, TrajectoryLoss(last));
  ASSERT_EQ(all.initial_states.size(), 4u);
  // Of the stages of the step that has the kink in it some are inside and some are not, in parts that are not those of
  // the time: an error of that step's length, which its error of h^2 keeps near 1e-4 at this tolerance, times the
  // slopes' difference of 1.
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(all.initial_states[i], by_u0[i], i == 1 || i == 2 ? 1e-3 : 1e-8) << i;
  for (const std::size_t i : {0U, 3U}) {
    Problem one = clamped;
    one.initial_states = {clamped.initial_states[i]};
    const Gradients alone = solve_with_gradients(one, kOptions, TrajectoryLoss(last));
    EXPECT_NEAR(alone.initial_states[0], by_u0[i], 1e-8);
    ASSERT_EQ(alone.weights.size(), 2u);
    EXPECT_NEAR(alone.weights[0], i == 0 ? 0.5 * e : -1, 1e-8);
    EXPECT_NEAR(alone.weights[1], i == 0 ? e - 1 : 1, 1e-8);
  }
}

// As the linearly implicit method asks for them: differences of solves on the same fixed steps, some of them beyond the
// range. A step of 3e-6 leaves 1e-12 of third derivatives of some thousand, and 1e-15 over 3e-6.
TEST(Guard, clamp_has_second_derivatives_too) {
  Problem clamped{
      .initial_states = {0.2, 0.5, -0.4, 1.5}, .parameters = {0.7, 1.2}, .end_times = {2}, .save_times = {2}};
  const Mlp mlp{.layers = {{4,
                            3,
                            {1, 0.5, -1, 0.3, -0.4, 1.2, 0.6, -0.2, 0.8, -0.7, 0.4, 0.9},
                            {0.1, -0.2, 0.3},
                            {ActivationKind::tanh, 0}},
                           {3, 2, {1.5, -0.8, 0.9, 0.7, 1.1, -1.3}, {0.4, 0.2}, {}}}};
  clamped.rhs = clamp_to_range(net(mlp, {.with_time = true}), {{-0.5, -kInfinity, 0}, {0.8, 1.2, 1}});
  Options options = kOptions;
  options.method = "rodas5p";
  options.control = StepControl::fixed;
  options.dt = 0.1;
  GradientSolver solver(clamped, options, TrajectoryLoss([](std::size_t i, auto states, auto slopes) {
                          slopes[0] = 1 + static_cast<double>(i);
                          slopes[1] = 0.5;
                          return slopes[0] * states[0] + slopes[1] * states[1];
                        }));
  std::vector<double> weights = clamped.rhs->weights();
  const Gradients found = solver.evaluate(weights);
  const auto expect = [&](double& number, double ours, const auto& loss) {
    const double at = number, step = 3e-6;
    number = at + step;
    const double above = loss();
    number = at - step;
    const double below = loss();
    number = at;
    EXPECT_NEAR(ours, (above - below) / (2 * step), 1e-8);
  };
  for (std::size_t i = 0; i < weights.size(); ++i)
    expect(weights[i], found.weights[i], [&] { return solver.evaluate_loss(weights).loss; });
  std::vector<double> states = clamped.initial_states;
  for (std::size_t i = 0; i < states.size(); ++i) {
    expect(states[i], found.initial_states[i], [&] {
      solver.set_initial_states(states);
      return solver.evaluate_loss(weights).loss;
    });
  }
  EXPECT_EQ(found.parameters[1], 0);
  EXPECT_NE(found.parameters[0], 0);
}

// u' = p, with p clamped to at most 2.
TEST(Guard, nothing_depends_on_a_parameter_that_is_clamped) {
  Problem clamped;
  clamped.rhs = clamp_to_range(net({.layers = {{2, 1, {0.0, 1.0}, {0.0}, {}}}}), {{-kInfinity, 0}, {kInfinity, 2}});
  clamped.initial_states = {1, 1};
  clamped.parameters = {1, 3};
  clamped.end_times = {1};
  clamped.save_times = {1};
  const Gradients found =
      solve_with_gradients(clamped, kOptions, TrajectoryLoss([](std::size_t, auto states, auto slopes) {
                             slopes[0] = 1;
                             return states[0];
                           }));
  EXPECT_NEAR(found.parameters[0], 1, 1e-12);
  EXPECT_EQ(found.parameters[1], 0);
  EXPECT_THAT(found.initial_states, ::testing::ElementsAre(1, 1));
  const Sensitivities all = solve_with_sensitivities(clamped, kOptions);
  EXPECT_NEAR(all.by_parameter[0], 1, 1e-12);
  EXPECT_EQ(all.by_parameter[1], 0);
}

TEST(Guard, parameters_outside_are_outside_from_the_start) {
  Problem with_parameter;
  with_parameter.rhs = net({.layers = {{2, 1, {1.0, 1.0}, {0.0}, {}}}});
  with_parameter.initial_states = {0, 0};
  with_parameter.parameters = {0.5, 3};
  with_parameter.end_times = {1};
  with_parameter.save_times = {1};
  Solution solution(Precision::f64, 2, 1, with_parameter.save_times, false);
  MemorySink memory(solution);
  GuardedSink sink(memory, with_parameter, Precision::f64, {{-5, 0}, {5, 1}}, GuardAction::flag);
  solve(with_parameter, kOptions, sink, {});
  EXPECT_EQ(solution.record(0).status, Status::success);
  EXPECT_EQ(solution.record(1).status, Status::outside_range);
}

TEST(Guard, excursions_tell_which_input_left_in_how_many_trajectories_and_how_far) {
  const std::vector<Excursion> flagged = guarded(problem(), GuardAction::flag).excursions;
  ASSERT_EQ(flagged.size(), 1u);
  EXPECT_EQ(flagged[0].input, 0u);
  EXPECT_EQ(flagged[0].trajectories, 3u);
  EXPECT_NEAR(flagged[0].value, -2 * std::exp(1), 1e-8);  // farther below -1 than 1.5 e is above 2
  EXPECT_NEAR(flagged[0].widths, (2 * std::exp(1) - 1) / 3, 1e-8);

  const std::vector<Excursion> stopped = guarded(problem(), GuardAction::stop).excursions;
  ASSERT_EQ(stopped.size(), 1u);
  EXPECT_EQ(stopped[0].trajectories, 3u);
  EXPECT_EQ(stopped[0].value, -2);  // where the one starts that is outside from its start

  Problem inside = problem();
  inside.initial_states = {0.5, 0.1};
  EXPECT_TRUE(guarded(inside, GuardAction::flag).excursions.empty());
  EXPECT_TRUE(guarded(inside, GuardAction::stop).excursions.empty());
}

TEST(Guard, excursions_do_not_count_a_bound_that_rounds_outwards) {
  Problem two;
  two.rhs = net({.layers = {{2, 2, {0.0, 0.0, 0.0, 1.0}, {0.0, 0.0}, {}}}});
  two.initial_states = {0.1, 1};  // float(0.1) is above 0.1
  two.end_times = {1};
  two.save_times = {1};
  Solution solution(Precision::f32, 1, 2, two.save_times, false);
  MemorySink memory(solution);
  GuardedSink sink(memory, two, Precision::f32, {{0, 0}, {0.1, kInfinity}}, GuardAction::flag);
  solve(two, {.precision = Precision::f32, .threads = 1}, sink, {});
  EXPECT_TRUE(sink.excursions().empty());
  GuardedSink bounded(memory, two, Precision::f32, {{0, -kInfinity}, {0.1, 2}}, GuardAction::flag);
  solve(two, {.precision = Precision::f32, .threads = 1}, bounded, {});
  ASSERT_EQ(bounded.excursions().size(), 1u);
  EXPECT_EQ(bounded.excursions()[0].input, 1u);
  EXPECT_NEAR(bounded.excursions()[0].widths, (std::exp(1) - 2) / 2, 1e-5);
}

TEST(Guard, ranges_that_do_not_fit_are_refused) {
  EXPECT_THROW(clamp_to_range(growth(), {{}, {}}), Error);
  EXPECT_THROW(leaves_range(growth(), {{0, 0}, {1, 1}}), Error);
  EXPECT_THROW(clamp_to_range(nullptr, {{0}, {1}}), Error);
  EXPECT_THROW(leaves_range(nullptr, {{0}, {1}}), Error);
  EXPECT_FALSE((Range{{-kInfinity}, {kInfinity}}.bounded()));
  EXPECT_TRUE((Range{{-kInfinity}, {3}}.bounded()));
}

}  // namespace
}  // namespace lockstep::ode

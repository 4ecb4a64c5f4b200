// Steps that end where a trajectory's own parameters let the right-hand side jump: doses at a time of each patient.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/detail/stops.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/jumps.h"
#include "lockstep/ode/trained_parameters.h"

namespace lockstep::ode {
namespace {

using ::testing::ElementsAre;
using testing::exact;
using testing::expect_same;
using testing::kKnots;
using testing::kValues;
using testing::table;
using testing::tight;

// u' = s(t - p1) - p0 u.
Rhs delayed() {
  graph::Graph g;
  g.inputs = {{"u", 0, 1}, {"p", 1, 2}, {"t", 2, 1}};
  g.nodes = {{"rate", graph::Columns{{0}}, {1}},
             {"delay", graph::Columns{{1}}, {1}},
             {"since", graph::Binary{graph::BinaryKind::subtract}, {2, 4}},
             {"s.table", table(kKnots, kValues, true), {5}},
             {"decay", graph::Binary{graph::BinaryKind::multiply}, {3, 0}},
             {"du", graph::Binary{graph::BinaryKind::subtract}, {6, 7}}};
  g.outputs = {{"du", 8, 1}};
  return net(std::move(g));
}

// Spans both ways; delays from 0 on, `between` apart, some by which all jumps lie outside.
Problem delays(std::size_t count = 45, double between = 0.1) {
  Problem problem;
  problem.rhs = delayed();
  problem.start_times.clear();
  problem.end_times.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const double start = i % 3 == 2 ? 5 : 0, end = 5 - start;
    problem.initial_states.push_back(1 + 0.01 * static_cast<double>(i));
    problem.parameters.push_back(0.5 + 0.01 * static_cast<double>(i % 20));
    problem.parameters.push_back(between * static_cast<double>(i));
    problem.start_times.push_back(start);
    problem.end_times.push_back(end);
    for (const double share : {0.25, 0.75, 1.0}) problem.save_times.push_back(start + share * (end - start));
  }
  problem.save_times_per_trajectory = true;
  return problem;
}

double exact_of(const Problem& problem, std::size_t i, double end) {
  const double rate = problem.parameters[2 * i], delay = problem.parameters[2 * i + 1];
  return exact(problem.initial_states[i], problem.start_times[i] - delay, end - delay, rate);
}

// Bounds as in stops_test.cpp; the way back grows by exp(0.7 x 5) at most, as there.
TEST(MovedStops, every_trajectory_is_exact_to_the_tolerance) {
  const Problem problem = delays();
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    const Solution solution = solve(problem, tight(precision));
    const double bound = precision == Precision::f64 ? 1e-8 : 1e-3;
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      ASSERT_EQ(solution.record(i).status, Status::success);
      EXPECT_LE(solution.record(i).rejected, 6) << i;
      for (std::size_t k = 0; k < 3; ++k) {
        const double expected = exact_of(problem, i, problem.save_times_of(i)[k]);
        EXPECT_NEAR(solution.state(i, k, 0), expected, bound * std::max(1.0, std::fabs(expected))) << i << ", " << k;
      }
    }
  }
}

TEST(MovedStops, the_engine_has_the_bits_of_the_reference_whatever_the_split) {
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    for (const std::string_view name : method_names()) {
      Options options = tight(precision);
      options.method = name;
      if (method(name).error.empty()) {
        options.control = StepControl::fixed;
        options.dt = 0.05;  // ends at every other delay's jumps
      } else {
        options.rtol = options.atol = method(name).order < 4 ? 1e-4 : 1e-6;
      }
      const Problem problem = delays();
      const Solution expected = solve_reference(problem, options);
      expect_same(solve(problem, options), expected, std::string(name));
      options.threads = 2;
      options.cpu_target = CpuTarget::scalar;
      expect_same(solve(problem, options), expected, std::string(name) + ", another target");
      for (const std::size_t first : {0, 7, 44}) {
        const Problem part = problem.part(first, 1);
        const Solution alone = solve(part, options);
        EXPECT_EQ(alone.end_state(0, 0), expected.end_state(first, 0)) << name << ", " << first;
        EXPECT_EQ(alone.record(0).accepted, expected.record(first).accepted) << name << ", " << first;
      }
    }
    Problem many = delays(600, 0.01);  // by generated code
    many.save_times.clear();
    many.save_times_per_trajectory = false;
    expect_same(solve(many, tight(precision)), solve_reference(many, tight(precision)), "many");
    Problem together = delays();
    together.start_times = {0};
    together.end_times = {5};
    together.save_times = {1, 1.25, 2, 5};
    together.save_times_per_trajectory = false;
    Options common = tight(precision);
    common.control = StepControl::common;
    expect_same(solve(together, common), solve_reference(together, common), "common steps");
  }
}

// u' = s(p1 - max(t, 0)) - p0 u: what stands for unknown parameters meets no knot at all.
TEST(MovedStops, knots_that_few_parameters_reach_are_known_to_move) {
  graph::Graph g;
  g.inputs = {{"u", 0, 1}, {"p", 1, 2}, {"t", 2, 1}};
  g.nodes = {{"rate", graph::Columns{{0}}, {1}},
             {"start", graph::Columns{{1}}, {1}},
             {"zero", graph::Constant{{0}}, {}},
             {"since", graph::Binary{graph::BinaryKind::maximum}, {2, 5}},
             {"left", graph::Binary{graph::BinaryKind::subtract}, {4, 6}},
             {"s.table", table({1, 2, 3, 4}, {0, 1, 0, 2}, true), {7}},
             {"decay", graph::Binary{graph::BinaryKind::multiply}, {3, 0}},
             {"du", graph::Binary{graph::BinaryKind::subtract}, {8, 9}}};
  g.outputs = {{"du", 10, 1}};
  const Rhs rhs = net(std::move(g));
  EXPECT_TRUE(rhs->moves_knots());
  for (const double p1 : {20.0, -5.0}) {
    std::vector<double> times;
    for (const TimeKnot& knot : rhs->time_knots({0, 30}, std::vector<double>{0.5, p1})) {
      if (knot.time > 0 && knot.time < 30) times.push_back(knot.time);
    }
    std::ranges::sort(times);
    EXPECT_EQ(times, p1 > 0 ? std::vector<double>({16, 17, 18}) : std::vector<double>{});
  }
}

// Read at t p1, which is nowhere for p1 = 0: a trajectory without a stop makes the steps that it makes among others.
TEST(MovedStops, one_that_has_none_is_no_exception) {
  graph::Graph g;
  g.inputs = {{"u", 0, 1}, {"p", 1, 2}, {"t", 2, 1}};
  g.nodes = {{"speed", graph::Columns{{1}}, {1}},
             {"at", graph::Binary{graph::BinaryKind::multiply}, {2, 3}},
             {"s.table", table(kKnots, kValues, true), {4}},
             {"du", graph::Binary{graph::BinaryKind::subtract}, {5, 0}}};
  g.outputs = {{"du", 6, 1}};
  Problem problem = delays();
  problem.rhs = net(std::move(g));
  const Solution whole = solve(problem, tight());
  expect_same(whole, solve_reference(problem, tight()), "whole");
  for (const std::size_t i : {0, 1, 44}) {
    const Problem part = problem.part(i, 1);
    const detail::Stops stops(part, tight());
    EXPECT_EQ(std::isinf(stops.times(0).time[0]), i == 0);
    const Solution alone = solve(part, tight());
    EXPECT_EQ(alone.end_state(0, 0), whole.end_state(i, 0)) << i;
    EXPECT_EQ(alone.record(0).accepted, whole.record(i).accepted) << i;
  }
}

TEST(MovedStops, shared_parameters_move_those_of_all) {
  Problem problem = delays(40, 0);
  for (std::size_t i = 0; i < 40; ++i) problem.parameters[2 * i] = 0.5, problem.parameters[2 * i + 1] = 0.3;
  Problem shared = problem;
  shared.parameters = {0.5, 0.3};
  EXPECT_FALSE(detail::Stops(shared, tight()).differ());
  EXPECT_TRUE(detail::Stops(problem, tight()).differ());
  expect_same(solve(shared, tight()), solve(problem, tight()), "shared");
  const std::vector<double> times = stop_times(shared, tight());
  ASSERT_EQ(times.size(), 3u);  // the table begins with the value that it has before it
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_DOUBLE_EQ(times[i], kKnots[i + 1] + 0.3);
}

// Fixed steps of 0.05 miss the jumps of the second delay.
TEST(MovedStops, jumps_within_fixed_steps_are_found_in_each) {
  Options options;
  options.control = StepControl::fixed;
  options.dt = 0.05;
  options.precision = Precision::f64;
  EXPECT_FALSE(passed_jump(delays(40, 0.1), options, 40));
  const auto found = passed_jump(delays(40, 0.07), options, 40);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->trajectory, 1u);
  EXPECT_DOUBLE_EQ(found->time, kKnots[1] + 0.07);
}

// As in stops_test.cpp: d/du0 = exp(-p0 T), and two ways of derivatives agree.
TEST(MovedStops, derivatives_pass_jumps) {
  const Problem problem = delays(40);
  const std::size_t last = problem.save_points() - 1;
  const TrajectoryLoss end_state = [last](std::size_t, std::span<const double> states, std::span<double> bar) {
    bar[last] = 1;
    return states[last];
  };
  const Sensitivities forward = solve_with_sensitivities(problem, tight());
  const Gradients back = solve_with_gradients(problem, tight(), end_state);
  EXPECT_EQ(back.parameters, solve_with_gradients(problem, tight(), end_state, {.memory_bytes = 1}).parameters);
  const Solution solution = solve(problem, tight());
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    const double rate = problem.parameters[2 * i], span = problem.end_times[i] - problem.start_times[i];
    const double by_state = std::exp(-rate * span), size = std::max(1.0, by_state);
    EXPECT_NEAR(back.initial_states[i], by_state, 1e-8 * size) << i;
    EXPECT_NEAR(back.initial_states[i], forward.by_initial_state[i * (last + 1) + last], 1e-13 * size) << i;
    EXPECT_EQ(forward.states[i * (last + 1) + last], solution.state(i, last, 0)) << i;
    EXPECT_EQ(back.records[i].evaluations, solution.record(i).evaluations) << i;
  }
}

// u' = s(t - p), s made of lines between knots: du(T)/dp = s(t0 - p) - s(T - p), to rounding where steps end at the
// knots, and each takes the slope of its own side.
TEST(MovedStops, fixed_steps_that_end_at_bends_see_both_sides) {
  graph::Graph g;
  g.inputs = {{"u", 0, 1}, {"p", 1, 1}, {"t", 2, 1}};
  g.nodes = {{"since", graph::Binary{graph::BinaryKind::subtract}, {2, 1}},
             {"s.table", table(kKnots, kValues, false), {3}}};
  g.outputs = {{"du", 4, 1}};
  const auto level = [](double t) {
    std::size_t i = 0;
    while (i + 2 < kKnots.size() && t > kKnots[i + 1]) ++i;
    const double within = std::clamp(t, kKnots.front(), kKnots.back()) - kKnots[i];
    return kValues[i] + within * (kValues[i + 1] - kValues[i]) / (kKnots[i + 1] - kKnots[i]);
  };
  Problem problem;
  problem.rhs = net(std::move(g));
  problem.initial_states.assign(6, 0);
  problem.parameters = {0.2, 0.5, 1.4, 0.2, 0.5, 1.4};  // delays
  problem.start_times = {0, 0, 0, 4, 4, 4};
  problem.end_times = problem.save_times = {4, 4, 4, 0, 0, 0};
  problem.save_times_per_trajectory = true;
  const TrajectoryLoss end_state = [](std::size_t, std::span<const double> states, std::span<double> bar) {
    bar.back() = 1;
    return states.back();
  };
  for (const std::string_view name : method_names()) {
    Options options;
    options.method = name;
    options.control = StepControl::fixed;
    options.dt = 0.05;
    options.precision = Precision::f64;
    EXPECT_FALSE(passed_jump(problem, options, 6));
    expect_same(solve(problem, options), solve_reference(problem, options), std::string(name));
    if (method(name).is_linearly_implicit()) continue;
    const Sensitivities forward = solve_with_sensitivities(problem, options);
    const Gradients back = solve_with_gradients(problem, options, end_state);
    for (std::size_t i = 0; i < 6; ++i) {
      const double delay = problem.parameters[i];
      const double expected = level(problem.start_times[i] - delay) - level(problem.end_times[i] - delay);
      EXPECT_NEAR(back.parameters[i], expected, 1e-11) << name << ", " << i;
      EXPECT_NEAR(forward.by_parameter[i], expected, 1e-11) << name << ", " << i;
    }
  }
  Options passing;
  passing.control = StepControl::fixed;
  passing.dt = 0.07;
  EXPECT_FALSE(passed_jump(problem, passing, 6));  // bends are none
}

TEST(MovedStops, a_parameter_that_is_trained_moves_none) {
  const auto times = [](const Rhs& rhs, std::vector<double> parameters) {
    std::vector<double> found;
    for (const TimeKnot& knot : rhs->time_knots({0, 5}, parameters)) found.push_back(knot.time);
    return found;
  };
  EXPECT_TRUE(delayed()->moves_knots());
  EXPECT_TRUE(delayed()->time_knots({0, 5}, {}).empty());
  EXPECT_THAT(times(delayed(), {9, 1}), ElementsAre(2.25, 2.3, 3.7));
  EXPECT_THAT(times(train_parameters(delayed(), {{.parameter = 0, .start = 9}}), {1}), ElementsAre(2.25, 2.3, 3.7));
  EXPECT_THAT(times(train_parameters(delayed(), {{.parameter = 1, .start = 1}}), {9}), ElementsAre());
  EXPECT_TRUE(moves_a_jump(*delayed(), 1));
  EXPECT_FALSE(moves_a_jump(*delayed(), 0));
  EXPECT_THAT(times(sum(delayed(), delayed()), {9, 1, 9, 2}), ElementsAre(2.25, 2.3, 3.7, 3.25, 3.3, 4.7));
}

TEST(MovedStops, what_nothing_tells_is_known_to_be_hidden) {
  const auto compared = [](graph::Operation of_time, std::size_t with) {  // u' = f(t) < c, or < u
    graph::Graph g;
    g.inputs = {{"u", 0, 1}, {"p", 1, 1}, {"t", 2, 1}};
    g.nodes = {{"f", std::move(of_time), {2}},
               {"c", graph::Constant{{0.9}}, {}},
               {"du", graph::Binary{graph::BinaryKind::less}, {3, with}}};
    g.outputs = {{"du", 5, 1}};
    return net(std::move(g));
  };
  const graph::Operation sine = graph::Activate{{ActivationKind::sin, 0}},
                         negated = graph::Unary{graph::UnaryKind::negate};
  EXPECT_TRUE(compared(sine, 4)->hides_knots());
  EXPECT_TRUE(compared(sine, 1)->hides_knots());
  EXPECT_FALSE(compared(sine, 0)->hides_knots());  // the state has a part in it
  EXPECT_FALSE(compared(negated, 4)->hides_knots());
  EXPECT_FALSE(compared(negated, 1)->hides_knots());
  EXPECT_TRUE(compared(negated, 1)->moves_knots());
  EXPECT_FALSE(delayed()->hides_knots());
}

// u' = f(t) < c ? yes : no, made of x = f(t), with one more value beside it: the state, a parameter or the time.
Rhs chosen(graph::Operation of_time, double c, graph::Operation yes, graph::Operation no, std::size_t beside = 3) {
  graph::Graph g;
  g.inputs = {{"u", 0, 1}, {"p", 1, 1}, {"t", 2, 1}};
  const auto read = [&](const graph::Operation& operation) {
    if (std::holds_alternative<graph::Constant>(operation)) return std::vector<std::size_t>{};
    if (std::holds_alternative<graph::Binary>(operation)) return std::vector<std::size_t>{3, beside};
    return std::vector<std::size_t>{3};
  };
  const std::vector<std::size_t> by_yes = read(yes), by_no = read(no);
  g.nodes = {{"x", std::move(of_time), {2}},
             {"c", graph::Constant{{c}}, {}},
             {"below", graph::Binary{graph::BinaryKind::less}, {3, 4}},
             {"yes", std::move(yes), by_yes},
             {"no", std::move(no), by_no},
             {"du", graph::Select{}, {5, 6, 7}}};
  g.outputs = {{"du", 8, 1}};
  return net(std::move(g));
}

TEST(MovedStops, a_choice_of_what_agrees_where_it_switches_hides_nothing) {
  using graph::Binary;
  using graph::BinaryKind;
  const graph::Operation sine = graph::Activate{{ActivationKind::sin, 0}},
                         itself = graph::Activate{{ActivationKind::identity}},
                         square = graph::Activate{{ActivationKind::square}},
                         negated = graph::Unary{graph::UnaryKind::negate},
                         inverse = graph::Unary{graph::UnaryKind::reciprocal};
  const auto number = [](double value) { return graph::Constant{{value}}; };
  EXPECT_FALSE(chosen(sine, 0, negated, itself)->hides_knots());
  EXPECT_FALSE(chosen(sine, 0, number(0), square)->hides_knots());
  EXPECT_FALSE(chosen(sine, 0.1, number(0.1 * 0.1), square)->hides_knots());  // to rounding
  EXPECT_TRUE(chosen(sine, 0.1, number(0.1 * 0.1 + 1e-12), square)->hides_knots());
  EXPECT_TRUE(chosen(sine, 0.9, number(1), number(0))->hides_knots());
  EXPECT_TRUE(chosen(sine, 0.9, negated, itself)->hides_knots());
  EXPECT_TRUE(chosen(sine, 0, inverse, inverse)->hides_knots());  // no number there
  // What it is at the switch tells nothing of what it is beside it.
  EXPECT_TRUE(chosen(sine, 0, number(1), Binary{BinaryKind::equal})->hides_knots());
  // Of a state, a parameter or the time beside it, 0 times which is 0, nothing is taken for granted.
  for (const std::size_t beside : {0, 1, 2})
    EXPECT_TRUE(chosen(sine, 0, number(0), Binary{BinaryKind::multiply}, beside)->hides_knots()) << beside;
  EXPECT_TRUE(chosen(sine, 0, number(0), Binary{BinaryKind::multiply}, 5)->hides_knots());  // the comparison itself
}

TEST(MovedStops, a_choice_of_what_agrees_bends_where_the_time_tells) {
  const graph::Operation itself = graph::Activate{{ActivationKind::identity}},
                         negated = graph::Unary{graph::UnaryKind::negate}, shifted = graph::Rescale{{2}, {-3}};
  const Rhs bend = chosen(shifted, 0, negated, itself), jump = chosen(shifted, 0, graph::Constant{{1}}, itself);
  for (const auto& rhs : {bend, jump}) {
    for (const std::vector<double>& parameters : {std::vector<double>{}, {7}}) {
      const std::vector<TimeKnot> knots = rhs->time_knots({0, 3}, parameters);
      ASSERT_EQ(knots.size(), 1u);
      EXPECT_EQ(knots[0].time, 1.5);
      EXPECT_EQ(knots[0].jumps, rhs == jump);
    }
  }
}

// What jumps where a state passes a value is told from what bends there.
TEST(MovedStops, jumps_at_states_are_told_from_bends) {
  // u' = what `make` adds to the graph of a state u of two components and a parameter p.
  const auto jumps = [](const std::vector<graph::Node>& nodes) {
    graph::Graph g;
    g.inputs = {{"u", 0, 1}, {"p", 1, 1}, {"t", 2, 1}};
    g.nodes = nodes;
    g.outputs = {{"du", 2 + nodes.size(), 1}};
    const Rhs rhs = net(std::move(g));
    EXPECT_EQ(sum(rhs, rhs)->jumps_at_states(), rhs->jumps_at_states());
    EXPECT_EQ(train_parameters(rhs, {{.parameter = 0, .start = 1}})->jumps_at_states(), rhs->jumps_at_states());
    return rhs->jumps_at_states();
  };
  const graph::Node below{"below", graph::Binary{graph::BinaryKind::less}, {0, 1}};  // 3: u < p
  const graph::Node one{"one", graph::Constant{{1}}, {}};                            // 4
  const auto pick = [](std::size_t a, std::size_t b) { return graph::Node{"pick", graph::Select{}, {3, a, b}}; };
  EXPECT_TRUE(jumps({below}));
  EXPECT_TRUE(jumps({below, one, pick(0, 4)}));   // if(u < p, u, 1)
  EXPECT_FALSE(jumps({below, one, pick(0, 1)}));  // if(u < p, u, p)
  EXPECT_FALSE(jumps({below,
                      {"over", graph::Binary{graph::BinaryKind::subtract}, {0, 1}},
                      {"product", graph::Binary{graph::BinaryKind::multiply}, {3, 4}}}));  // (u < p) (u - p)
  EXPECT_FALSE(jumps({{"less", graph::Binary{graph::BinaryKind::less}, {2, 1}}}));         // t < p
  EXPECT_FALSE(jumps({{"least", graph::Binary{graph::BinaryKind::minimum}, {0, 1}}}));
  EXPECT_FALSE(jumps({{"size", graph::Unary{graph::UnaryKind::absolute}, {0}}}));
  EXPECT_FALSE(jumps({{"relu", graph::Activate{{ActivationKind::relu, 0}}, {0}}}));
  EXPECT_TRUE(jumps({{"hard", graph::DeadZone{-1, 1, 0}, {0}}}));
  EXPECT_FALSE(jumps({{"soft", graph::DeadZone{-1, 1, 1}, {0}}}));
  EXPECT_TRUE(jumps({{"whole", graph::Unary{graph::UnaryKind::floor}, {0}}}));
  EXPECT_TRUE(jumps({{"rest", graph::Binary{graph::BinaryKind::modulo}, {0, 1}}}));
  EXPECT_FALSE(jumps({{"day", graph::Binary{graph::BinaryKind::modulo}, {2, 1}}}));  // t % p
  EXPECT_FALSE(system("lorenz")->jumps_at_states());
}

}  // namespace
}  // namespace lockstep::ode

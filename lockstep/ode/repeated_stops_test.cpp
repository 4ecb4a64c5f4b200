// Steps that end where a right-hand side jumps again and again: doses every day, square waves, a table of one day.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/graph/testing/reference.h"
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

using graph::BinaryKind;
using graph::UnaryKind;
using ::testing::ElementsAre;
using testing::expect_same;
using ::testing::HasSubstr;
using testing::table;
using testing::tight;

// A right-hand side of one component u, parameters p and time, put together value by value.
struct Builder {
  graph::Graph graph;
  std::size_t u = 0, p = 1, t = 2;

  explicit Builder(std::size_t parameters = 1) { graph.inputs = {{"u", 0, 1}, {"p", 1, parameters}, {"t", 2, 1}}; }
  std::size_t add(graph::Operation operation, std::vector<std::size_t> inputs) {
    graph.nodes.push_back({"n" + std::to_string(graph.nodes.size()), std::move(operation), std::move(inputs)});
    return graph.inputs.size() + graph.nodes.size() - 1;
  }
  std::size_t number(double value) { return add(graph::Constant{{value}}, {}); }
  std::size_t parameter(std::size_t i) { return add(graph::Columns{{i}}, {p}); }
  std::size_t binary(BinaryKind kind, std::size_t a, std::size_t b) { return add(graph::Binary{kind}, {a, b}); }
  std::size_t unary(UnaryKind kind, std::size_t a) { return add(graph::Unary{kind}, {a}); }
  std::size_t modulo(std::size_t a, double b) { return binary(BinaryKind::modulo, a, number(b)); }
  std::size_t below(std::size_t a, double b) { return binary(BinaryKind::less, a, number(b)); }
  Rhs made(std::size_t du) {
    graph.outputs = {{"du", du, 1}};
    return net(graph);
  }
};

// u' = 3 (since % 24 < 2) - p0 u, since = t, or t - p1 with a lag.
Rhs infusions(bool with_lag = false) {
  Builder b(with_lag ? 2 : 1);
  const std::size_t since = with_lag ? b.binary(BinaryKind::subtract, b.t, b.parameter(1)) : b.t;
  const std::size_t on = b.below(b.modulo(since, 24), 2);
  const std::size_t given = b.add(graph::Select{}, {on, b.number(3), b.number(0)});
  const std::size_t lost = b.binary(BinaryKind::multiply, with_lag ? b.parameter(0) : b.p, b.u);
  return b.made(b.binary(BinaryKind::subtract, given, lost));
}

double exact_of(double u, double t, double end, double p, double lag = 0) {
  const double sign = end < t ? -1 : 1;
  while (t != end) {
    double next = end, middle = t + sign * 1e-6;
    for (double day = std::floor(std::min(t, end) / 24) - 2; day * 24 < std::max(t, end) + 48; ++day) {
      for (const double knot : {24 * day + lag, 24 * day + 2 + lag}) {
        if ((knot - t) * sign > 1e-9 && (next - knot) * sign > 0) next = knot;
      }
    }
    const double hour = middle - lag - 24 * std::floor((middle - lag) / 24), level = (hour < 2 ? 3 : 0) / p;
    u = level + (u - level) * std::exp(-p * (next - t));
    t = next;
  }
  return u;
}

// Spans of up to ten days, both ways, that begin and end within and between infusions.
Problem patients(bool with_lag = false, std::size_t count = 45) {
  Problem problem;
  problem.rhs = infusions(with_lag);
  problem.start_times.clear();
  problem.end_times.clear();
  const double starts[] = {0, 1, 24, 30.5}, ends[] = {240, 241.5, 200, 48, 26};
  for (std::size_t i = 0; i < count; ++i) {
    const bool back = i % 7 == 3;
    const double start = back ? 60 : starts[i % 4], end = back ? 23 : ends[i % 5];
    problem.initial_states.push_back(1 + 0.01 * static_cast<double>(i));
    problem.parameters.push_back(0.05 + 0.002 * static_cast<double>(i % 20));
    if (with_lag) problem.parameters.push_back(0.7 * static_cast<double>(i));
    problem.start_times.push_back(start);
    problem.end_times.push_back(end);
  }
  return problem;
}

// The error of a step is a few times the tolerance at most. Forwards errors fade at a rate of 0.05 and more: some 20
// steps count. Backwards they grow by exp(0.09 x 37) = 28.
TEST(RepeatedStops, every_infusion_is_met) {
  for (const bool with_lag : {false, true}) {
    const Problem problem = patients(with_lag);
    for (const Precision precision : {Precision::f64, Precision::f32}) {
      const Solution solution = solve(problem, tight(precision));
      // The time itself has float32's resolution, 1.5e-5 at 240, by which a rate of 3 sets in late or early.
      const double bound = precision == Precision::f64 ? 1e-9 : 4e-4;
      for (std::size_t i = 0; i < problem.trajectories(); ++i) {
        ASSERT_EQ(solution.record(i).status, Status::success);
        const std::size_t each = with_lag ? 2 : 1;
        const double expected = exact_of(problem.initial_states[i], problem.start_times[i], problem.end_times[i],
                                         problem.parameters[each * i], with_lag ? problem.parameters[each * i + 1] : 0);
        EXPECT_NEAR(solution.end_state(i, 0), expected, bound * std::max(1.0, std::fabs(expected))) << i << with_lag;
      }
    }
  }
}

TEST(RepeatedStops, ten_days_take_a_few_steps_a_jump_and_err_by_the_tolerance) {
  Problem problem = patients(false, 1);
  Options options;
  options.precision = Precision::f64;
  options.rtol = options.atol = 1e-8;
  const Solution solution = solve(problem, options);
  const double expected = exact_of(problem.initial_states[0], 0, 240, problem.parameters[0]);
  EXPECT_NEAR(solution.end_state(0, 0), expected, 3e-8);
  EXPECT_LE(solution.record(0).accepted, 180);  // 19 jumps
  EXPECT_LE(solution.record(0).rejected, 2);
  options.stop_at_knots = false;
  const Solution blind = solve(problem, options);
  EXPECT_GT(blind.record(0).rejected, 50);
  options.rtol = options.atol = 1e-4;
  EXPECT_GT(std::fabs(solve(problem, options).end_state(0, 0) - expected), 1e-4);
}

TEST(RepeatedStops, the_engine_has_the_bits_of_the_reference_whatever_the_split) {
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    for (const bool with_lag : {false, true}) {
      const Problem problem = patients(with_lag);
      for (const std::string_view name : method_names()) {
        Options options = tight(precision);
        options.method = name;
        if (method(name).error.empty()) {
          options.control = StepControl::fixed;
          options.dt = 0.5;
        } else {
          options.rtol = options.atol = method(name).order < 4 ? 1e-4 : 1e-6;
        }
        const Solution expected = solve_reference(problem, options);
        expect_same(solve(problem, options), expected, std::string(name));
        options.threads = 2;
        options.cpu_target = CpuTarget::scalar;
        expect_same(solve(problem, options), expected, std::string(name) + ", another target");
        for (std::size_t first = 0; first < problem.trajectories(); first += 4) {
          const Solution alone = solve(problem.part(first, 1), options);
          EXPECT_EQ(alone.end_state(0, 0), expected.end_state(first, 0)) << name << ", " << first;
          EXPECT_EQ(alone.record(0).accepted, expected.record(first).accepted) << name << ", " << first;
        }
      }
      Options common = tight(precision);
      common.control = StepControl::common;
      Problem together = patients(with_lag);
      together.start_times = {0};
      together.end_times = {100};
      expect_same(solve(together, common), solve_reference(together, common), "common steps");
      const Problem many = patients(with_lag, 600);  // by generated code
      expect_same(solve(many, tight(precision)), solve_reference(many, tight(precision)),
                  std::string(with_lag ? "many with lags in " : "many in ") + std::string(to_string(precision)));
    }
  }
}

// Where there are no infusions a trajectory alone makes the steps that it makes among others.
TEST(RepeatedStops, one_that_meets_none_is_no_exception) {
  Problem problem = patients();
  for (std::size_t i = 0; i < problem.trajectories(); i += 2) problem.start_times[i] = 3, problem.end_times[i] = 20;
  const Solution whole = solve(problem, tight());
  for (const std::size_t i : {0, 2, 44}) {
    const Problem part = problem.part(i, 1);
    EXPECT_TRUE(stop_times(part, tight()).empty());
    const Solution alone = solve(part, tight());
    EXPECT_EQ(alone.end_state(0, 0), whole.end_state(i, 0)) << i;
    EXPECT_EQ(alone.record(0).accepted, whole.record(i).accepted) << i;
  }
}

TEST(RepeatedStops, derivatives_pass_jumps) {
  Problem problem = patients(true, 40);
  for (std::size_t i = 0; i < 40; ++i) problem.save_times.push_back(problem.end_times[i]);
  problem.save_times_per_trajectory = true;
  const TrajectoryLoss end_state = [](std::size_t, std::span<const double> states, std::span<double> bar) {
    bar[0] = 1;
    return states[0];
  };
  const Sensitivities forward = solve_with_sensitivities(problem, tight());
  const Gradients back = solve_with_gradients(problem, tight(), end_state);
  const Solution solution = solve(problem, tight());
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    const double by_state = std::exp(-problem.parameters[2 * i] * (problem.end_times[i] - problem.start_times[i]));
    const double size = std::max(1.0, by_state);
    EXPECT_NEAR(back.initial_states[i], by_state, 1e-8 * size) << i;
    EXPECT_NEAR(back.initial_states[i], forward.by_initial_state[i], 1e-13 * size) << i;
    EXPECT_EQ(forward.states[i], solution.state(i, 0, 0)) << i;
  }
}

std::vector<double> times_of(const Rhs& rhs, TimeSpan span, std::vector<double> parameters = {}) {
  std::vector<double> times;
  for (const TimeKnot& knot : rhs->time_knots(span, parameters)) times.push_back(knot.time);
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  std::erase_if(times, [&](double time) { return time < span.first || time > span.last; });
  return times;
}

TEST(RepeatedStops, are_found_of_whole_parts_and_remainders) {
  const auto times = [](auto make, TimeSpan span) {
    Builder b;
    const std::size_t du = make(b);
    return times_of(b.made(du), span);
  };
  EXPECT_THAT(times([](Builder& b) { return b.unary(UnaryKind::floor, b.t); }, {0.5, 3}), ElementsAre(1, 2, 3));
  EXPECT_THAT(times([](Builder& b) { return b.unary(UnaryKind::round, b.t); }, {-1, 2}), ElementsAre(-0.5, 0.5, 1.5));
  EXPECT_THAT(times([](Builder& b) { return b.modulo(b.t, 0.5); }, {-0.25, 0.75}), ElementsAre(0, 0.5));
  EXPECT_THAT(times([](Builder& b) { return b.below(b.modulo(b.t, 24), 2); }, {1, 50}), ElementsAre(2, 24, 26, 48, 50));
  EXPECT_THAT(times([](Builder& b) { return b.below(b.modulo(b.t, -24), -22); }, {1, 50}),
              ElementsAre(2, 24, 26, 48, 50));
  // one hour of each day but every seventh
  EXPECT_THAT(times(
                  [](Builder& b) {
                    const std::size_t day =
                        b.modulo(b.unary(UnaryKind::floor, b.binary(BinaryKind::divide, b.t, b.number(24))), 7);
                    return b.binary(BinaryKind::multiply, b.below(day, 6), b.below(b.modulo(b.t, 24), 1));
                  },
                  {0.5, 30}),
              ElementsAre(1, 24, 25));
  // a remainder of a remainder; a triangle and what it is compared with
  EXPECT_THAT(times([](Builder& b) { return b.modulo(b.modulo(b.t, 24), 10); }, {1, 40}), ElementsAre(10, 20, 24, 34));
  const auto triangle = [](Builder& b) {
    return b.unary(UnaryKind::absolute, b.binary(BinaryKind::subtract, b.modulo(b.t, 2), b.number(1)));
  };
  EXPECT_THAT(times(triangle, {0.5, 4.5}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(times([&](Builder& b) { return b.below(triangle(b), 0.5); }, {0.25, 2.75}),
              ElementsAre(0.5, 1, 1.5, 2, 2.5));
  // a table of one day, level at night
  EXPECT_THAT(times(
                  [](Builder& b) {
                    return b.add(table({0, 6, 12, 18}, {0, 0, 1, 0}, false), {b.modulo(b.t, 24)});
                  },
                  {1, 40}),
              ElementsAre(6, 12, 18, 24, 30, 36));
  // every 12 from 48 on
  EXPECT_THAT(times(
                  [](Builder& b) {
                    const std::size_t since = b.binary(BinaryKind::subtract, b.t, b.number(48));
                    const std::size_t late = b.binary(BinaryKind::less_or_equal, b.number(48), b.t);
                    const std::size_t hour = b.add(graph::Select{}, {late, b.modulo(since, 12), b.number(5)});
                    return b.below(hour, 2);
                  },
                  {37, 61}),
              ElementsAre(48, 50, 60));
}

TEST(RepeatedStops, parameters_move_them) {
  Builder b(2);
  const Rhs rhs =
      b.made(b.binary(BinaryKind::modulo, b.binary(BinaryKind::subtract, b.t, b.parameter(0)), b.parameter(1)));
  EXPECT_TRUE(rhs->moves_knots());
  EXPECT_TRUE(rhs->repeats_knots());
  EXPECT_FALSE(rhs->hides_knots());
  EXPECT_THAT(times_of(rhs, {0, 30}), ElementsAre());
  EXPECT_THAT(times_of(rhs, {0, 30}, {3, 10}), ElementsAre(3, 13, 23));
  EXPECT_THAT(times_of(rhs, {0, 30}, {3, 0}), ElementsAre());
  EXPECT_TRUE(moves_a_jump(*rhs, 0) && moves_a_jump(*rhs, 1));
  EXPECT_FALSE(moves_a_jump(*infusions(true), 0));
  EXPECT_TRUE(moves_a_jump(*infusions(true), 1));
  EXPECT_FALSE(infusions()->moves_knots());
  const Rhs both = sum(infusions(), infusions(true));
  EXPECT_TRUE(both->moves_knots() && both->repeats_knots());
  EXPECT_THAT(times_of(both, {1, 28}, {0.1, 0.1, 0.5}), ElementsAre(2, 2.5, 24, 24.5, 26, 26.5));
  EXPECT_THAT(times_of(both, {1, 28}), ElementsAre(2, 24, 26));
  EXPECT_THAT(times_of(train_parameters(infusions(true), {{.parameter = 0, .start = 9}}), {1, 28}, {0.5}),
              ElementsAre(2.5, 24.5, 26.5));
}

TEST(RepeatedStops, what_nothing_tells_is_known_to_be_hidden) {
  const auto hides = [](auto make) {
    Builder b;
    const std::size_t du = make(b);
    return b.made(du)->hides_knots();
  };
  EXPECT_FALSE(hides([](Builder& b) { return b.unary(UnaryKind::floor, b.t); }));
  EXPECT_FALSE(hides([](Builder& b) { return b.unary(UnaryKind::floor, b.u); }));
  EXPECT_FALSE(hides([](Builder& b) { return b.below(b.modulo(b.t, 24), 2); }));
  EXPECT_TRUE(hides([](Builder& b) { return b.unary(UnaryKind::floor, b.unary(UnaryKind::cosine, b.t)); }));
  EXPECT_TRUE(hides([](Builder& b) { return b.binary(BinaryKind::modulo, b.number(24), b.t); }));
  EXPECT_TRUE(hides([](Builder& b) { return b.modulo(b.binary(BinaryKind::multiply, b.t, b.t), 24); }));
}

TEST(RepeatedStops, too_many_are_refused) {
  const auto refusal = [](double period, double end, Precision precision) {
    Builder b;
    Problem problem;
    problem.rhs = b.made(b.modulo(b.t, period));
    problem.initial_states = {0};
    problem.parameters = {0};
    problem.end_times = {end};
    Options options;
    options.precision = precision;
    return message_of([&] { solve(problem, options); });
  };
  EXPECT_THAT(refusal(1e-9, 3e7, Precision::f64), HasSubstr("jumps every 1e-09 of time, expected at most 2^20 times"));
  EXPECT_THAT(refusal(1e-3, 900, Precision::f32), HasSubstr("take precision f64, begin times nearer to 0"));
  EXPECT_EQ(refusal(1e-2, 10, Precision::f64), "no error");
}

// A rate of 1 for 2 of every 5 of time, at Unix times: by the time, and by that since a lag. Doubles lie 2.4e-7 apart.
TEST(RepeatedStops, a_short_span_far_from_time_0_lists_its_own) {
  for (const bool with_lag : {false, true}) {
    Builder b(2);
    const std::size_t since = with_lag ? b.binary(BinaryKind::subtract, b.t, b.parameter(0)) : b.t;
    const std::size_t on = b.below(b.binary(BinaryKind::modulo, since, b.parameter(1)), 2);
    Problem problem;
    problem.rhs = b.made(b.add(graph::Select{}, {on, b.number(1), b.number(0)}));
    problem.initial_states = {0, 0};
    problem.parameters = {1.7e9, 5, 1.7e9, 5};
    problem.start_times = {1.7e9};
    problem.end_times = {1.7e9 + 100};
    const Options options = tight();
    const detail::Stops stops(problem, options);
    EXPECT_LE(stops.most(1), 45) << with_lag;  // 41, and what lies within a rounding of its ends
    const Solution solution = solve(problem, options);
    EXPECT_NEAR(solution.end_state(1, 0), 40, 41 * 0x1p-22) << with_lag;
    EXPECT_LE(solution.record(1).rejected, 1) << with_lag;
    EXPECT_THAT(message_of([&] { solve(problem, tight(Precision::f32)); }), HasSubstr("take precision f64"));
    EXPECT_THAT(message_of([&] { solve(problem, tight(Precision::f32)); }), HasSubstr("jumps every 5 of time at"));
  }
}

// Of random functions that are lines piece by piece all pieces are found: between neighbouring times three numbers lie
// on one line. Numbers that lead to a whole one only by rounding are rare enough among those with such odd factors.
TEST(RepeatedStops, functions_of_lines_are_lines_between_them) {
  std::mt19937 random(20261126);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::size_t pieces = 0;
  for (int repeat = 0; repeat < 400; ++repeat) {
    Builder b;
    std::vector<std::size_t> values{b.t};
    const auto odd = [&] { return b.number(std::uniform_real_distribution<double>(-4, 4)(random) + 0.0173); };
    const auto some = [&] { return values[below(values.size())]; };
    while (values.size() < 9) {
      const std::size_t x = some();
      switch (below(9)) {
        case 0:
          values.push_back(b.unary(UnaryKind::floor, x));
          break;
        case 1:
          values.push_back(b.unary(UnaryKind::round, x));
          break;
        case 2:
          values.push_back(b.binary(BinaryKind::modulo, x, odd()));
          break;
        case 3:
          values.push_back(b.unary(UnaryKind::absolute, x));
          break;
        case 4:
          values.push_back(b.binary(below(2) == 0 ? BinaryKind::minimum : BinaryKind::maximum, x, some()));
          break;
        case 5:
          values.push_back(b.add(graph::Clip{-1.03, 2.07}, {x}));
          break;
        case 6:
          values.push_back(b.add(graph::Select{}, {b.binary(BinaryKind::less, some(), odd()), x, some()}));
          break;
        case 7:
          values.push_back(b.binary(BinaryKind::add, x, b.binary(BinaryKind::multiply, odd(), some())));
          break;
        default:
          values.push_back(b.binary(BinaryKind::multiply, odd(), x));
      }
    }
    const Rhs rhs = b.made(values.back());
    EXPECT_FALSE(rhs->hides_knots());
    std::vector<double> times = times_of(rhs, {-7.3, 11.1});
    times.insert(times.begin(), -7.3);
    times.push_back(11.1);
    for (std::size_t i = 0; i + 1 < times.size(); ++i) {
      const double width = times[i + 1] - times[i];
      if (width < 1e-6) continue;
      std::vector<double> at;
      for (const double share : {0.01, 0.5, 0.99}) {
        at.push_back(graph::testing::reference<double>(b.graph, {{0}, {0}, {times[i] + share * width}})[0][0]);
      }
      const double size = std::max({std::fabs(at[0]), std::fabs(at[2]), 1.0});
      ASSERT_NEAR(at[1], (at[0] + at[2]) / 2, 1e-9 * size)
          << "between " << times[i] << " and " << times[i + 1] << ", graph " << repeat;
      ++pieces;
    }
  }
  EXPECT_GT(pieces, 4000u);
}

}  // namespace
}  // namespace lockstep::ode

// Stops at the knots of long tables: those of a span, as if the knots of all times were told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ode/detail/graph_knots.h"
#include "lockstep/ode/detail/knots_of_inner.h"
#include "lockstep/ode/detail/stops.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/jumps.h"
#include "lockstep/ode/trained_parameters.h"

namespace lockstep::ode {
namespace {

using graph::BinaryKind;
using testing::expect_same;
using testing::table;
using testing::tight;

constexpr TimeSpan kAlways{-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};

class Forwarding : public detail::KnotsOfInner {
 public:
  using KnotsOfInner::KnotsOfInner;
  std::size_t components() const override { return inner_->components(); }
  std::size_t parameters() const override { return inner_->parameters(); }
  std::string description() const override { return inner_->description(); }
  std::string digest() const override { return inner_->digest(); }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override {
    return inner_->lower_f32(target);
  }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return inner_->lower_f64(target);
  }
  std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget target) const override {
    return inner_->differentiable_f32(target);
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return inner_->differentiable_f64(target);
  }
};

// The same with all its knots told whatever the span, as a function tells them that has few.
class TellsAll final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  bool has_many_knots() const override { return false; }
  std::vector<TimeKnot> time_knots(const TimeSpan& span, std::span<const double> parameters) const override {
    return inner_->time_knots(inner_->knot_bounds(parameters).repeats ? span : kAlways, parameters);
  }
};
Rhs telling_all(Rhs rhs) { return std::make_shared<TellsAll>(std::move(rhs)); }

// Counts the knots that a solve is told.
class Counting final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  std::vector<TimeKnot> time_knots(const TimeSpan& span, std::span<const double> parameters) const override {
    std::vector<TimeKnot> knots = inner_->time_knots(span, parameters);
    told += knots.size();
    return knots;
  }
  mutable std::size_t told = 0;
};

// u' = s(t p1 + p2) - p0 u, or without parameters s(t a + b) - u; `choose` reads the table before a time alone, and
// behind it at another one.
struct Reads {
  bool by_parameters = false;
  double factor = 1, offset = 0;
  bool choose = false;
};
Rhs driven(graph::Interpolate s, const Reads& reads) {
  graph::Graph g;
  g.inputs = {{"u", 0, 1}, {"p", 1, 3}, {"t", 2, 1}};
  const auto add = [&](graph::Operation operation, std::vector<std::size_t> inputs) {
    g.nodes.push_back({"n" + std::to_string(g.nodes.size()), std::move(operation), std::move(inputs)});
    return g.inputs.size() + g.nodes.size() - 1;
  };
  const auto number = [&](double value) { return add(graph::Constant{{value}}, {}); };
  const auto binary = [&](BinaryKind kind, std::size_t a, std::size_t b) { return add(graph::Binary{kind}, {a, b}); };
  const std::size_t factor = reads.by_parameters ? add(graph::Columns{{1}}, {1}) : number(reads.factor);
  const std::size_t offset = reads.by_parameters ? add(graph::Columns{{2}}, {1}) : number(reads.offset);
  std::size_t at = binary(BinaryKind::add, binary(BinaryKind::multiply, 2, factor), offset);
  if (reads.choose) {
    const std::size_t other = binary(BinaryKind::subtract, 2, number(0.25));
    at = add(graph::Select{}, {binary(BinaryKind::less, at, number(700)), at, other});
    at = binary(BinaryKind::minimum, at, binary(BinaryKind::subtract, number(1900), 2));
  }
  const std::size_t decay = binary(BinaryKind::multiply, add(graph::Columns{{0}}, {1}), 0);
  const std::size_t du = binary(BinaryKind::subtract, add(std::move(s), {at}), decay);
  g.outputs = {{"du", du, 1}};
  return net(std::move(g));
}

Rhs daily() {  // u' = t % 24, which jumps again and again
  graph::Graph g;
  g.inputs = {{"u", 0, 1}, {"t", 1, 1}};
  g.nodes = {{"24", graph::Constant{{24}}, {}}, {"hour", graph::Binary{BinaryKind::modulo}, {1, 2}}};
  g.outputs = {{"du", 3, 1}};
  return net(std::move(g));
}

std::vector<double> regular(std::size_t count, double apart, double first = 0) {
  std::vector<double> knots;
  for (std::size_t i = 0; i < count; ++i) knots.push_back(first + apart * static_cast<double>(i));
  return knots;
}
graph::Interpolate steps_at(const std::vector<double>& knots, bool steps = true) {
  std::vector<double> values;
  for (std::size_t i = 0; i < knots.size(); ++i) values.push_back(static_cast<double>(i % 2));
  return table(knots, values, steps);
}

Problem of_span(Rhs rhs, double start, double end) {
  Problem problem;
  problem.rhs = std::move(rhs);
  problem.initial_states = {1};
  problem.parameters = {1, 1, 0};
  problem.start_times = {start};
  problem.end_times = {end};
  return problem;
}

// A stop as a trajectory meets it: its sides, whether it jumps, what it changes.
struct Met {
  double low, time, high;
  bool jumps;
  std::vector<double> changes;
  bool operator==(const Met&) const = default;
};
std::vector<Met> met_by(const Problem& problem, const detail::Stops& stops, std::size_t trajectory) {
  const auto [first, last] = std::minmax({problem.start_time(trajectory), problem.end_time(trajectory)});
  const detail::StopTimes times = stops.times(trajectory);
  std::vector<Met> met;
  for (std::int32_t k = 0; k < times.count; ++k) {
    if (times.high[k] < first || times.low[k] > last) continue;
    met.push_back({times.low[k], times.time[k], times.high[k], stops.jumps(trajectory, k), {}});
    if (times.changes == nullptr) continue;
    for (std::int64_t i = times.first_change[k]; i < times.first_change[k + 1]; ++i)
      met.back().changes.push_back(times.changes[i].change);
  }
  return met;
}

// Tables of random knots, of which many lie nearer than the precision tells apart, in small groups and in chains
// without an end; spans among them, at them and beside them, both ways; other stops and impulses beside knots.
TEST(LongTables, stops_are_as_if_all_knots_were_told) {
  std::mt19937 random(20261127);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto between = [&](double a, double b) { return std::uniform_real_distribution<double>(a, b)(random); };
  std::size_t met = 0, close = 0, none = 0, bends = 0;
  for (int repeat = 0; repeat < 700; ++repeat) {
    SCOPED_TRACE(repeat);
    const double first = std::vector<double>{0, -500, 1e5, 1.6e9}[below(4)];
    const double epsilon = below(2) == 0 ? 0x1p-20 : 0x1p-49;
    const std::size_t count = 300 + below(1000);
    const double near = epsilon * std::max(std::fabs(first), static_cast<double>(count)) * between(0.05, 1);
    const std::size_t share = std::vector<std::size_t>{0, 3, 97, 100, 100}[below(5)];  // of those that lie near
    const bool evenly = below(2) == 0;  // so that what is joined with what does not settle along a chain
    std::vector<double> knots{first};
    while (knots.size() < count) {
      const double next =
          knots.back() + (below(100) < share ? near * (evenly ? 0.7 : between(0.2, 1.2)) : between(0.2, 2));
      if (next > knots.back()) knots.push_back(next);
    }
    Reads reads{below(2) == 0, between(0.5, 2) * (below(2) == 0 ? 1 : -1), between(-30, 30), below(4) == 0};
    if (below(2) == 0) reads.factor = 1, reads.offset = 0;
    std::vector<double> values;  // some of which are as those before
    while (values.size() < count) values.push_back(static_cast<double>(below(4)));
    const Rhs rhs = driven(table(knots, values, below(2) == 0), reads);
    ASSERT_TRUE(rhs->has_many_knots());

    const std::size_t trajectories = 1 + below(3);
    Problem problem;
    problem.rhs = rhs;
    problem.start_times.clear();
    problem.initial_states.assign(trajectories, 1);
    const auto some_time = [&] {
      const double knot = knots[below(count)];
      const double time = std::vector<double>{knot, knot + between(-3, 3) * near, knot + between(-1, 1),
                                              between(first - 100, knots.back() + 100)}[below(4)];
      return (time - reads.offset) / reads.factor;
    };
    for (std::size_t i = 0; i < trajectories; ++i) {
      const double start = some_time();
      problem.start_times.push_back(start);
      problem.end_times.push_back(below(8) == 0   ? start
                                  : below(3) == 0 ? some_time()
                                                  : start + between(-1, 1) * (below(2) == 0 ? 20 : 20 * near));
      problem.parameters.insert(problem.parameters.end(), {1, reads.factor, reads.offset + between(-1, 1)});
    }
    if (below(3) == 0) problem.parameters.resize(3);
    Options options = tight(below(2) == 0 ? Precision::f32 : Precision::f64);
    if (below(3) == 0) {
      options.control = StepControl::fixed;
      options.dt = std::vector<double>{1, 0.01, near, 1e-14}[below(4)];
    } else if (below(3) == 0) {
      options.control = StepControl::common;
    }
    if (below(3) == 0) {
      for (int i = 0; i < 5; ++i) options.stops.push_back(some_time());
    }
    if (below(3) == 0) {
      std::vector<Impulse> impulses;
      for (int i = 0; i < 6; ++i) impulses.push_back({.time = some_time(), .component = 0, .change = 1.0 + i});
      const bool own = below(2) == 0;
      if (own) problem.first_impulse.push_back(0);
      for (std::size_t i = 0; i < (own ? trajectories : 1); ++i) {
        std::ranges::sort(impulses, {}, &Impulse::time);
        problem.impulses.insert(problem.impulses.end(), impulses.begin(), impulses.end());
        if (own) problem.first_impulse.push_back(problem.impulses.size());
        impulses.pop_back();
      }
    }
    Problem all = problem;
    all.rhs = telling_all(rhs);
    const detail::Stops found(problem, options), expected(all, options);
    ASSERT_EQ(found.empty(), expected.empty());
    ASSERT_EQ(found.differ(), expected.differ());
    ASSERT_EQ(found.most_changes(1) == 0, expected.most_changes(1) == 0);
    for (std::size_t i = 0; i < trajectories; ++i) {
      const std::vector<Met> own = met_by(problem, found, i), told = met_by(all, expected, i);
      ASSERT_EQ(own.size(), told.size());
      for (std::size_t k = 0; k < own.size(); ++k) {
        ASSERT_EQ(own[k], told[k]) << "stop " << k << ", at " << told[k].time;
        bends += told[k].jumps ? 0 : 1;
      }
      met += told.size();
      none += told.empty() ? 1 : 0;
      for (std::size_t k = 1; k < told.size(); ++k) close += told[k].time - told[k - 1].time <= 4 * near ? 1 : 0;
    }
  }
  EXPECT_GT(met, 5'000U);
  EXPECT_GT(close, 500U);
  EXPECT_GT(none, 50U);
  EXPECT_GT(bends, 500U);
}

TEST(LongTables, knots_of_a_span_are_those_of_all_times_within_it) {
  const std::vector<double> knots = regular(2'000, 1.0 / 3);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> time(-50, 2500), length(0, 60), factor(-2, 2), offset(-300, 300);
  std::size_t found = 0;
  const Rhs one = driven(steps_at(knots), {true}), other = driven(steps_at(knots), {true, 1, 0, true});
  for (int repeat = 0; repeat < 500; ++repeat) {
    const Rhs& rhs = repeat % 2 == 0 ? other : one;
    const std::vector<double> parameters{1, repeat % 5 == 0 ? 1 : factor(random), offset(random)};
    std::vector<TimeKnot> expected = rhs->time_knots(kAlways, parameters);
    const KnotBounds bounds = rhs->knot_bounds(parameters);
    EXPECT_EQ(bounds.some, !expected.empty());
    double most = 0;
    for (const TimeKnot& knot : expected) most = std::max(most, knot.magnitude);
    EXPECT_EQ(bounds.magnitude, most);
    const double first =
        repeat % 3 == 0 && !expected.empty() ? expected[random() % expected.size()].time : time(random);
    const TimeSpan span{first, repeat % 7 == 0 ? first : first + length(random)};
    std::erase_if(expected, [&](const TimeKnot& knot) { return knot.time < span.first || knot.time > span.last; });
    const std::vector<TimeKnot> told = rhs->time_knots(span, parameters);
    ASSERT_EQ(told.size(), expected.size()) << repeat;
    for (std::size_t i = 0; i < told.size(); ++i) {
      ASSERT_EQ(told[i].time, expected[i].time);
      ASSERT_EQ(told[i].jumps, expected[i].jumps);
      ASSERT_EQ(told[i].magnitude, expected[i].magnitude);
    }
    found += told.size();
  }
  EXPECT_GT(found, 5'000U);
}

// A table of 300,000 knots, of which a trajectory meets 50: those cost a trajectory, and as many as lie within a side
// of the last ones, 0.3 in float32.
TEST(LongTables, knots_beside_the_span_cost_nothing) {
  const graph::Interpolate table = steps_at(regular(300'000, 1));
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    for (const bool by_parameters : {false, true}) {
      const auto rhs = std::make_shared<Counting>(driven(table, {.by_parameters = by_parameters}));
      Problem problem = of_span(rhs, 150'000.5, 150'050.5);
      problem.parameters.clear();
      for (std::size_t i = 0; i < 100; ++i) {
        problem.initial_states.push_back(1);
        problem.parameters.insert(problem.parameters.end(), {1, 1, 0.003 * static_cast<double>(i)});
      }
      problem.initial_states.pop_back();
      const detail::Stops stops(problem, tight(precision));
      EXPECT_EQ(stops.differ(), by_parameters);
      EXPECT_LE(stops.most(1), 54U);
      EXPECT_LE(rhs->told, (by_parameters ? 100U : 1U) * 64U);
      const Options common = [&] {
        Options options = tight(precision);
        options.control = StepControl::common;
        return options;
      }();
      rhs->told = 0;
      EXPECT_LE(detail::Stops(problem, common).most(1), 100U * 54U);
      EXPECT_LE(rhs->told, (by_parameters ? 100U : 1U) * 64U);
      // Nowhere near: none but that there are some.
      rhs->told = 0;
      const detail::Stops beside(of_span(rhs, -2000, -1000), tight(precision));
      EXPECT_FALSE(beside.empty());
      EXPECT_EQ(beside.most(1), 1U);
      EXPECT_EQ(rhs->told, 0U);
    }
  }
}

// Times of day in seconds since 1970: none of those is told apart from the next in float32, and each stop depends on
// where the table begins. What a trajectory keeps does not.
TEST(LongTables, chains_of_joined_knots_are_kept_for_the_span_alone) {
  const Rhs rhs = driven(steps_at(regular(50'000, 300, 1.6e9)), {.by_parameters = true});
  const Problem problem = of_span(rhs, 1.605e9, 1.605e9 + 86'400);
  Problem all = problem;
  all.rhs = telling_all(rhs);
  const detail::Stops found(problem, tight(Precision::f32)), expected(all, tight(Precision::f32));
  EXPECT_GT(expected.most(1), 1'000U);
  EXPECT_LE(found.most(1), 100U);
  EXPECT_EQ(met_by(problem, found, 0), met_by(all, expected, 0));
  EXPECT_GT(met_by(problem, found, 0).size(), 10U);
}

TEST(LongTables, there_may_be_more_than_a_solve_could_meet) {
  const Rhs rhs = driven(steps_at(regular((1U << 20) + 100, 1)), {.by_parameters = true});
  EXPECT_EQ(solve(of_span(rhs, 1e6, 1e6 + 3), tight()).record(0).status, Status::success);
  const Rhs plain = driven(steps_at(regular((1U << 20) + 100, 1)), {});
  EXPECT_EQ(solve(of_span(plain, 1e6, 1e6 + 3), tight()).record(0).status, Status::success);
}

// The bits of a solve, and of derivatives, do not depend on how many are told; spans both ways.
TEST(LongTables, solutions_have_the_bits_of_all_knots) {
  for (const bool by_parameters : {false, true}) {
    for (const bool steps : {false, true}) {
      const Rhs rhs = driven(steps_at(regular(5'000, 0.4), steps), {.by_parameters = by_parameters});
      Problem problem = of_span(rhs, 700, 712);
      problem.start_times.clear();
      problem.end_times.clear();
      problem.initial_states.clear();
      problem.parameters.clear();
      for (std::size_t i = 0; i < 20; ++i) {
        problem.initial_states.push_back(1 + 0.1 * static_cast<double>(i));
        problem.parameters.insert(problem.parameters.end(), {0.3, 1, 0.05 * static_cast<double>(i)});
        problem.start_times.push_back(i % 3 == 0 ? 703.2 : 700);
        problem.end_times.push_back(i % 3 == 0 ? 700 : i % 5 == 0 ? 710 : 711.6);
      }
      Problem all = problem;
      all.rhs = telling_all(rhs);
      for (const Precision precision : {Precision::f32, Precision::f64}) {
        Options options = tight(precision);
        expect_same(solve(problem, options), solve(all, options), "adaptive");
        Options fixed = options;
        fixed.control = StepControl::fixed;
        fixed.dt = 0.1;
        fixed.method = "rk4";
        expect_same(solve(problem, fixed), solve(all, fixed), "fixed");
      }
      const TrajectoryLoss end_state = [](std::size_t, std::span<const double> states, std::span<double> bar) {
        bar.back() = 1;
        return states.back();
      };
      problem.save_times_per_trajectory = all.save_times_per_trajectory = true;
      problem.save_times = all.save_times = problem.end_times;
      const Gradients back = solve_with_gradients(problem, tight(), end_state);
      const Gradients expected = solve_with_gradients(all, tight(), end_state);
      EXPECT_EQ(back.parameters, expected.parameters);
      EXPECT_EQ(back.initial_states, expected.initial_states);
      EXPECT_EQ(solve_with_sensitivities(problem, tight()).by_parameter,
                solve_with_sensitivities(all, tight()).by_parameter);
    }
  }
}

TEST(LongTables, a_part_that_repeats_and_parameters_that_are_trained_change_nothing) {
  const std::vector<double> knots = regular(20'000, 0.4);
  for (const bool by_parameters : {false, true}) {
    const Rhs rhs = driven(steps_at(knots), {.by_parameters = by_parameters});
    for (const Rhs& one : {sum(daily(), rhs), sum(rhs, daily())}) {
      const Problem problem = of_span(one, 300, 400);
      Problem all = problem;
      all.rhs = sum(daily(), telling_all(rhs));
      const detail::Stops found(problem, tight()), expected(all, tight());
      EXPECT_LE(found.most(1), 256U);
      EXPECT_EQ(met_by(problem, found, 0), met_by(all, expected, 0));
      EXPECT_EQ(met_by(problem, found, 0).size(), 251U);  // at 312, 336, .. of both
    }
  }
  const Rhs rhs = driven(steps_at(knots), {.by_parameters = true});
  for (const std::size_t trained : {0, 2}) {  // what moves them, or not
    Problem problem = of_span(train_parameters(rhs, {{.parameter = trained, .start = 1}}), 300, 400);
    problem.parameters = {1, trained == 0 ? 0.0 : 1.0};
    ASSERT_TRUE(problem.rhs->has_many_knots());
    const detail::Stops stops(problem, tight());
    EXPECT_EQ(met_by(problem, stops, 0).size(), trained == 0 ? 251U : 0U);
    EXPECT_LE(stops.most(1), 251U);
  }
}

// Whose spans lie on a device nobody tells: all knots are stops.
TEST(LongTables, without_spans_all_are_told) {
  Problem problem = of_span(driven(steps_at(regular(1'000, 1)), {}), 0, 1);
  problem.end_times.clear();
  EXPECT_GT(detail::Stops(problem, tight()).most(1), 800U);
}

}  // namespace
}  // namespace lockstep::ode

// Which resets struck, and when: against balls' bounces by hand, what is kept of what ends a trajectory, and that it
// does not depend on how the ensemble is solved. Bits against the plain reference's: resets_test.cpp.
#include "lockstep/ode/event_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lockstep/ode/function.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/row_selection.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/bouncing_balls.h"
#include "lockstep/ode/testing/jumps.h"

namespace lockstep::ode {
namespace {

using testing::balls, testing::ceiling, testing::floor_reset, testing::tight;

Problem logged_balls(std::size_t count = 77) {
  Problem problem = balls(count);
  problem.keep_events = true;
  return problem;
}

// Times at which it bounces, by hand.
std::vector<double> bounces(const Problem& problem, std::size_t i) {
  std::vector<double> times;
  double x = problem.initial_states[4 * i], v = problem.initial_states[4 * i + 1], now = 0;
  while (true) {
    const double flight = (v + std::sqrt(v * v + 2 * testing::kGravity * x)) / testing::kGravity;
    now += flight;
    if (now >= problem.end_times[0]) return times;
    times.push_back(now);
    v = problem.parameters[i] * (testing::kGravity * flight - v);
    x = 0;
  }
}

TEST(EventLog, holds_the_times_of_bounces) {
  const Problem problem = logged_balls();
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    const Solution solution = solve(problem, tight(precision));
    ASSERT_TRUE(solution.keeps_events());
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      const std::vector<double> expected = bounces(problem, i);
      ASSERT_EQ(solution.events(i).size(), expected.size()) << i;
      for (std::size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(solution.events(i)[k].reset, 0);
        EXPECT_NEAR(solution.events(i)[k].time, expected[k], precision == Precision::f64 ? 1e-10 : 1e-4) << i;
      }
      // What the ball itself counts and notes.
      EXPECT_EQ(static_cast<double>(expected.size()), solution.end_state(i, 2));
      if (precision == Precision::f64 && !expected.empty()) {
        EXPECT_EQ(solution.events(i).back().time, solution.end_state(i, 3));
      }
    }
  }
}

TEST(EventLog, is_flat_for_an_ensemble) {
  const Problem problem = logged_balls(9);
  const Solution solution = solve(problem, tight());
  const EventLog log = solution.event_log();
  ASSERT_EQ(log.trajectories(), 9u);
  EXPECT_EQ(log.first.back(), log.times.size());
  EXPECT_EQ(log.resets.size(), log.times.size());
  for (std::size_t i = 0; i < 9; ++i) {
    ASSERT_EQ(log.count(i), solution.events(i).size());
    for (std::size_t k = 0; k < log.count(i); ++k) {
      EXPECT_EQ(log.times_of(i)[k], solution.events(i)[k].time);
      EXPECT_EQ(log.resets_of(i)[k], solution.events(i)[k].reset);
    }
  }
  EXPECT_EQ(solve(balls(9)).event_log(), EventLog{});
}

TEST(EventLog, changes_nothing_else) {
  Solution with = solve(logged_balls(), tight()), without = solve(balls(), tight());
  EXPECT_FALSE(without.keeps_events());
  without.keep_events();
  for (std::size_t i = 0; i < 77; ++i) EXPECT_TRUE(without.events(i).empty());
  for (std::size_t i = 0; i < 77; ++i) {
    EXPECT_EQ(with.record(i).evaluations, without.record(i).evaluations);
    for (std::size_t c = 0; c < 4; ++c) ASSERT_EQ(with.end_state(i, c), without.end_state(i, c));
  }
}

// Of several at one time each has its entry, in the order in which they change the state.
TEST(EventLog, keeps_the_order_of_those_at_one_time) {
  Problem problem;
  problem.rhs = function<3>("clock", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = 0 * u[0] + 1;
    du[1] = 0 * u[1];
    du[2] = 0 * u[2];
  });
  const auto raise = [](std::size_t of, double level, std::size_t to) {
    return Reset{event_function<3>("level", [=](auto, const auto& u, const auto&) { return u[of] - level; }),
                 function<3>("raise",
                             [=](auto, const auto& u, const auto&, auto& next) {
                               for (std::size_t c = 0; c < 3; ++c) next[c] = u[c];
                               next[to] = next[to] + 1;
                             }),
                 TerminalEvent::Direction::rising};
  };
  problem.resets = {raise(1, 0.5, 2), raise(0, 1, 1)};  // at t = 1 the second, which strikes the first
  problem.impulses = {{2, 0, 10}, {3, 1, 10}};          // over no threshold that is not behind it
  problem.initial_states = {0, 0, 0};
  problem.end_times = {4};
  problem.keep_events = true;
  const Solution solution = solve(problem, tight());
  ASSERT_EQ(solution.events(0).size(), 2u);
  EXPECT_EQ(solution.events(0)[0].reset, 1);
  EXPECT_EQ(solution.events(0)[1].reset, 0);
  EXPECT_EQ(solution.events(0)[0].time, solution.events(0)[1].time);
  EXPECT_NEAR(solution.events(0)[0].time, 1, 1e-12);
  // An impulse that carries the state over a threshold: at its time.
  problem.impulses = {{0.25, 1, 1}};
  const Solution struck = solve(problem, tight());
  ASSERT_EQ(struck.events(0).size(), 2u);
  EXPECT_EQ(struck.events(0)[0], (ResetEvent{0.25, 0}));
  testing::expect_same(struck, solve_reference(problem, tight()), "struck by an impulse");
}

TEST(EventLog, holds_the_reset_that_ends_a_trajectory_but_not_the_event) {
  Problem problem = logged_balls(5);
  problem.event =
      TerminalEvent{event_function<4, 1>("first", [](auto, const auto& u, const auto&) { return u[2] - 0.5; }),
                    TerminalEvent::Direction::rising};  // which the bounce itself strikes
  const Solution solution = solve(problem, tight());
  for (std::size_t i = 0; i < 5; ++i) {
    ASSERT_EQ(solution.record(i).status, Status::terminated);
    ASSERT_EQ(solution.events(i).size(), 1u);
    EXPECT_EQ(solution.events(i)[0].time, solution.record(i).end_time);
  }
  problem.event->function = event_function<4, 1>("floor", [](auto, const auto& u, const auto&) { return u[0]; });
  problem.event->direction = TerminalEvent::Direction::falling;  // on the floor: before the bounce
  const Solution fallen = solve(problem, tight());
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(fallen.record(i).status, Status::terminated);
    EXPECT_TRUE(fallen.events(i).empty());
  }
}

// One that starts outside a net's range is not solved, as far as anybody hears.
TEST(EventLog, is_empty_where_a_guard_ends_the_trajectory_at_its_start) {
  Problem problem = logged_balls(60);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Range below_one{{-kInfinity, -kInfinity, -kInfinity, -kInfinity}, {1, kInfinity, kInfinity, kInfinity}};
  problem.event = leaves_range(problem.rhs, below_one);
  Solution solution(Precision::f64, 60, 4, problem.save_times, false);
  solution.keep_events();
  {
    MemorySink memory(solution);
    GuardedSink sink(memory, problem, Precision::f64, below_one, GuardAction::stop);
    solve(problem, tight(), sink, {});
  }
  std::size_t outside = 0, kept = 0;
  for (std::size_t i = 0; i < 60; ++i) {
    const bool starts_outside = problem.initial_states[4 * i] > 1;
    outside += starts_outside ? 1 : 0;
    kept += solution.events(i).size();
    EXPECT_TRUE(!starts_outside || solution.events(i).empty()) << i;
    for (const ResetEvent& event : solution.events(i)) EXPECT_LE(event.time, solution.record(i).end_time);
  }
  EXPECT_GT(outside, 10u);
  EXPECT_GT(kept, 10u);
}

TEST(EventLog, descends_where_time_runs_backwards) {
  Problem problem = logged_balls(7);
  problem.start_times = {2};
  problem.end_times = {0};
  problem.save_times = {1};
  problem.resets = {Reset{testing::height(-3), ceiling(1).state}};
  const Solution solution = solve(problem, tight());
  std::size_t seen = 0;
  for (std::size_t i = 0; i < 7; ++i) {
    for (std::size_t k = 1; k < solution.events(i).size(); ++k)
      EXPECT_LT(solution.events(i)[k].time, solution.events(i)[k - 1].time);
    seen += solution.events(i).size();
  }
  EXPECT_GE(seen, 7u);
}

TEST(EventLog, does_not_depend_on_threads_parts_or_rows) {
  const Problem problem = logged_balls(301);
  Options options = tight();
  options.threads = 1;
  const EventLog log = solve(problem, options).event_log();
  options.threads = 3;
  EXPECT_EQ(solve(problem, options).event_log(), log);
  EventLog parts;
  for (const std::size_t first : {0u, 100u, 133u, 301u}) {
    const std::size_t last = first == 0 ? 100 : first == 100 ? 133 : 301;
    const Solution part = solve(problem.part(first, last - first), options);
    for (std::size_t i = 0; i < part.trajectories(); ++i) parts.add(part.events(i));
  }
  EXPECT_EQ(parts, log);
  // Every third trajectory and the last forty, into their places.
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < 301; ++i)
    if (i % 3 == 0 || i > 260) rows.push_back(i);
  Solution whole(options.precision, 301, 4, problem.save_times, false);
  whole.keep_events();
  {
    MemorySink sink(whole);
    RowSink chosen(sink, problem, options.precision, rows);
    solve(problem.selection(rows), options, chosen);
  }
  for (std::size_t i = 0, next = 0; i < 301; ++i) {
    const bool solved = next < rows.size() && rows[next] == i;
    next += solved ? 1 : 0;
    ASSERT_EQ(whole.events(i).size(), solved ? log.count(i) : 0) << i;
    for (std::size_t k = 0; k < whole.events(i).size(); ++k) EXPECT_EQ(whole.events(i)[k].time, log.times_of(i)[k]);
  }
}

}  // namespace
}  // namespace lockstep::ode

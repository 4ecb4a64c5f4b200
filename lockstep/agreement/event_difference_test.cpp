// Events compared: changed, missing, spare and other ones, and what a verdict makes of them.
#include "lockstep/agreement/event_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/agreement/verdict.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/bouncing_balls.h"

namespace lockstep::agreement {
namespace {

using ::testing::HasSubstr;

ode::Problem balls() {
  ode::Problem problem = ode::testing::balls(20);
  problem.keep_events = true;
  return problem;
}

Numbers solved(const char* name) {
  ode::Options options;
  options.precision = Precision::f64;
  Numbers numbers = numbers_of(ode::solve(balls(), options));
  numbers.name = name;
  return numbers;
}

// With other events, in the port alone.
template <class Change>
std::pair<std::optional<EventDifference>, Verdict> compared(const Change& change) {
  Numbers port = solved("port");
  change(port);
  const HeldEnsemble a(balls(), solved("ours")), b(balls(), std::move(port));
  return {compare_events(a, b), judge(a, b)};
}

void erase(ode::EventLog& log, std::size_t trajectory) {
  const auto at = static_cast<std::ptrdiff_t>(log.first[trajectory]);
  log.times.erase(log.times.begin() + at);
  log.resets.erase(log.resets.begin() + at);
  for (std::size_t i = trajectory + 1; i < log.first.size(); ++i) --log.first[i];
}

TEST(EventDifference, is_none_where_all_are_the_same) {
  const auto [difference, verdict] = compared([](Numbers&) {});
  ASSERT_TRUE(difference);
  EXPECT_TRUE(difference->same());
  EXPECT_GT(difference->events_a, 20u);
  EXPECT_EQ(text_of(*difference), "all " + std::to_string(difference->events_a) + " the same");
  EXPECT_EQ(verdict.outcome, Outcome::agree);
  EXPECT_TRUE(verdict.same_bits);
}

TEST(EventDifference, is_told_of_a_time_that_differs_in_its_last_bit) {
  std::size_t at = 0;
  const auto [difference, verdict] = compared([&](Numbers& port) {
    at = port.events->first[7] + 1;
    port.events->times[at] = std::nextafter(port.events->times[at], 10);
  });
  EXPECT_EQ(difference->trajectories, 1u);
  EXPECT_EQ(difference->other_resets, 0u);
  EXPECT_GT(difference->largest_time, 0);
  EXPECT_LT(difference->largest_time, 1e-15);
  EXPECT_EQ(difference->first->trajectory, 7u);
  EXPECT_EQ(difference->first->event, 1u);
  EXPECT_EQ(difference->unexplained, 7u);
  EXPECT_EQ(verdict.outcome, Outcome::disagree);
  EXPECT_FALSE(verdict.same_bits);
  EXPECT_EQ(
      verdict.sentence,
      "port does not agree with ours: the events of trajectory 7 are others, though its states differ in no bit.");
}

TEST(EventDifference, is_told_of_missing_and_spare_and_other_ones) {
  const auto missing = compared([](Numbers& port) { erase(*port.events, 3); }).first;
  EXPECT_EQ(missing->events_a, missing->events_b + 1);
  EXPECT_EQ(missing->other_resets, 1u);
  EXPECT_EQ(missing->unexplained, 3u);
  const auto other = compared([](Numbers& port) { port.events->resets[port.events->first[5]] = 1; }).first;
  EXPECT_EQ(other->other_resets, 1u);
  EXPECT_EQ(other->events_a, other->events_b);
  EXPECT_THAT(text_of(*other), HasSubstr("first in trajectory 5: its event 0 is reset 0 at t = "));
  const auto [both, verdict] = compared([](Numbers& port) {
    erase(*port.events, 4);
    port.events->times[port.events->first[9]] += 1e-9;
  });
  EXPECT_EQ(both->trajectories, 2u);
  EXPECT_THAT(text_of(*both), HasSubstr("others in 2 trajectories, 1 of them with more, fewer or other resets"));
  EXPECT_EQ(verdict.outcome, Outcome::disagree);
}

TEST(EventDifference, may_come_with_states_that_differ) {
  const auto [difference, verdict] = compared([](Numbers& port) {
    port.events->times[port.events->first[7]] += 1e-9;
    double& last = port.states[(7 * 6 + 5) * 4];
    last = std::nextafter(last, 10);
  });
  EXPECT_EQ(difference->trajectories, 1u);
  EXPECT_FALSE(difference->unexplained);
  EXPECT_EQ(verdict.outcome, Outcome::undecided);  // no certificate
  EXPECT_THAT(verdict.reasons.back(), HasSubstr("at times that are at most 1e-09 apart"));
}

TEST(EventDifference, is_not_asked_of_who_keeps_none_or_is_cancelled) {
  const auto none = compared([](Numbers& port) { port.events.reset(); });
  EXPECT_FALSE(none.first);
  EXPECT_TRUE(none.second.same_bits);
  const auto cancelled = compared([](Numbers& port) {
    port.records[3].status = ode::Status::cancelled;
    erase(*port.events, 3);
  });
  EXPECT_TRUE(cancelled.first->same());
}

TEST(EventDifference, takes_numbers_that_are_none_for_each_other) {
  Numbers a = solved("a"), b = solved("b");
  a.events->times[0] = std::numeric_limits<double>::quiet_NaN();
  b.events->times[0] = -a.events->times[0];
  const auto difference = compare_events(HeldEnsemble(balls(), std::move(a)), HeldEnsemble(balls(), std::move(b)));
  EXPECT_TRUE(difference->same());
}

}  // namespace
}  // namespace lockstep::agreement

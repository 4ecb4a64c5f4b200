// Thresholds that a trajectory passes and comes back over within one step: the search for its turn, exact solutions,
// and the engine's bits against the plain reference integrator's.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "lockstep/core/testing/sanitized.h"
#include "lockstep/ode/detail/reset_side.h"
#include "lockstep/ode/detail/turn_search.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/bouncing_balls.h"
#include "lockstep/ode/testing/jumps.h"

namespace lockstep::ode {
namespace {

using Direction = TerminalEvent::Direction;
using detail::TurnSearch;
using testing::ceiling, testing::expect_same, testing::falling, testing::height, testing::kGravity;
constexpr double kPi = std::numbers::pi;

struct Search {
  TurnSearch<double> end;
  int looks = 0;
};
template <class Function>
Search search(const Function& g, Direction direction = Direction::either) {
  const auto strikes = [direction](double from, double to) { return detail::crosses(direction, from, to); };
  Search search{{g(0.0), g(0.5), g(1.0), strikes}};
  for (; search.end.open(); ++search.looks) search.end.see(g(search.end.theta()), strikes);
  return search;
}
// The ends of what was found differ in whether the function strikes.
template <class Function>
void expect_found(const Function& g, Direction direction = Direction::either) {
  const TurnSearch<double> turn = search(g, direction).end;
  ASSERT_TRUE(turn.found());
  EXPECT_EQ(turn.at_low(), g(turn.low()));
  EXPECT_EQ(turn.at_high(), g(turn.high()));
  EXPECT_LT(turn.low(), turn.high());
  EXPECT_TRUE(detail::crosses(direction, turn.at_low(), turn.at_high()));
}

TEST(TurnSearch, finds_a_parabola_in_one_look) {
  for (const double side : {1.0, -1.0}) {
    for (const double least : {0.03, 0.4, 0.5, 0.9}) {
      for (const double depth : {1e-12, 0.01, 0.9}) {
        const auto g = [=](double theta) { return side * ((theta - least) * (theta - least) - depth * least * least); };
        if ((g(0) > 0) != (g(1) > 0)) continue;
        EXPECT_EQ(search(g).looks, 1) << least << ", " << depth;
        expect_found(g);
        expect_found(g, Direction::rising);
        expect_found(g, Direction::falling);
      }
    }
  }
}

TEST(TurnSearch, tells_which_of_two_crossings_counts) {
  const auto g = [](double theta) { return (theta - 0.2) * (theta - 0.7); };
  EXPECT_EQ(search(g).end.low(), 0);  // falls at 0.2
  EXPECT_EQ(search(g, Direction::falling).end.low(), 0);
  const TurnSearch<double> rising = search(g, Direction::rising).end;
  EXPECT_GT(rising.low(), 0.2);
  EXPECT_EQ(rising.high(), 1);
}

TEST(TurnSearch, follows_what_is_no_parabola) {
  for (const double depth : {0.3, 0.1, 1e-2, 1e-3, 1e-4}) {
    for (const double phase : {0.5, 1.0, 1.25, 2.0}) {
      SCOPED_TRACE(std::to_string(depth) + ", " + std::to_string(phase));
      const auto g = [=](double theta) { return 1 - depth - std::cos(2.5 * theta - phase); };
      if (g(0) <= 0 || g(1) <= 0) continue;
      expect_found(g);
      EXPECT_LE(search(g).looks, 4);
    }
  }
}

TEST(TurnSearch, looks_nowhere_without_a_turn_near_zero) {
  EXPECT_EQ(search([](double theta) { return 1 + theta; }).looks, 0);
  EXPECT_EQ(search([](double theta) { return 3 - theta * theta; }).looks, 0);         // away from zero
  EXPECT_EQ(search([](double theta) { return -1 - theta * (1 - theta); }).looks, 0);  // likewise
  EXPECT_EQ(search([](double theta) { return 1 + (theta - 0.5) * (theta - 0.5); }).looks, 0);
  EXPECT_EQ(search([](double) { return 2.0; }).looks, 0);
  EXPECT_EQ(search([](double) { return 0.0; }).looks, 0);
  EXPECT_EQ(search([](double) { return std::numeric_limits<double>::quiet_NaN(); }).looks, 0);
  EXPECT_EQ(search([](double theta) { return theta == 0.5 ? std::nan("") : 1.0; }).looks, 0);
}

TEST(TurnSearch, does_not_find_what_is_not_there) {
  const Search touching = search([](double theta) { return (theta - 0.4) * (theta - 0.4) + 1e-9; });
  EXPECT_FALSE(touching.end.found());
  EXPECT_LE(touching.looks, 4);
  // From the threshold down and back up over it: a fall that is none, and a rise.
  const auto dip = [](double theta) { return theta * (theta - 0.4); };
  EXPECT_FALSE(search(dip, Direction::falling).end.found());
  expect_found(dip, Direction::rising);
}

TEST(TurnSearch, finds_a_leap_that_the_middle_shows) {
  expect_found([](double theta) { return theta > 0.3 && theta < 0.8 ? -1.0 : 1.0; });
}

// Every accepted step of a flight spans all of it: its acceleration is constant.
Problem thrown(std::size_t count) {
  Problem problem;
  problem.rhs = falling();
  for (std::size_t i = 0; i < count; ++i) {
    for (const double u : {0.0, 1 + 0.25 * static_cast<double>(i), 0.0, 0.0}) problem.initial_states.push_back(u);
    problem.parameters.push_back(0.8);
  }
  problem.end_times = {1};
  problem.save_times = {0, 0.1, 0.5, 1};
  return problem;
}
constexpr double kCeiling = 0.7;
double thrown_speed(const Problem& problem, std::size_t i) { return problem.initial_states[4 * i + 1]; }
bool reaches(const Problem& problem, std::size_t i) {
  return thrown_speed(problem, i) * thrown_speed(problem, i) > 2 * kGravity * kCeiling;
}

TEST(Turns, a_ball_that_reaches_the_ceiling_meets_it) {
  Problem problem = thrown(40);
  problem.event = TerminalEvent{height(kCeiling), Direction::either};
  Problem falling_only = problem;
  falling_only.event->direction = Direction::falling;
  for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
    for (const std::string_view name : method_names()) {
      if (method(name).order < 2 || (method(name).error.empty() && control != StepControl::fixed)) continue;
      SCOPED_TRACE(name);
      Options options;
      options.method = name;
      options.control = control;
      options.precision = Precision::f64;
      if (control == StepControl::fixed) options.dt = 1;
      const Solution up = solve(problem, options), down = solve(falling_only, options);
      for (std::size_t i = 0; i < problem.trajectories(); ++i) {
        ASSERT_EQ(up.record(i).status, reaches(problem, i) ? Status::terminated : Status::success) << i;
        if (!reaches(problem, i)) continue;
        const double v = thrown_speed(problem, i), root = std::sqrt(v * v - 2 * kGravity * kCeiling);
        // The methods are exact for this up to roundings of heights, which the slope at the ceiling, root, turns into
        // times: some hundred of them, and in vern9's interpolant of numbers that are 1e4 times as large.
        const double roundings = (name == "vern9" ? 1e-10 : 1e-13) * v / root;
        EXPECT_NEAR(up.record(i).end_time, (v - root) / kGravity, roundings) << i;
        const double comes_down = (v + root) / kGravity;
        if (std::fabs(comes_down - 1) < 1e-6) continue;
        EXPECT_EQ(down.record(i).status, comes_down < 1 ? Status::terminated : Status::success) << i;
        if (comes_down < 1) {
          EXPECT_NEAR(down.record(i).end_time, comes_down, roundings) << i;
        }
      }
    }
  }
}

TEST(Turns, a_ball_bounces_off_the_ceiling) {
  Problem problem = thrown(40);
  problem.resets = {ceiling(kCeiling)};
  Options options;
  options.precision = Precision::f64;
  const Solution solution = solve(problem, options);
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    const double v = thrown_speed(problem, i);
    double expected = v - kGravity / 2;
    if (reaches(problem, i)) {
      const double root = std::sqrt(v * v - 2 * kGravity * kCeiling), left = 1 - (v - root) / kGravity;
      expected = left > 0 ? kCeiling - root * left - kGravity / 2 * left * left : expected;
    }
    EXPECT_NEAR(solution.end_state(i, 0), expected, 1e-12) << i;
  }
}

// x = cos(t + phase), counted where it rises over `level` and where it falls below it.
Problem oscillators(double level) {
  Problem problem;
  problem.rhs = differentiable_function<4, 0>("oscillators", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = u[1];
    du[1] = -u[0];
    for (std::size_t c = 2; c < 4; ++c) du[c] = 0 * u[c];
  });
  for (std::size_t i = 0; i < 33; ++i) {
    const double phase = 1 + 0.12 * static_cast<double>(i);  // x <= level at either end
    for (const double u : {std::cos(phase), -std::sin(phase), 0.0, 0.0}) problem.initial_states.push_back(u);
  }
  problem.end_times = {12 * kPi};
  problem.save_times = {1, 7, 20};
  const auto count = [](std::size_t at) {
    return function<4, 0>("count", [at](auto, const auto& u, const auto&, auto& next) {
      for (std::size_t c = 0; c < 4; ++c) next[c] = u[c];
      next[at] = u[at] + 1;
    });
  };
  const Rhs above = event_function<4, 0>("above", [level](auto, const auto& u, const auto&) { return u[0] - level; });
  problem.resets = {{above, count(2), Direction::rising}, {above, count(3), Direction::falling}};
  return problem;
}

// Six times each, however short it is above: steps are a seventh of a period and more. (docs/numerics.md has these.)
TEST(Turns, short_excursions_are_counted) {
  for (const double depth : {0.1, 0.03, 0.01, 0.003}) {
    const Problem problem = oscillators(1 - depth);
    for (const std::string_view name : {"tsit5", "vern7", "dopri5", "rodas5p"}) {
      SCOPED_TRACE(std::string(name) + ", " + std::to_string(depth));
      Options options;
      options.precision = Precision::f64;
      options.method = name;
      options.rtol = options.atol = name == "tsit5" ? 1e-3 : 1e-5;
      const Solution solution = solve(problem, options);
      for (std::size_t i = 0; i < problem.trajectories(); ++i) {
        EXPECT_EQ(solution.end_state(i, 2), 6) << i;
        EXPECT_EQ(solution.end_state(i, 3), 6) << i;
      }
    }
  }
}

TEST(Turns, have_the_bits_of_the_reference) {
  std::size_t turn = 0;
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    for (const std::string_view name : method_names()) {
      if (method(name).error.empty()) continue;
      for (const double depth : {0.3, 0.02}) {
        if (!is_tried(++turn, 5)) continue;
        Problem problem = oscillators(1 - depth);
        if (turn % 2 == 0) {
          problem.event = TerminalEvent{
              event_function<4, 0>("below", [](auto, const auto& u, const auto&) { return u[1] + 0.999; }),
              turn % 4 == 0 ? Direction::either : Direction::rising};
        }
        Options options;
        options.precision = precision;
        options.method = name;
        if (method(name).order < 4) options.rtol = options.atol = 1e-4;
        const Solution expected = solve_reference(problem, options);
        expect_same(solve(problem, options), expected, std::string(name));
        options.cpu_target = CpuTarget::scalar;
        options.threads = 2;
        expect_same(solve(problem, options), expected, std::string(name) + ", another target");
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::ode

// States that change at events where the event's function is about zero: bounces that pile up, balls at rest, corners,
// thresholds that move and functions that leap.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "lockstep/ode/function.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/bouncing_balls.h"
#include "lockstep/ode/testing/jumps.h"
#include "lockstep/ode/testing/plain_function.h"

namespace lockstep::ode {
namespace {

using Direction = TerminalEvent::Direction;
using testing::balls, testing::floor_reset, testing::flown, testing::kGravity;
using testing::expect_same;
using testing::tight;

// Bounces that come ever closer end where float64 does not tell their times apart, at the sum of the flights.
TEST(ResetThresholds, bounces_that_pile_up_end_the_trajectory) {
  Problem problem = balls(5);
  problem.end_times = {50};
  problem.save_times = {0, 1, 50};
  const Solution solution = solve(problem, tight());
  expect_same(solution, solve_reference(problem, tight()), "piled up");
  for (std::size_t i = 0; i < 5; ++i) {
    const double x = problem.initial_states[4 * i], v = problem.initial_states[4 * i + 1], r = problem.parameters[i];
    const double landing = std::sqrt(v * v + 2 * kGravity * x);
    const double expected = (v + landing) / kGravity + 2 * landing * r / (1 - r) / kGravity;
    EXPECT_EQ(solution.record(i).status, Status::step_too_small);
    EXPECT_NEAR(solution.record(i).end_time, expected, 1e-10);
    EXPECT_NEAR(solution.end_state(i, 0), 0, 1e-10);
    EXPECT_TRUE(std::isnan(solution.state(i, 2, 0)));
    EXPECT_EQ(solution.state(i, 1, 2), flown(problem, i, 1)[2]);
  }
}

// x' = v thrown up from the floor itself, by a first step far longer than its flight; and a ball at rest there, which
// falls through, as nothing turns it back.
TEST(ResetThresholds, a_start_on_the_threshold_counts_for_the_side_it_leaves_to) {
  for (const Direction direction : {Direction::falling, Direction::either}) {
    Problem problem = balls(2);
    problem.initial_states = {0, 1e-3, 0, -1, 0, 0, 0, -1};
    problem.parameters = {1, 1};
    problem.end_times = {0.01};
    problem.save_times = {};
    problem.resets[0].direction = direction;
    Options options = tight();
    options.initial_step = 0.005;
    const Solution solution = solve(problem, options);
    EXPECT_EQ(solution.end_state(0, 2), std::floor(0.01 / (2e-3 / kGravity)));
    EXPECT_EQ(solution.end_state(1, 2), 0);
    EXPECT_NEAR(solution.end_state(1, 0), -kGravity / 2 * 1e-4, 1e-12);
    expect_same(solution, solve_reference(problem, options), "from the floor");
  }
}

// A floor at 0.3, and a reset that turns the speed alone: the last flights are lower than what roundings of x - 0.3
// tell, and the ball does not fall through for that. One that is counted on its way goes on, with whatever speed.
TEST(ResetThresholds, a_ball_rests_on_a_floor_that_is_not_at_zero) {
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    for (const double restitution : {0.001, 0.01, 0.3, 0.8}) {
      Problem problem = balls(40);
      const float floor = 0.3f;
      problem.parameters.assign(40, restitution);
      problem.end_times = {20};
      problem.save_times = {20};
      problem.resets = {{testing::plain_event(4, 1, [=](double, auto u, auto, auto out) { out(0) = u(0) - floor; }),
                         testing::plain_function(4, 1,
                                                 [](double, auto u, auto p, auto next) {
                                                   next(0) = u(0);
                                                   next(1) = -p(0) * u(1);
                                                   next(2) = u(2) + 1;
                                                   next(3) = u(3);
                                                 }),
                         Direction::falling}};
      const Solution solution = solve(problem, tight(precision));
      expect_same(solution, solve_reference(problem, tight(precision)), "resting");
      for (std::size_t i = 0; i < 40; ++i) {
        const double v = problem.initial_states[4 * i + 1], x = problem.initial_states[4 * i] - floor;
        const double landing = std::sqrt(v * v + 2 * kGravity * x);
        const double expected = (v + landing + 2 * landing * restitution / (1 - restitution)) / kGravity;
        EXPECT_EQ(solution.record(i).status, Status::step_too_small) << i;
        EXPECT_NEAR(solution.record(i).end_time, expected, precision == Precision::f64 ? 1e-6 : 1e-2) << i;
        EXPECT_NEAR(solution.end_state(i, 0), floor, precision == Precision::f64 ? 1e-12 : 1e-5) << i;
      }
      problem.resets[0].state = testing::plain_function(4, 1, [](double, auto u, auto p, auto next) {
        next(0) = u(0);
        next(1) = p(0) * u(1);
        next(2) = u(2) + 1;
        next(3) = u(3);
      });
      const Solution passed = solve(problem, tight(precision));
      expect_same(passed, solve_reference(problem, tight(precision)), "passing");
      for (std::size_t i = 0; i < 40; ++i) {
        EXPECT_EQ(passed.record(i).status, Status::success) << i;
        EXPECT_EQ(passed.end_state(i, 2), 1) << i;
      }
    }
  }
}

// A kick carries the ball half a metre under the floor, which turns it at once and leaves it there: it bounces again
// once it has come back.
TEST(ResetThresholds, what_another_change_leaves_beyond_comes_back) {
  Problem problem = balls(1);
  problem.initial_states = {1, 0, 0, -1};
  problem.parameters = {1};
  problem.end_times = {3};
  problem.save_times = {};
  problem.resets = {floor_reset(false)};
  const double speed = 0.4 * kGravity, height = 1 - kGravity / 2 * 0.16;
  problem.impulses = {{0.4, 0, -height - 0.5}};
  Options options = tight();
  options.max_step = 0.01;
  const Solution solution = solve(problem, options);
  expect_same(solution, solve_reference(problem, options), "kicked");
  // From half a metre below, up at that speed, and from the floor up again and again.
  const double floor_speed = std::sqrt(speed * speed - kGravity), lands = 0.4 + (speed + floor_speed) / kGravity;
  const double flights = std::floor((3 - lands) / (2 * floor_speed / kGravity));
  EXPECT_EQ(solution.end_state(0, 2), 2 + flights);
  EXPECT_GT(solution.end_state(0, 0), 0);
}

// In the very step that begins on the floor a reset at a given time carries the ball under it: the floor turns it.
TEST(ResetThresholds, one_strikes_another_whose_threshold_the_step_began_on) {
  Problem problem = balls(1);
  problem.initial_states = {0, 5, 0, -1};
  problem.parameters = {1};
  problem.end_times = {0.5};
  problem.save_times = {};
  problem.resets = {floor_reset(),
                    {testing::plain_event(4, 1,
                                          [](double t, auto, auto, auto out) {
                                            using T = std::decay_t<decltype(out(0))>;
                                            out(0) = static_cast<T>(t - 0.25);
                                          }),
                     function<4, 1>("dig", [](auto, const auto& u, const auto&, auto& next) {
                       for (std::size_t c = 0; c < 4; ++c) next[c] = u[c];
                       next[0] = u[0] - 2;
                     })}};
  Options options = tight();
  options.initial_step = 0.5;
  const Solution solution = solve(problem, options);
  expect_same(solution, solve_reference(problem, options), "dug");
  EXPECT_EQ(solution.end_state(0, 2), 1);
  EXPECT_NEAR(solution.end_state(0, 3), 0.25, 1e-12);
}

// Where a ball that bounces between 0 and 1 is, a distance from x on.
double folded(double x) { return 1 - std::fabs(std::fmod(std::fmod(x, 2) + 2, 2) - 1); }

// A square's corners, which diagonals meet: both walls turn the ball, at one time or at two that float64 does not tell
// apart, whichever rounding puts first.
TEST(ResetThresholds, a_ball_leaves_the_corners_of_a_square) {
  Problem problem;
  problem.rhs = function<4>("line", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = u[2];
    du[1] = u[3];
    du[2] = 0 * u[2];
    du[3] = 0 * u[3];
  });
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(0.2, 2);
  for (int i = 0; i < 200; ++i) {
    const double x = uniform(random) / 2.2, v = uniform(random);
    for (const double u : {x, i % 2 == 0 ? x : 1 - x, v, i % 2 == 0 ? v : -v}) problem.initial_states.push_back(u);
  }
  for (const int c : {0, 1}) {
    for (const double wall : {0.0, 1.0}) {
      problem.resets.push_back(
          {testing::plain_event(4, 0,
                                [=](double, auto u, auto, auto out) { out(0) = u(c) - static_cast<float>(wall); }),
           testing::plain_function(4, 0,
                                   [=](double, auto u, auto, auto next) {
                                     for (int k = 0; k < 4; ++k) next(k) = u(k);
                                     next(c + 2) = -u(c + 2);
                                   }),
           wall == 0 ? Direction::falling : Direction::rising});
    }
  }
  for (const bool either : {false, true}) {
    if (either)
      for (Reset& reset : problem.resets) reset.direction = Direction::either;
    for (const double start : {0.0, 1e3, 1e6}) {
      problem.start_times = {start};
      problem.end_times = {start + 40};
      const Solution solution = solve(problem, tight());
      expect_same(solution, solve_reference(problem, tight()), "corners");
      for (std::size_t i = 0; i < problem.trajectories(); ++i) {
        ASSERT_EQ(solution.record(i).status, Status::success) << i;
        const double* u = &problem.initial_states[4 * i];
        // Each of up to 160 bounces happens at a rounded time.
        const double bound = 1e-11 + 1e-13 * start;
        for (int c = 0; c < 2; ++c)
          ASSERT_NEAR(solution.end_state(i, static_cast<std::size_t>(c)), folded(u[c] + 40 * u[c + 2]), bound) << i;
      }
    }
  }
}

// Thresholds that move are crossed as often as a fine grid sees them, however roundings of the time fall.
TEST(ResetThresholds, crossings_of_a_moving_threshold_are_counted_once) {
  Problem problem;
  problem.rhs = function<3>("wave", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = u[1];
    du[1] = -u[0];
    du[2] = 0 * u[2];
  });
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-2, 2);
  for (int i = 0; i < 300; ++i) {
    for (const double u : {uniform(random), uniform(random), 0.0}) problem.initial_states.push_back(u);
  }
  problem.end_times = {40};
  const auto threshold = [](double t) { return 0.3 * std::sin(3 * t) + 0.2; };
  problem.resets = {{testing::plain_event(3, 0,
                                          [=](double t, auto u, auto, auto out) {
                                            using T = std::decay_t<decltype(out(0))>;
                                            out(0) = u(0) - static_cast<T>(threshold(t));
                                          }),
                     function<3>("count", [](auto, const auto& u, const auto&, auto& next) {
                       next[0] = u[0];
                       next[1] = u[1];
                       next[2] = u[2] + 1;
                     })}};
  Options options = tight();
  options.max_step = 0.1;
  const Solution solution = solve(problem, options);
  const Problem few = problem.part(0, 20);
  expect_same(solve(few, options), solve_reference(few, options), "counted");
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    ASSERT_EQ(solution.record(i).status, Status::success) << i;
    const double a = problem.initial_states[3 * i], b = problem.initial_states[3 * i + 1];
    int expected = 0;
    bool above = a > threshold(0);
    for (int k = 1; k <= 40000; ++k) {
      const double t = k / 1000.0;
      const bool now = a * std::cos(t) + b * std::sin(t) > threshold(t);
      expected += now != above ? 1 : 0;
      above = now;
    }
    ASSERT_EQ(solution.end_state(i, 2), expected) << i;
  }
}

// A heater without a gap between its thresholds: turned off where it gets warm, its room cools at once. What turns it
// on there is not missed for roundings, whichever side of the threshold they tell: no time passes between the two.
TEST(ResetThresholds, a_switch_without_a_gap_ends_where_it_chatters) {
  Problem problem;
  problem.rhs = function<2>("room", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = -0.1f * (u[0] - 10) + 3 * u[1];
    du[1] = 0 * u[1];
  });
  for (int i = 0; i < 60; ++i) {
    for (const double u : {12 + 0.113 * i, 1.0}) problem.initial_states.push_back(u);
  }
  problem.end_times = {30};
  const Rhs warmth = event_function<2>("warmth", [](auto, const auto& u, const auto&) { return u[0] - 19; });
  const auto heater = [](int on) {
    return function<2>(on != 0 ? "heat" : "cool", [=](auto, const auto& u, const auto&, auto& next) {
      next[0] = u[0];
      next[1] = 0 * u[1] + on;
    });
  };
  problem.resets = {{warmth, heater(1), Direction::falling}, {warmth, heater(0), Direction::rising}};
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    const Solution solution = solve(problem, tight(precision));
    expect_same(solution, solve_reference(problem, tight(precision)), "chattering");
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      EXPECT_EQ(solution.record(i).status, Status::step_too_small) << i;
      // T = 40 - (40 - T0) exp(-t / 10).
      const double expected = 10 * std::log((40 - problem.initial_states[2 * i]) / 21);
      EXPECT_NEAR(solution.record(i).end_time, expected, precision == Precision::f64 ? 1e-7 : 1e-4) << i;
      EXPECT_NEAR(solution.end_state(i, 0), 19, precision == Precision::f64 ? 1e-9 : 1e-4) << i;
    }
  }
}

// Each bounce is a landing and a take-off, which a reset of its own counts: the floor's function rises at once.
TEST(ResetThresholds, what_one_reset_turns_back_strikes_the_other_of_its_function) {
  Problem problem = balls(60);
  problem.initial_states.clear();
  for (int i = 0; i < 60; ++i) {
    for (const double u : {0.5 + 0.03 * i, std::sin(i), 0.0, 0.0}) problem.initial_states.push_back(u);
  }
  problem.parameters.assign(60, 0.9);
  problem.end_times = {3};
  problem.save_times = {3};
  for (const double floor : {0.0, 0.3}) {
    const Rhs above = testing::height(static_cast<float>(floor));
    problem.resets = {{above,
                       function<4, 1>("land",
                                      [](auto, const auto& u, const auto& p, auto& next) {
                                        next[0] = u[0];
                                        next[1] = -p[0] * u[1];
                                        next[2] = u[2] + 1;
                                        next[3] = u[3];
                                      }),
                       Direction::falling},
                      {above,
                       function<4, 1>("take off",
                                      [](auto, const auto& u, const auto&, auto& next) {
                                        for (std::size_t c = 0; c < 4; ++c) next[c] = u[c];
                                        next[3] = u[3] + 1;
                                      }),
                       Direction::rising}};
    for (const Precision precision : {Precision::f64, Precision::f32}) {
      const Solution solution = solve(problem, tight(precision));
      expect_same(solution, solve_reference(problem, tight(precision)), "landings and take-offs");
      for (std::size_t i = 0; i < problem.trajectories(); ++i) {
        ASSERT_EQ(solution.record(i).status, Status::success) << i;
        EXPECT_GE(solution.end_state(i, 2), 2) << i;
        EXPECT_EQ(solution.end_state(i, 3), solution.end_state(i, 2)) << i;
        EXPECT_GT(solution.end_state(i, 0), floor) << i;
      }
    }
  }
}

// A ball that landed for good lies on the threshold of the take-offs until it is thrown up: that counts as one, whether
// by its speed or by its place, and a second reset for landings, which turns nothing back, is met at each.
TEST(ResetThresholds, what_another_reset_left_on_the_threshold_strikes_once_it_is_carried_on) {
  const Rhs state = function<4>("held", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = u[1];
    du[1] = -kGravity * (1 - u[2]);
    du[2] = 0 * u[2];
    du[3] = 0 * u[3];
  });
  const Rhs above = event_function<4>("above", [](auto, const auto& u, const auto&) { return u[0] - 0.3f; });
  const auto land = function<4>("land", [](auto, const auto& u, const auto&, auto& next) {
    next[0] = u[0];
    next[1] = 0 * u[1];
    next[2] = 0 * u[2] + 1;
    next[3] = u[3];
  });
  const auto count = function<4>("count", [](auto, const auto& u, const auto&, auto& next) {
    for (std::size_t c = 0; c < 4; ++c) next[c] = u[c];
    next[3] = u[3] + 1;
  });
  for (const std::size_t component : {0, 1}) {
    Problem problem;
    problem.rhs = state;
    for (int i = 0; i < 40; ++i) {
      for (const double u : {0.5 + 0.03 * i, std::sin(i), 0.0, 0.0}) problem.initial_states.push_back(u);
    }
    problem.end_times = {5};
    problem.impulses = {{4, component, 3}};
    problem.resets = {{above, land, Direction::falling}, {above, count, Direction::rising}};
    const Solution solution = solve(problem, tight());
    expect_same(solution, solve_reference(problem, tight()), "thrown up");
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      ASSERT_EQ(solution.record(i).status, Status::success) << i;
      EXPECT_EQ(solution.end_state(i, 3), 1) << i;
      EXPECT_GT(solution.end_state(i, 0), 3) << i;
    }
  }
  // Through the threshold and on, downwards: both are struck once, whichever side roundings leave the first on.
  Problem problem = balls(40);
  problem.parameters.assign(40, -1);
  problem.end_times = {3};
  problem.save_times = {3};
  const Rhs counted = function<4, 1>("counted", [](auto, const auto& u, const auto&, auto& next) {
    for (std::size_t c = 0; c < 4; ++c) next[c] = u[c];
    next[0] = (u[0] - 0.3f) + 0.3f;
    next[2] = u[2] + 1;
  });
  const Rhs again = function<4, 1>("again", [](auto, const auto& u, const auto&, auto& next) {
    for (std::size_t c = 0; c < 4; ++c) next[c] = u[c];
    next[3] = u[3] + 1;
  });
  const Rhs height = testing::height(0.3f);
  problem.resets = {{height, counted, Direction::falling}, {height, again, Direction::falling}};
  const Solution solution = solve(problem, tight());
  expect_same(solution, solve_reference(problem, tight()), "counted twice");
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    EXPECT_EQ(solution.end_state(i, 2), 1) << i;
    EXPECT_EQ(solution.end_state(i, 3), -1 + 1) << i;
  }
}

// Noon and midnight, by a function that leaps back at midnight: what it leaps to is no rounding of 0.
TEST(ResetThresholds, a_function_that_leaps_is_seen_each_time) {
  Problem problem = balls(1);
  problem.initial_states = {0, 0, 0, 0};
  problem.end_times = {100};
  problem.save_times = {};
  problem.resets[0].function = testing::plain_event(4, 1, [](double t, auto, auto, auto out) {
    using T = std::decay_t<decltype(out(0))>;
    out(0) = static_cast<T>(t - 24 * std::floor(t / 24) - 12);
  });
  Options options = tight();
  options.max_step = 1;
  for (const auto& [direction, expected] :
       {std::pair{Direction::rising, 4}, std::pair{Direction::falling, 4}, std::pair{Direction::either, 8}}) {
    problem.resets[0].direction = direction;
    const Solution solution = solve(problem, options);
    EXPECT_EQ(solution.end_state(0, 2), expected);
    expect_same(solution, solve_reference(problem, options), "noon");
  }
}

}  // namespace
}  // namespace lockstep::ode

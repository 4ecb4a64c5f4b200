// States that change at events: exact solutions, the engine's bits against the plain reference integrator's, what
// happens at one time, and what is refused. About thresholds: reset_thresholds_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/bouncing_balls.h"
#include "lockstep/ode/testing/jumps.h"
#include "lockstep/ode/testing/plain_function.h"

namespace lockstep::ode {
namespace {

using Direction = TerminalEvent::Direction;
using testing::balls, testing::ceiling, testing::floor_reset, testing::flown, testing::height, testing::kGravity;
using testing::expect_same;
using ::testing::HasSubstr;
using testing::tight;

// Within ten times the tolerance; a float32 makes some hundreds of roundings of numbers below 8.
TEST(Resets, a_ball_bounces_as_it_should) {
  const Problem problem = balls();
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    for (const std::string_view name : {"tsit5", "bs3", "dop853", "vern9"}) {
      Options options = tight(precision);
      options.method = name;
      const Solution solution = solve(problem, options);
      for (std::size_t i = 0; i < problem.trajectories(); ++i) {
        SCOPED_TRACE(std::string(name) + ", trajectory " + std::to_string(i));
        ASSERT_EQ(solution.record(i).status, Status::success);
        for (std::size_t k = 0; k < problem.save_points(); ++k) {
          const std::vector<double> expected = flown(problem, i, problem.save_times[k]);
          for (std::size_t c = 0; c < 4; ++c)
            ASSERT_NEAR(solution.state(i, k, c), expected[c], precision == Precision::f64 ? 1e-10 : 2e-4);
        }
      }
    }
  }
}

// Balls between floor and ceiling that are kicked, stopped at their second bounce.
Problem busy(std::size_t count) {
  Problem problem = balls(count);
  problem.resets = {ceiling(1.6), floor_reset(false)};
  problem.keep_events = true;
  problem.impulses = {{0.4, 1, 2}, {0.9, 0, 1.5}, {1.1, 1, -1, 0.5}};
  problem.event = TerminalEvent{
      event_function<4, 1>("second", [](auto, const auto& u, const auto&) { return u[2] - 1.5; }), Direction::rising};
  return problem;
}

TEST(Resets, the_engine_has_the_bits_of_the_reference) {
  std::size_t turn = 0;
  constexpr std::size_t kCounts[] = {1, 31, 33, 77};
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    for (const std::string_view name : method_names()) {
      if (method(name).error.empty() || !is_tried(turn++, 5)) continue;
      const Problem problem = busy(kCounts[turn % 4]);
      Options options;
      options.precision = precision;
      options.method = name;
      if (method(name).order < 4) options.rtol = options.atol = 1e-4;
      const Solution expected = solve_reference(problem, options);
      expect_same(solve(problem, options), expected, std::string(name));
      options.threads = 2;
      options.cpu_target = CpuTarget::scalar;
      expect_same(solve(problem, options), expected, std::string(name) + ", another target");
      const std::size_t first = problem.trajectories() / 2;
      const Solution part = solve(problem.part(first, problem.trajectories() - first), options);
      for (std::size_t i = 0; i < part.trajectories(); ++i)
        for (std::size_t c = 0; c < 4; ++c) ASSERT_EQ(part.end_state(i, c), expected.end_state(first + i, c));
      options.max_steps = 7;
      expect_same(solve(problem, options), solve_reference(problem, options), std::string(name) + ", few steps");
    }
  }
}
TEST(Resets, the_busy_balls_meet_all_of_it) {
  const Solution solution = solve(busy(77), tight());
  int stopped = 0, bounced = 0;
  for (std::size_t i = 0; i < 77; ++i) {
    stopped += solution.record(i).status == Status::terminated ? 1 : 0;
    bounced += solution.end_state(i, 2) > 0 ? 1 : 0;
    EXPECT_EQ(solution.record(i).status == Status::terminated, solution.end_state(i, 2) == 2) << i;
    for (std::size_t k = 0; k < 6; ++k) {
      if (k > 0 && std::isnan(solution.state(i, k, 0))) continue;
      EXPECT_LE(solution.state(i, k, 0), 4.5) << i;  // 1.6, by the kick 3.1, and 5 m/s from there
      EXPECT_GE(solution.state(i, k, 0), -1e-9) << i;
    }
  }
  EXPECT_GT(stopped, 2);
  EXPECT_LT(stopped, 75);
  EXPECT_GT(bounced, 30);
}

// Oscillators among random thresholds, changes, kicks and ends: whatever meets at one time, the bits are the same.
TEST(Resets, random_ones_have_the_bits_of_the_reference) {
  const unsigned first = ::testing::GTEST_FLAG(random_seed) == 0 ? 1 : ::testing::GTEST_FLAG(random_seed);
  for (unsigned seed = first; seed < first + (kSanitized ? 6 : 40); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto uniform = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
    const auto pick = [&](int count) { return std::uniform_int_distribution(0, count - 1)(random); };
    Problem problem;
    problem.rhs = testing::plain_function(3, 1, [](double t, auto u, auto p, auto du) {
      du(0) = u(1);
      du(1) = -p(0) * u(0) - u(1) / 8;
      du(2) = u(0) * u(2) / 4 - (t > 1 ? u(2) : 0);
    });
    const std::size_t count = 1 + static_cast<std::size_t>(pick(40));
    for (std::size_t i = 0; i < count; ++i) {
      for (int c = 0; c < 3; ++c) problem.initial_states.push_back(pick(4) == 0 ? 0.25 * pick(5) : uniform(-1.5, 1.5));
      problem.parameters.push_back(uniform(1, 9));
    }
    problem.end_times = {3};
    problem.save_times = {0.5, 1, 2.75};
    for (int k = pick(3) + 1; k > 0; --k) {
      const int of = pick(3), to = pick(3), form = pick(4);
      const float sway = pick(2) == 0 ? 0 : 0.25f;
      const double level = 0.25 * pick(4), factor = uniform(-1.2, 0.5), change = pick(2) == 0 ? 0 : uniform(-1, 1);
      problem.resets.push_back({testing::plain_event(3, 1,
                                                     [=](double t, auto u, auto, auto out) {
                                                       using T = std::decay_t<decltype(out(0))>;
                                                       out(0) =
                                                           u(of) - static_cast<float>(level) + static_cast<T>(t) * sway;
                                                     }),
                                testing::plain_function(3, 1,
                                                        [=](double, auto u, auto, auto next) {
                                                          using T = std::decay_t<decltype(next(0))>;
                                                          for (int c = 0; c < 3; ++c) next(c) = u(c);
                                                          if (form != 0)
                                                            next(to) =
                                                                static_cast<T>(factor) * u(to) + static_cast<T>(change);
                                                          if (form == 2) next(of) = static_cast<T>(level);
                                                        }),
                                static_cast<Direction>(pick(3))});
    }
    for (int k = pick(3); k > 0; --k)
      problem.impulses.push_back({0.25 * pick(12), static_cast<std::size_t>(pick(3)), uniform(-1, 1)});
    if (pick(2) == 0) {
      problem.event =
          TerminalEvent{testing::plain_event(3, 1, [](double, auto u, auto, auto out) { out(0) = u(2) - 1; }),
                        static_cast<Direction>(pick(3))};
    }
    problem.keep_events = true;
    Options options;
    options.precision = pick(2) == 0 ? Precision::f32 : Precision::f64;
    options.method = pick(2) == 0 ? "tsit5" : "dop853";
    options.max_steps = 400;
    expect_same(solve(problem, options), solve_reference(problem, options), "random");
  }
}

// A reset that leaves the state alone counts crossings, and changes nothing but the steps.
TEST(Resets, crossings_are_counted_where_the_state_goes_on) {
  Problem problem;
  problem.rhs = function<3>("wave", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = u[1];
    du[1] = -u[0];
    du[2] = 0 * u[2];
  });
  problem.initial_states = {0.1, 1, 0, 0, 1, 0, 0.5, -0.5, 0};
  problem.end_times = {62};
  const auto count = [&](Direction direction) {
    problem.resets = {{event_function<3>("x", [](auto, const auto& u, const auto&) { return u[0]; }),
                       function<3>("count",
                                   [](auto, const auto& u, const auto&, auto& next) {
                                     next[0] = u[0];
                                     next[1] = u[1];
                                     next[2] = u[2] + 1;
                                   }),
                       direction}};
    const Solution solution = solve(problem, tight());
    expect_same(solution, solve_reference(problem, tight()), "counted");
    for (std::size_t i = 0; i < 3; ++i) {
      const double phase = std::atan2(problem.initial_states[3 * i], problem.initial_states[3 * i + 1]);
      EXPECT_NEAR(solution.end_state(i, 0),
                  std::hypot(problem.initial_states[3 * i], problem.initial_states[3 * i + 1]) * std::sin(62 + phase),
                  1e-8);
      // Zeros of sin(t + phase) at multiples of pi, the first of which it passes falling.
      const double zeros = std::floor((62 + phase) / M_PI);
      const double rising = std::floor(zeros / 2);
      EXPECT_EQ(solution.end_state(i, 2), direction == Direction::either   ? zeros
                                          : direction == Direction::rising ? rising
                                                                           : zeros - rising);
    }
  };
  for (const Direction direction : {Direction::either, Direction::rising, Direction::falling}) count(direction);
}

// A heater that is on below 18 degrees and off above 22: one function, either way, moved by its own reset.
TEST(Resets, a_thermostat_switches_between_its_thresholds) {
  Problem problem;
  problem.rhs = function<3>("room", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = 10 * u[1] - 0.3 * (u[0] - 5);
    du[1] = 0 * u[1];
    du[2] = 0 * u[2];
  });
  problem.initial_states = {20, 1, 0, 20, 0, 0};
  problem.end_times = {24};
  for (int k = 0; k <= 240; ++k) problem.save_times.push_back(0.1 * k);
  problem.save_times.back() = 24;
  problem.resets = {{event_function<3>("beyond", [](auto, const auto& u, const auto&) { return u[0] - 18 - 4 * u[1]; }),
                     function<3>("switch", [](auto, const auto& u, const auto&, auto& next) {
                       next[0] = u[0];
                       next[1] = 1 - u[1];
                       next[2] = u[2] + 1;
                     })}};
  const Solution solution = solve(problem, tight());
  expect_same(solution, solve_reference(problem, tight()), "a room");
  // T' = 10 on - 0.3 (T - 5): up from 18 to 22 and down again take these times.
  const double hot = 5 + 10 / 0.3;
  const double up = std::log((hot - 18) / (hot - 22)) / 0.3, down = std::log(17.0 / 13) / 0.3;
  const double first = std::log((hot - 20) / (hot - 22)) / 0.3;
  int expected = 0;
  for (double t = first; t < 24; t += expected % 2 == 1 ? down : up) ++expected;
  EXPECT_EQ(solution.end_state(0, 2), expected);
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t k = 0; k < 241; ++k) {
      EXPECT_GE(solution.state(i, k, 0), 18 - 1e-9);
      EXPECT_LE(solution.state(i, k, 0), 22 + 1e-9);
    }
  }
}

// One reset carries the state over the next one's threshold, and that one over the first's, which has had its turn.
TEST(Resets, one_strikes_another_at_the_same_time) {
  const auto add = [](double to_x, double to_y) {
    return function<2>("add", [=](auto, const auto& u, const auto&, auto& next) {
      next[0] = u[0] + to_x;
      next[1] = u[1] + to_y;
    });
  };
  Problem problem;
  problem.rhs = function<2>("rise", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = 1 + 0 * u[0];
    du[1] = 0 * u[1];
  });
  problem.initial_states = {0, 0};
  problem.end_times = {2};
  problem.save_times = {1};
  problem.resets = {{event_function<2>("y", [](auto, const auto& u, const auto&) { return u[1] - 0.5; }), add(-3, 0)},
                    {event_function<2>("x", [](auto, const auto& u, const auto&) { return u[0] - 1; }), add(0, 1),
                     Direction::rising}};
  const Solution solution = solve(problem, tight());
  EXPECT_NEAR(solution.state(0, 0, 0), 1, 1e-12);  // the state before
  EXPECT_EQ(solution.state(0, 0, 1), 0);
  EXPECT_NEAR(solution.end_state(0, 0), -1, 1e-11);
  EXPECT_EQ(solution.end_state(0, 1), 1);
  expect_same(solution, solve_reference(problem, tight()), "one and the other");
  problem.impulses = {{0.5, 1, 1}};  // strikes the first one at once
  const Solution kicked = solve(problem, tight());
  EXPECT_NEAR(kicked.end_state(0, 0), -1, 1e-11);
  EXPECT_EQ(kicked.end_state(0, 1), 1);
  expect_same(kicked, solve_reference(problem, tight()), "by an impulse");
}

// A reset at a time at which a step ends anyhow, and an impulse there: x is doubled, then kicked; at the span's end
// nothing happens.
TEST(Resets, a_stop_may_be_where_one_strikes) {
  Problem problem;
  problem.rhs = function<1>("grow", [](auto, const auto& u, const auto&, auto& du) { du[0] = 0.5 + 0 * u[0]; });
  for (int i = 0; i < 33; ++i) problem.initial_states.push_back(0.1 * i);
  problem.end_times = {2};
  problem.save_times = {1};
  problem.impulses = {{1, 0, 0.25}};
  for (const double at : {1.0, 2.0}) {
    problem.resets.push_back({event_function<1>("time", [at](auto t, const auto& u, const auto&) { return t - at + 0 * u[0]; }),
                              function<1>("double", [](auto, const auto& u, const auto&, auto& next) { next[0] = 2 * u[0]; })});
  }
  for (const Precision precision : {Precision::f64, Precision::f32}) {
    const Solution solution = solve(problem, tight(precision));
    expect_same(solution, solve_reference(problem, tight(precision)), "at a stop");
    for (std::size_t i = 0; i < 33; ++i) {
      const double before = problem.initial_states[i] + 0.5;
      EXPECT_NEAR(solution.state(i, 0, 0), before, 1e-6);
      EXPECT_NEAR(solution.end_state(i, 0), 2 * before + 0.25 + 0.5, 2e-6);
    }
  }
}

// The event is there first, where both share a threshold.
TEST(Resets, an_event_at_the_same_threshold_ends_the_trajectory) {
  Problem problem = balls(40);
  problem.event = TerminalEvent{height(), Direction::falling};
  const Solution solution = solve(problem, tight());
  expect_same(solution, solve_reference(problem, tight()), "at the floor");
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(solution.record(i).status, Status::terminated);
    EXPECT_LT(solution.end_state(i, 1), 0);
    EXPECT_EQ(solution.end_state(i, 2), 0);
  }
}

// Into numbers that are none: alone, and as a failure of that trajectory.
TEST(Resets, a_bad_state_spoils_no_neighbour) {
  Problem problem = balls(40);
  problem.resets[0].state = testing::plain_function(4, 1, [](double t, auto u, auto p, auto next) {
    next(0) = 0;
    next(1) = -p(0) * u(1) + std::sqrt(0.85 - p(0));
    next(2) = u(2) + 1;
    next(3) = t;
  });
  const Solution solution = solve(problem, tight());
  expect_same(solution, solve_reference(problem, tight()), "bad states");
  for (std::size_t i = 0; i < 40; ++i)
    EXPECT_EQ(solution.record(i).status, problem.parameters[i] > 0.85 ? Status::not_finite : Status::success) << i;
}

TEST(Resets, what_cannot_be_is_refused) {
  const auto message = [](const Problem& problem, const Options& options = {}) {
    return message_of([&] { solve(problem, options); });
  };
  Problem problem = balls(3);
  problem.resets[0].function = nullptr;
  EXPECT_THAT(message(problem), HasSubstr("problem.resets[0].function: found none"));
  problem = balls(3);
  problem.resets[0].state = height();
  EXPECT_THAT(message(problem), HasSubstr("problem.resets[0].state: found 1 number, expected 4 numbers"));
  problem = balls(3);
  problem.resets[0].function = event_function<2>("x", [](auto, const auto& u, const auto&) { return u[0]; });
  EXPECT_THAT(message(problem), HasSubstr("problem.resets[0].function: found 2 components and 0 parameters"));
  problem = balls(3);
  problem.resets.clear();
  problem.keep_events = true;
  EXPECT_THAT(message(problem),
              HasSubstr("problem.keep_events: found true, and no resets, expected resets, whose events they are; drop "
                        "it: the end times tell where an event stopped a trajectory"));
  problem = balls(3);
  problem.resets.assign(65, floor_reset());
  EXPECT_THAT(message(problem), HasSubstr("problem.resets: found 65, expected at most 64"));
  problem = balls(3);
  Options options;
  options.control = StepControl::common;
  EXPECT_THAT(message(problem, options), HasSubstr("options.control: found common with resets"));
  options.control = StepControl::fixed;
  options.dt = 0.01;
  EXPECT_THAT(message(problem, options), HasSubstr("options.control: found fixed with resets"));
}

}  // namespace
}  // namespace lockstep::ode

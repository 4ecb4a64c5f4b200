// Resets that observe: the function goes on through its threshold behind them, and each crossing counts once, however
// finely its parts are rounded. Counts come from closed forms.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "lockstep/core/testing/sanitized.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/jumps.h"
#include "lockstep/ode/testing/plain_function.h"

namespace lockstep::ode {
namespace {

using Direction = TerminalEvent::Direction;
using testing::expect_same;

constexpr std::size_t kCount = kSanitized ? 40 : 300;

// x = level + cos(w t), whose numbers are far coarser than time's.
Problem waves(double level, std::size_t count, double slowest, double fastest) {
  Problem problem;
  problem.rhs = differentiable_function<2, 1>("wave", [=](auto, const auto& u, const auto& p, auto& du) {
    du[0] = u[1];
    du[1] = -p[0] * p[0] * (u[0] - level);
  });
  for (std::size_t i = 0; i < count; ++i) {
    for (const double u : {level + 1, 0.0}) problem.initial_states.push_back(u);
    problem.parameters.push_back(slowest *
                                 std::pow(fastest / slowest, static_cast<double>(i) / static_cast<double>(count)));
  }
  problem.keep_events = true;
  return problem;
}
// x - level + sway(t), and nothing changes.
Reset observed(double level, std::function<double(double)> sway, Direction direction) {
  return {testing::plain_event(2, 1,
                               [=](double t, auto u, auto, auto out) {
                                 using T = std::decay_t<decltype(out(0))>;
                                 out(0) = u(0) - static_cast<T>(level) + static_cast<T>(sway(t));
                               }),
          testing::plain_function(2, 1,
                                  [](double, auto u, auto, auto next) {
                                    next(0) = u(0);
                                    next(1) = u(1);
                                  }),
          direction};
}
double slow_sway(double t) { return 0.1 * std::sin(t); }

// Zeros of cos(w t) + slow_sway(t): near them |sin(w t)| > 0.99, so that for w > 0.11 one of them lies in each half
// turn.
std::size_t wave_zeros(double w, double end, Direction direction) {
  const auto halves = static_cast<std::size_t>(std::floor(w * end / M_PI));
  const double sign = halves % 2 == 0 ? 1 : -1;
  const bool passed = sign * (std::cos(w * end) + slow_sway(end)) < 0;
  const std::size_t zeros = halves + (passed ? 1 : 0);  // falling, rising, falling ...
  if (direction == Direction::either) return zeros;
  return direction == Direction::falling ? (zeros + 1) / 2 : zeros / 2;
}

struct Setting {
  const char* method;
  Precision precision;
  double tolerance;
};
constexpr Setting kSettings[] = {
    {"tsit5", Precision::f64, 1e-8},   {"tsit5", Precision::f64, 1e-4},   {"vern7", Precision::f64, 1e-6},
    {"dop853", Precision::f64, 1e-10}, {"rodas5p", Precision::f64, 1e-6}, {"bs3", Precision::f64, 1e-5},
    {"tsit5", Precision::f32, 1e-4},   {"vern7", Precision::f32, 1e-4},   {"rodas5p", Precision::f32, 1e-4}};
Options options_of(const Setting& setting) {
  Options options;
  options.method = setting.method;
  options.precision = setting.precision;
  options.rtol = options.atol = setting.tolerance;
  return options;
}
std::string name_of(const Setting& setting) {
  return std::string(setting.method) + ", " + std::string(to_string(setting.precision)) + ", " +
         std::to_string(setting.tolerance);
}
void expect_the_reference(const Problem& problem, const Options& options) {
  const Problem some = problem.part(problem.trajectories() / 2, problem.trajectories() / 8 + 1);
  expect_same(solve(some, options), solve_reference(some, options), "some of them");
}

TEST(ObservingResets, one_wave_is_followed_to_its_end) {
  Problem problem = waves(1000, 1, 0.063445554971573, 1);
  problem.end_times = {3000};
  problem.resets = {observed(1000, slow_sway, Direction::falling)};
  const Solution solution = solve(problem, options_of(kSettings[0]));
  EXPECT_EQ(solution.record(0).status, Status::success);
  EXPECT_EQ(solution.record(0).end_time, 3000);
  expect_same(solution, solve_reference(problem, options_of(kSettings[0])), "a wave");
}

// Of a level at which float32 tells 6e-5 apart, and float64 1e-13.
TEST(ObservingResets, each_crossing_of_a_swaying_level_counts_once) {
  for (const Direction direction : {Direction::falling, Direction::rising, Direction::either}) {
    Problem problem = waves(1000, kCount, 0.15, 3);
    problem.end_times = {130};
    problem.resets = {observed(1000, slow_sway, direction)};
    for (const Setting& setting : kSettings) {
      SCOPED_TRACE(name_of(setting));
      const Solution solution = solve(problem, options_of(setting));
      for (std::size_t i = 0; i < problem.trajectories(); ++i) {
        ASSERT_EQ(solution.record(i).status, Status::success) << i;
        // Amplitudes drift with loose tolerances, but phases by far less than where the last crossing lies from the
        // end.
        ASSERT_EQ(solution.events(i).size(), wave_zeros(problem.parameters[i], 130, direction)) << i;
      }
      expect_the_reference(problem, options_of(setting));
    }
  }
}

// Behind a start on the threshold itself there is nothing to meet: the level is left at once, upwards, though time
// alone takes the function down until x is rounded to another number.
TEST(ObservingResets, what_starts_on_its_level_leaves_it_unmet) {
  Problem problem = waves(1000, kCount, 1.1, 3);
  problem.rhs = function<2, 1>("line", [](auto, const auto&, const auto& p, auto& du) {
    du[0] = p[0];
    du[1] = 0 * p[0];
  });
  for (std::size_t i = 0; i < kCount; ++i) problem.initial_states[2 * i] = 1000;
  problem.start_times = {7};
  problem.end_times = {9};
  problem.resets = {observed(
      1000, [](double t) { return 7 - t; }, Direction::either)};
  for (const Setting& setting : kSettings) {
    if (std::string(setting.method) == "rodas5p") continue;
    SCOPED_TRACE(name_of(setting));
    const Solution solution = solve(problem, options_of(setting));
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(solution.record(i).status, Status::success) << i;
      ASSERT_EQ(solution.events(i).size(), 0) << i;
    }
    expect_the_reference(problem, options_of(setting));
  }
}

// Through zero as a cubic goes, which has no rate there, and by a sum that the function rounds within itself.
TEST(ObservingResets, a_function_goes_on_without_a_rate_and_through_roundings_of_its_own) {
  for (const bool cubic : {true, false}) {
    Problem problem = waves(0.5, kCount, 0.15, 3);
    problem.end_times = {130};
    problem.resets = {observed(0.5, slow_sway, Direction::falling)};
    problem.resets[0].function = testing::plain_event(2, 1, [=](double t, auto u, auto, auto out) {
      using T = std::decay_t<decltype(out(0))>;
      const T x = u(0) - T(0.5);
      out(0) = cubic ? x * x * x : (T(700) + x) - T(700) + static_cast<T>(slow_sway(t));
    });
    for (const Setting& setting : kSettings) {
      SCOPED_TRACE(name_of(setting) + (cubic ? ", a cubic" : ", a sum"));
      const Solution solution = solve(problem, options_of(setting));
      for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(solution.record(i).status, Status::success) << i;
        const double w = problem.parameters[i], turns = w * 130 / (2 * M_PI);
        const auto zeros = static_cast<std::size_t>(std::floor(turns + 0.75));  // of a cosine, falling
        ASSERT_EQ(solution.events(i).size(), cubic ? zeros : wave_zeros(w, 130, Direction::falling)) << i;
      }
      expect_the_reference(problem, options_of(setting));
    }
  }
}

// Peaks, as of ozone: the rate falls through zero as the small difference of large terms, each rounded by its own
// grain. The terms are lines, so that one peak is met, where they were drawn to cancel.
TEST(ObservingResets, peaks_are_kept_once_where_large_terms_cancel) {
  const auto rate = [](const auto& u, const auto& p) { return 3e-3 * u[0] - 0.7 * u[1] - 1.3 * u[2] + p[3]; };
  Problem problem;
  problem.rhs = function<5, 4>("terms", [=](auto, const auto& u, const auto& p, auto& du) {
    for (std::size_t c = 0; c < 3; ++c) du[c] = p[c];
    du[3] = rate(u, p);
    du[4] = 0 * u[4];
  });
  std::mt19937 random(1);
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  std::vector<double> met_at;
  for (std::size_t i = 0; i < 10 * kCount; ++i) {
    const double at = uniform(1, 10), a = uniform(200, 900), b = uniform(0.3, 2.3), rest = uniform(0, 0.01);
    const double slope = -uniform(0.01, 0.11), a_rate = uniform(-10, 10), b_rate = uniform(-0.1, 0.1);
    const double c = (3e-3 * a - 0.7 * b + rest) / 1.3, c_rate = (3e-3 * a_rate - 0.7 * b_rate - slope) / 1.3;
    for (const double u : {a - a_rate * at, b - b_rate * at, c - c_rate * at, 100.0, 0.0})
      problem.initial_states.push_back(u);
    for (const double p : {a_rate, b_rate, c_rate, rest}) problem.parameters.push_back(p);
    met_at.push_back(at);
  }
  problem.end_times = {12};
  problem.keep_events = true;
  problem.resets = {{event_function<5, 4>("rate", [=](auto, const auto& u, const auto& p) { return rate(u, p); }),
                     testing::plain_function(5, 4,
                                             [](double, auto u, auto, auto next) {
                                               for (int c = 0; c < 4; ++c) next(c) = u(c);
                                               next(4) = u(4) > u(3) ? u(4) : u(3);
                                             }),
                     Direction::falling}};
  for (const Setting& setting : kSettings) {
    if (std::string(setting.method) == "rodas5p") continue;  // asks for a derivative
    SCOPED_TRACE(name_of(setting));
    Options options = options_of(setting);
    options.max_step = 0.7;
    const Solution solution = solve(problem, options);
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      ASSERT_EQ(solution.record(i).status, Status::success) << i;
      ASSERT_EQ(solution.events(i).size(), 1) << i;
      // In float32 each of the terms, up to 3, is made of some hundred roundings of 6e-8, and its slope is over 0.01.
      ASSERT_NEAR(solution.events(i)[0].time, met_at[i], setting.precision == Precision::f64 ? 1e-9 : 0.1) << i;
    }
    expect_the_reference(problem, options);
  }
}

}  // namespace
}  // namespace lockstep::ode

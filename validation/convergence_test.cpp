// Measured orders: of every method with fixed steps, of every interpolant, and of the error against the tolerance.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep {
namespace {

// x' = -2 t y (x^2 + y^2), y' = 2 t x (x^2 + y^2) from (1, 0): nonlinear, not autonomous, and known exactly:
// (cos t^2, sin t^2) where it starts on that circle.
const ode::Rhs circle = ode::differentiable_function<2>("circle", [](auto t, const auto& u, const auto&, auto& du) {
  const auto speed = 2 * t * (u[0] * u[0] + u[1] * u[1]);
  du[0] = -speed * u[1];
  du[1] = speed * u[0];
});
double exact(double t, std::size_t component) { return component == 0 ? std::cos(t * t) : std::sin(t * t); }

ode::Problem circle_from(double start, double end, std::vector<double> save_times) {
  return {.rhs = circle,
          .initial_states = {exact(start, 0), exact(start, 1)},
          .start_times = {start},
          .end_times = {end},
          .save_times = std::move(save_times)};
}

double largest_error(const ode::Solution& solution) {
  double error = 0;
  for (std::size_t k = 0; k < solution.save_points(); ++k) {
    for (std::size_t c = 0; c < 2; ++c) {
      error = std::max(error, std::abs(solution.state(0, k, c) - exact(solution.times()[k], c)));
    }
  }
  return error;
}

ode::Options fixed_steps(const std::string& method, double dt) {
  return {.method = method, .control = ode::StepControl::fixed, .dt = dt, .precision = Precision::f64, .threads = 1};
}

// The slope of log error over log h between the two finest steps whose error is above the floor that rounding makes.
double measured_order(double coarsest, const std::function<double(double)>& floor_of,
                      const std::function<double(double)>& error_of) {
  double h = coarsest, error = error_of(h), order = 0;
  for (int halvings = 0; halvings < 9; ++halvings) {
    const double finer = error_of(h / 2);
    if (finer < floor_of(h / 2)) break;
    order = std::log2(error / finer);
    error = finer;
    h /= 2;
  }
  return order;
}

// Rounding over a whole solve until t = 3: each step adds 2^-53 with random sign, and an error of the radius turns the
// phase by up to 2 * 9 times itself. 20 times that moves a measured order by 0.07.
double solve_floor(double dt) { return 20 * 18 * std::sqrt(3 / dt) * 0x1p-53; }
// Rounding within one step: some thirty operations on numbers of order one, 30 * 2^-53 = 3e-15, of random sign.
double step_floor(double) { return 2e-14; }

class EveryMethod : public testing::TestWithParam<std::string> {
 protected:
  const ode::Tableau& m = ode::method(GetParam());
};
const auto kNames = testing::ValuesIn([] {
  std::vector<std::string> names;
  for (const auto name : ode::method_names()) {
    if (name != "vern9") names.emplace_back(name);  // see below
  }
  return names;
}());
INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod, kNames, [](const auto& info) { return info.param; });

// Errors at eight times, lest the solution cross the truth at one.
std::vector<double> between(double end, int count) {
  std::vector<double> times;
  for (int i = 1; i <= count; ++i) times.push_back(end * i / count);
  return times;
}

TEST_P(EveryMethod, converges_with_its_order) {
  // Save points that are step ends: 3/8 is a multiple of every step 3/16 2^-k.
  const double order = measured_order(3.0 / 16, solve_floor, [&](double dt) {
    return largest_error(ode::solve(circle_from(0, 3, between(3, 8)), fixed_steps(GetParam(), dt)));
  });
  EXPECT_NEAR(order, m.order, 0.2);
}

// Over many steps the interpolant's own error, O(h^(q+1)), adds to the method's, O(h^p).
TEST_P(EveryMethod, saved_states_between_steps_converge_as_fast) {
  const double order = measured_order(3.0 / 16, solve_floor, [&](double dt) {
    return largest_error(ode::solve(circle_from(0, 3, between(3, 47)), fixed_steps(GetParam(), dt)));
  });
  EXPECT_NEAR(order, std::min(m.order, m.interpolant_order + 1), 0.2);
}

// Within one step from exact data the interpolant's error stands alone. Orders are whole numbers: half of one tells
// neighbours apart, and a single step of dop853 leaves too little above rounding to come closer.
TEST_P(EveryMethod, interpolant_has_its_order_within_a_step) {
  const double order = measured_order(1, step_floor, [&](double h) {
    const double start = 0.7;
    return largest_error(ode::solve(circle_from(start, start + h, {start + 0.35 * h}), fixed_steps(GetParam(), 2 * h)));
  });
  // Vern7's interpolant misses order 7 by residuals of 4e-6, which do not show here.
  EXPECT_NEAR(order, (GetParam() == "vern7" ? 7 : m.interpolant_order) + 1, 0.5);
}

// At order 9 rounding leaves no step so small that the ninth power stands alone: higher ones still add to the slope,
// 10.0, 9.5, 9.1 on an oscillator. What can be seen is that it is no lower order; methods_test has each condition.
TEST(Vern9, converges_at_least_with_its_order) {
  const auto error_of = [](double end, std::vector<double> times, double dt) {
    const ode::Problem problem{.rhs = ode::system("harmonic_oscillator"),
                               .initial_states = {1, 0},
                               .parameters = {1},
                               .end_times = {end},
                               .save_times = std::move(times)};
    const ode::Solution solution = ode::solve(problem, fixed_steps("vern9", dt));
    double error = 0;
    for (std::size_t k = 0; k < solution.save_points(); ++k) {
      error = std::max(error, std::abs(solution.state(0, k, 0) - std::cos(solution.times()[k])));
      error = std::max(error, std::abs(solution.state(0, k, 1) + std::sin(solution.times()[k])));
    }
    return error;
  };
  for (const int count : {8, 47}) {  // step ends, and times between them
    const auto at = [&](double dt) { return error_of(20, between(20, count), dt); };
    EXPECT_GT(std::log2(at(1.25) / at(0.3125)) / 2, 9) << count;
  }
  for (const double theta : {0.2, 0.35, 0.5, 0.65, 0.8}) {  // one step
    const auto at = [&](double h) { return error_of(h, {theta * h}, 2 * h); };
    EXPECT_GT(std::log2(at(1) / at(0.5)), 10) << theta;
  }
}

class EveryAdaptiveMethod : public EveryMethod {};
INSTANTIATE_TEST_SUITE_P(Methods, EveryAdaptiveMethod,
                         testing::Values("midpoint", "heun", "bs3", "dopri5", "tsit5", "vern7", "dop853", "vern9"),
                         [](const auto& info) { return info.param; });

// The estimate, O(h^(q+1)), is held at the tolerance, so the error of order p goes with its p/(q+1)-th power: the first
// power for every pair here (dop853's combined estimate is O(h^8)). Measured over five decades of x'' = -x.
TEST_P(EveryAdaptiveMethod, error_is_proportional_to_the_tolerance) {
  const auto error_at = [&](double tolerance) {
    const ode::Problem problem{
        .rhs = ode::system("harmonic_oscillator"), .initial_states = {1, 0}, .parameters = {1}, .end_times = {20}};
    const ode::Options options{.method = GetParam(),
                               .rtol = tolerance,
                               .atol = tolerance,
                               .max_steps = 10'000'000,
                               .precision = Precision::f64,
                               .threads = 1};
    const ode::Solution solution = ode::solve(problem, options);
    return std::hypot(solution.end_state(0, 0) - std::cos(20.0), solution.end_state(0, 1) + std::sin(20.0));
  };
  const double loose = m.order <= 2 ? 1e-3 : 1e-5, tight = loose * 1e-5;
  const double exponent = std::log10(error_at(loose) / error_at(tight)) / 5;
  EXPECT_NEAR(exponent, 1, 0.1);
  // Local errors of one tolerance each add up over the steps taken, a few tens of times at the most.
  EXPECT_LT(error_at(tight), 50 * tight);
}

}  // namespace
}  // namespace lockstep

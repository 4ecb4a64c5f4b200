// Linearly implicit steps where the Jacobian is infinite, too large or no number while the right-hand side is finite.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/jumps.h"

namespace lockstep::ode {
namespace {

Rhs filling() {
  return differentiable_function<1, 1>("filling", [](auto, const auto& u, const auto& p, auto& du) {
    using std::sqrt;
    du[0] = p[0] - sqrt(u[0]);
  });
}

// From rest both entries in a row are 0 times infinity.
Rhs dragged() {
  return differentiable_function<2, 1>("dragged", [](auto, const auto& u, const auto& p, auto& du) {
    using std::sqrt;
    const auto speed = sqrt(u[0] * u[0] + u[1] * u[1]);
    du[0] = p[0] - 10 * u[0] * speed;
    du[1] = 0.5 * p[0] - 10 * u[1] * speed;
  });
}

Problem problem_of(Rhs rhs, std::vector<double> initial, std::size_t count) {
  Problem problem;
  problem.rhs = std::move(rhs);
  for (std::size_t i = 0; i < count; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), initial.begin(), initial.end());
    problem.parameters.push_back(1 + static_cast<double>(i));
  }
  problem.end_times = {2};
  problem.save_times = {0.7, 1.1};
  return problem;
}

Options options_for(const char* method, Precision precision, double tolerance) {
  Options options{.method = method, .precision = precision, .threads = 1};
  options.rtol = options.atol = tolerance;
  return options;
}

std::vector<Problem> at_infinite_slopes(std::size_t count) {
  return {problem_of(filling(), {0}, count), problem_of(dragged(), {0, 0}, count)};
}

// An error may be five of the steps' tolerances, as those of other methods are (docs/numerics.md).
TEST(InfiniteSlopes, states_leave_them_as_with_an_explicit_method) {
  for (const Problem& problem : at_infinite_slopes(5)) {
    for (const auto& [precision, tolerance] : {std::pair{Precision::f32, 1e-4}, std::pair{Precision::f64, 1e-6}}) {
      const Solution exact = solve(problem, options_for("tsit5", Precision::f64, 1e-11));
      const Solution solution = solve(problem, options_for("rodas5p", precision, tolerance));
      for (std::size_t i = 0; i < 5; ++i) {
        ASSERT_EQ(solution.record(i).status, Status::success);
        for (std::size_t k = 0; k < 2; ++k) {
          for (std::size_t c = 0; c < problem.rhs->components(); ++c) {
            const double state = exact.state(i, k, c);
            EXPECT_NEAR(solution.state(i, k, c), state, 5 * tolerance * (1 + std::abs(state)));
          }
        }
      }
    }
  }
}

TEST(InfiniteSlopes, the_engine_has_the_bits_of_the_reference) {
  for (Problem problem : at_infinite_slopes(33)) {
    problem.initial_states[0] = 0.25;  // beside those whose slopes are infinite one whose slopes are not
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      for (const StepControl control : {StepControl::per_trajectory, StepControl::common, StepControl::fixed}) {
        Options options = options_for("rodas5p", precision, precision == Precision::f32 ? 1e-4 : 1e-7);
        options.control = control;
        if (control == StepControl::fixed) options.dt = 0.01;
        const Solution expected = solve_reference(problem, options);
        for (const CpuTarget target : available_cpu_targets()) {
          options.cpu_target = target;
          testing::expect_same(expected, solve(problem, options), std::string(to_string(target)));
        }
      }
    }
  }
}

// h J overflows in steps of the span's size; the state decays before time moves.
TEST(InfiniteSlopes, rates_beyond_what_numbers_hold_do_not_freeze_a_state) {
  Problem problem;
  problem.rhs = differentiable_function<2, 1>("huge", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = -p[0] * u[0];
    du[1] = p[0] * (1 - u[1]);
  });
  problem.initial_states = {1, 0};
  problem.end_times = {1e10};
  for (const auto& [precision, rate] : {std::pair{Precision::f32, 1e37}, std::pair{Precision::f64, 1e300}}) {
    problem.parameters = {rate};
    Options options = options_for("rodas5p", precision, 1e-4);
    options.initial_step = 1e9;
    const Solution solution = solve(problem, options);
    ASSERT_EQ(solution.record(0).status, Status::success);
    EXPECT_NEAR(solution.end_state(0, 0), 0, 1e-4);
    EXPECT_NEAR(solution.end_state(0, 1), 1, 2e-4);
  }
}

}  // namespace
}  // namespace lockstep::ode

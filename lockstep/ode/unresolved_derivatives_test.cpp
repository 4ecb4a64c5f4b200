// Steps that are unstable for derivatives while the state shows nothing, and steps that are not.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/fit_errors.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/testing/gradient_cases.h"

namespace lockstep::ode {
namespace {

using testing::f64;
using testing::Numbers;

// R' = kin - kout R, at rest where R = kin / kout.
Rhs turnover() {
  return differentiable_function<1, 2>(
      "turnover", [](auto, const auto& u, const auto& p, auto& du) { du[0] = p[0] - p[1] * u[0]; });
}
Problem turnover_to(double end, Numbers starts = {5}) {
  Problem problem;
  problem.rhs = turnover();
  problem.initial_states = std::move(starts);
  problem.parameters = {10, 2};
  problem.end_times = {end};
  problem.save_times = {0.5 * end, end};
  return problem;
}

// Diffusion between cells in a row, and a slow decay: uniform where it starts so.
Problem uniform_cells() {
  Problem problem;
  problem.rhs = differentiable_function<4, 1>("cells", [](auto, const auto& u, const auto& p, auto& du) {
    for (std::size_t i = 0; i < 4; ++i) {
      du[i] = -0.1 * u[i];
      if (i > 0) du[i] = du[i] + p[0] * (u[i - 1] - u[i]);
      if (i < 3) du[i] = du[i] + p[0] * (u[i + 1] - u[i]);
    }
  });
  problem.initial_states = Numbers(4, 1.0);
  problem.parameters = {20};
  problem.end_times = {10};
  problem.save_times = {10};
  return problem;
}

// u' = -30 u + 30, at rest where u = 1.
Problem resting_net() {
  Problem problem;
  Mlp mlp;
  mlp.layers.push_back({1, 1, {-30}, {30}, {ActivationKind::identity}});
  problem.rhs = net(mlp);
  problem.initial_states = {1};
  problem.end_times = {20};
  problem.save_times = {10, 20};
  return problem;
}

Options usual(const char* method = "tsit5") { return f64(method, StepControl::per_trajectory); }
GradientOptions checked() { return {.check_steps = true}; }
TrajectoryLoss end_loss() {
  return [](std::size_t, std::span<const double> states, std::span<double> slopes) {
    slopes.back() = 1;
    return states.back();
  };
}

// Derivatives by the initial state and parameters of the last component's end.
Numbers slopes_of(const Problem& problem, const Options& options) {
  const Gradients found = solve_with_gradients(problem, options, end_loss(), checked());
  Numbers all = found.initial_states;
  all.insert(all.end(), found.parameters.begin(), found.parameters.end());
  return all;
}

void expect_found_and_mended(const std::string& what, const Problem& problem, Options options) {
  SCOPED_TRACE(what);
  const Gradients gradients = solve_with_gradients(problem, options, end_loss(), checked());
  const Sensitivities forward = solve_with_sensitivities(problem, options);
  ASSERT_TRUE(gradients.unresolved.has_value());
  ASSERT_TRUE(forward.unresolved.has_value());
  EXPECT_EQ(gradients.unresolved->trajectory, 0u);
  EXPECT_GT(gradients.unresolved->error, UnresolvedDerivatives::kMostError);
  EXPECT_LT(gradients.unresolved->stable_step, gradients.unresolved->h);
  EXPECT_EQ(forward.unresolved->stable_step, gradients.unresolved->stable_step);
  EXPECT_FALSE(solve_with_gradients(problem, options, end_loss()).unresolved.has_value());  // nobody asked

  const Numbers wrong = slopes_of(problem, options);
  (options.control == StepControl::fixed ? options.dt : options.max_step.emplace()) = gradients.unresolved->stable_step;
  EXPECT_FALSE(solve_with_gradients(problem, options, end_loss(), checked()).unresolved.has_value());
  EXPECT_FALSE(solve_with_sensitivities(problem, options).unresolved.has_value());
  const Numbers mended = slopes_of(problem, options);
  Options fine = options;
  (options.control == StepControl::fixed ? fine.dt : *fine.max_step) /= 4;
  const Numbers right = slopes_of(problem, fine);
  double largest = 0, off = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    largest = std::max(largest, std::fabs(wrong[i] - right[i]));
    off = std::max(off, std::fabs(mended[i] - right[i]));
  }
  EXPECT_GT(largest, 1e3);
  EXPECT_LT(off, 0.1);  // of derivatives below 3: steps just within stability
}

TEST(UnresolvedDerivatives, are_found_where_trajectories_rest) {
  Options coarse = f64("tsit5", StepControl::fixed), single = usual();
  coarse.dt = 2.5;
  single.precision = Precision::f32;
  expect_found_and_mended("tsit5", turnover_to(40), usual());
  expect_found_and_mended("a net", resting_net(), usual());
  if (kSanitized) return;  // duals a number at a time, checked, take minutes for the others
  for (const char* method : {"bs3", "dop853", "vern7"})
    expect_found_and_mended(method, turnover_to(100), usual(method));
  expect_found_and_mended("common steps", turnover_to(100, Numbers(40, 5.0)), f64("tsit5", StepControl::common));
  expect_found_and_mended("fixed steps", turnover_to(100), coarse);
  expect_found_and_mended("cells", uniform_cells(), usual());
  expect_found_and_mended("float32", turnover_to(100), single);
}

// Beside a trajectory that is not finite at its start, and one without a span.
TEST(UnresolvedDerivatives, are_found_where_they_overflow_and_not_where_nothing_moves) {
  Options single = usual();
  single.precision = Precision::f32;
  Problem problem = turnover_to(1e5, {5, 3e38, 5});
  problem.end_times = {1e5, 1e5, 0};
  problem.save_times.clear();
  const Sensitivities found = solve_with_sensitivities(problem, single);
  ASSERT_TRUE(found.unresolved.has_value());
  EXPECT_EQ(found.unresolved->trajectory, 0u);
  EXPECT_TRUE(std::isinf(found.unresolved->error));
  EXPECT_GT(found.unresolved->stable_step, 0.1);
  EXPECT_LT(found.unresolved->stable_step, 1.7);
  EXPECT_TRUE(solve_with_gradients(turnover_to(1e5), single, end_loss(), checked()).unresolved.has_value());
  problem.end_times = {0, 1e5, 0};
  EXPECT_FALSE(solve_with_sensitivities(problem, single).unresolved.has_value());
}

TEST(UnresolvedDerivatives, are_found_among_others_and_backwards_in_time) {
  Numbers starts;
  for (int i = 0; i < 1000; ++i) starts.push_back(i == 777 ? 5 : 5.5 + i);
  const Problem many = turnover_to(100, starts);
  const auto found = solve_with_sensitivities(many, usual()).unresolved;
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->trajectory, 777u);

  Problem back = turnover_to(-100);
  back.parameters = {-10, -2};
  const auto of_back = solve_with_sensitivities(back, usual()).unresolved;
  ASSERT_TRUE(of_back.has_value());
  EXPECT_LT(of_back->h, 0);
  EXPECT_GT(of_back->stable_step, 0);
}

TEST(UnresolvedDerivatives, are_told_of_solves_of_data) {
  TrajectoryData data;
  data.times = {0, 50, 100};
  data.states = {5, 5, 5};
  data.parameters = {10, 2};
  std::optional<UnresolvedDerivatives> found;
  fitted_states(turnover(), {}, data, usual(), {}, {}, {}, &found);
  EXPECT_TRUE(found.has_value());
  data.states[0] = 4;
  fitted_states(turnover(), {}, data, usual(), {}, {}, {}, &found);
  EXPECT_FALSE(found.has_value());
}

Problem problem_of(Rhs rhs, Numbers u0, Numbers parameters, double end) {
  Problem problem;
  problem.rhs = std::move(rhs);
  problem.initial_states = std::move(u0);
  problem.parameters = std::move(parameters);
  problem.end_times = {end};
  for (int i = 1; i <= 20; ++i) problem.save_times.push_back(end * i / 20);
  return problem;
}
Options usual_to(const char* method, double tolerance) {
  Options options = usual(method);
  options.rtol = options.atol = tolerance;
  return options;
}

// The state of a stiff problem keeps itself within the tolerance at the bound of stability, by an error that grows now
// and then. Derivatives are not bound to that: 1e168 by tsit5 at 1e-9 where they are 5.
TEST(UnresolvedDerivatives, are_found_where_problems_are_stiff) {
  const Problem problem = problem_of(system("van_der_pol"), {2, 0}, {100}, 100);
  for (const double tolerance : {1e-9, 1e-6}) {
    if (kSanitized && tolerance == 1e-6) break;
    Options options = usual_to("tsit5", tolerance);
    const Sensitivities found = solve_with_sensitivities(problem, options);
    ASSERT_TRUE(found.unresolved.has_value()) << tolerance;
    EXPECT_TRUE(solve_with_gradients(problem, options, end_loss(), checked()).unresolved.has_value());
    options.max_step = found.unresolved->stable_step;
    const Sensitivities mended = solve_with_sensitivities(problem, options);
    EXPECT_FALSE(mended.unresolved.has_value()) << tolerance;
    options.max_step = *options.max_step / 4;
    const Sensitivities right = solve_with_sensitivities(problem, options);
    for (std::size_t i = 0; i < right.by_initial_state.size(); ++i) {
      EXPECT_NEAR(mended.by_initial_state[i], right.by_initial_state[i], 0.05) << tolerance;
    }
  }
}

// Chaos, growth, decay: steps are as long as states and derivatives allow.
TEST(UnresolvedDerivatives, are_not_seen_where_steps_resolve_them) {
  const auto expect_none = [](const std::string& what, const Problem& problem, const Options& options) {
    const auto found = solve_with_sensitivities(problem, options).unresolved;
    EXPECT_FALSE(found.has_value()) << what << ": " << (found ? found->error : 0);
  };
  const Rhs growth = differentiable_function<1, 1>(
      "growth", [](auto, const auto& u, const auto& p, auto& du) { du[0] = p[0] * u[0]; });
  for (const char* method : {"tsit5", "bs3", "dop853"}) {
    for (const double tolerance : {1e-3, 1e-6}) {
      const Options options = usual_to(method, tolerance);
      const std::string what = method + std::string(" at ") + std::to_string(tolerance);
      expect_none("Lorenz, " + what, problem_of(system("lorenz"), {1, 0.5, 2}, {10, 28, 8.0 / 3}, 25), options);
      expect_none("growth, " + what, problem_of(growth, {1}, {1}, 20), options);
      // At 1e-3 the state is within its tolerance by 0.02, and du/dp = t u, at most 0.007, has no digit right.
      if (tolerance < 1e-3) expect_none("decay, " + what, problem_of(growth, {1}, {-50}, 20), options);
      expect_none("turnover, " + what, problem_of(turnover(), {4}, {10, 2}, 100), options);
      expect_none("a net, " + what, problem_of(testing::net_case().rhs, {0.3, -0.2, 0.5}, {0.7}, 10), options);
    }
  }
  Problem resting = resting_net();
  expect_none("rodas5p", resting, usual("rodas5p"));
}

}  // namespace
}  // namespace lockstep::ode

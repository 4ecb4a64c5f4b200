// Derivatives of whole solves against other ways to them.
#include "lockstep/ode/gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <fstream>
#include <map>
#include <sstream>

#include "lockstep/core/testing/sanitized.h"
#include "lockstep/ode/testing/gradient_cases.h"

namespace lockstep::ode {
namespace {

using namespace testing;

// Both sides are sums of rounded float64 products along some 1e3 operations a trajectory that grow perturbations by
// less than e^5: 1e-12 of the sum of magnitudes is 4,500 roundings.
TEST(Gradient, agrees_with_dual_numbers_for_every_method_and_control) {
  std::size_t turn = 0;
  for (const Case& c : all_cases()) {
    for (const Mode& mode : all_modes()) {
      if (!is_tried(turn++, 19) || !has_derivatives(c, mode.method)) continue;
      const Problem problem = ensemble(c, 35);
      const Gradients gradients = solve_with_gradients(
          problem, f64(mode.method, mode.control), TrajectoryLoss(linear_loss), {.keep = GradientOptions::Keep::steps});
      ASSERT_EQ(gradients.left_out, 0u);
      const Direction direction(problem, 11);
      const auto loss = plain_loss<Dual<double>>(c, problem, mode.method, gradients, direction,
                                                 [](double x, double d) { return Dual<double>(x, d); });
      double magnitude = 0;
      const double along = direction.along(gradients, magnitude);
      EXPECT_NEAR(along, loss.slope, 1e-12 * magnitude)
          << c.name << ", " << mode.method << ", control " << static_cast<int>(mode.control);
      EXPECT_NEAR(gradients.loss, loss.value, 1e-12 * (1 + std::fabs(loss.value)) * 35) << c.name << mode.method;
    }
  }
}

// The complex step has no cancellation: Im L(x + i e d) / e with e = 1e-30 is exact to rounding.
TEST(Gradient, agrees_with_the_complex_step_through_adaptive_solves) {
  for (const Case& c : all_cases()) {
    const Problem problem = ensemble(c, 3);
    const Gradients gradients =
        solve_with_gradients(problem, f64("tsit5", StepControl::per_trajectory), TrajectoryLoss(linear_loss),
                             {.keep = GradientOptions::Keep::steps});
    const Direction direction(problem, 5);
    using Complex = std::complex<double>;
    const auto loss = plain_loss<Complex>(c, problem, "tsit5", gradients, direction,
                                          [](double x, double d) { return Complex(x, 1e-30 * d); });
    double magnitude = 0;
    const double along = direction.along(gradients, magnitude);
    EXPECT_NEAR(along, loss.imag() / 1e-30, 1e-12 * magnitude) << c.name;
  }
}

// Central differences with e = 1e-6 in 64-bit mantissas: error e^2 |L'''| / 6, up to 1e-12 times third derivatives
// that chaos makes some 100 times the first, and rounding 1e-19 / 1e-6.
TEST(Gradient, agrees_with_long_double_differences_through_adaptive_solves) {
  const Case c = hybrid_case();
  const Problem problem = ensemble(c, 3);
  const Gradients gradients = solve_with_gradients(problem, f64("dopri5", StepControl::per_trajectory),
                                                   TrajectoryLoss(linear_loss), {.keep = GradientOptions::Keep::steps});
  const Direction direction(problem, 6);
  const auto at = [&](long double e) {
    return plain_loss<long double>(c, problem, "dopri5", gradients, direction,
                                   [e](double x, double d) { return static_cast<long double>(x) + e * d; });
  };
  const auto difference = static_cast<double>((at(1e-6L) - at(-1e-6L)) / 2e-6L);
  double magnitude = 0;
  const double along = direction.along(gradients, magnitude);
  EXPECT_NEAR(along, difference, 1e-9 * magnitude);
}

// Rows "name number number ..." of a text file.
std::map<std::string, Numbers> read_rows(const std::string& path) {
  std::map<std::string, Numbers> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    while (words >> word) rows[name].push_back(std::stod(word));
  }
  return rows;
}

void expect_near(const Numbers& ours, const Numbers& theirs, const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  double largest = 0;
  for (const double x : theirs) largest = std::max(largest, std::fabs(x));
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], theirs[i], 1e-8 * largest) << what << " " << i;
}

// testdata/solve_gradients.py: both differentiate the same steps in float64, in other orders of operations. The steps
// themselves may differ by the rounding of another machine's compiler: 1e-8 of the largest number of each gradient.
TEST(Gradient, agrees_with_diffrax_on_the_lorenz_problem) {
  const auto rows = read_rows(LOCKSTEP_TEST_DATA "/solve_gradients.txt");
  for (const std::string name : {"lorenz", "net"}) {
    for (const std::string mode : {"adaptive", "fixed"}) {
      Problem problem{.rhs = name == "lorenz" ? system("lorenz") : net(small_net(3, 3)),
                      .initial_states = {1, 0, 0},
                      .end_times = {1}};
      if (name == "lorenz") problem.parameters = {10, 28, 8.0 / 3};
      if (name == "net") {
        ASSERT_EQ(problem.rhs->weights(), rows.at("net_values"));
      }
      for (int i = 0; i <= 100; ++i) problem.save_times.push_back(i / 100.0);
      Options options = f64("tsit5", mode == "fixed" ? StepControl::fixed : StepControl::per_trajectory);
      options.rtol = options.atol = 1e-6;
      if (mode == "fixed") options.dt = 0.01;
      const Gradients ours = solve_with_gradients(problem, options, SquaredError{.targets = Numbers(303, 1.0)},
                                                  {.keep = GradientOptions::Keep::steps});
      const std::string prefix = name + "_" + mode + "_";
      if (mode == "adaptive") {
        Numbers ends;
        for (const AcceptedStep& step : ours.steps[0]) ends.push_back(step.t_new);
        expect_near(ends, rows.at(name + "_steps"), prefix + "steps");
      }
      expect_near({ours.loss}, rows.at(prefix + "loss"), prefix + "loss");
      expect_near(ours.initial_states, rows.at(prefix + "initial_state"), prefix + "initial_state");
      expect_near(name == "net" ? ours.weights : ours.parameters, rows.at(prefix + "parameters"),
                  prefix + "parameters");
    }
  }
}

TEST(Gradient, a_transpose_by_hand_equals_dual_numbers) {
  const auto f = [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = p[0] * (u[1] - u[0]);
    du[1] = u[0] * (p[1] - u[2]) - u[1];
    du[2] = u[0] * u[1] - p[2] * u[2];
  };
  const auto transpose = [](auto, const auto& u, const auto& p, const auto& bar, auto& u_bar, auto& p_bar) {
    u_bar[0] += -p[0] * bar[0] + (p[1] - u[2]) * bar[1] + u[1] * bar[2];
    u_bar[1] += p[0] * bar[0] - bar[1] + u[0] * bar[2];
    u_bar[2] += -u[0] * bar[1] - p[2] * bar[2];
    p_bar[0] += (u[1] - u[0]) * bar[0];
    p_bar[1] += u[0] * bar[1];
    p_bar[2] -= u[2] * bar[2];
  };
  Problem problem = ensemble(lorenz_case(), 33);
  const Options options = f64("tsit5", StepControl::per_trajectory);
  problem.rhs = differentiable_function<3, 3>("lorenz", f);
  const Gradients duals = solve_with_gradients(problem, options, TrajectoryLoss(linear_loss));
  problem.rhs = function_with_transpose<3, 3>("lorenz", f, transpose);
  const Gradients hand = solve_with_gradients(problem, options, TrajectoryLoss(linear_loss));
  for (std::size_t i = 0; i < duals.parameters.size(); ++i) {
    // Rounding of some 100 steps, amplified less than e^5.
    EXPECT_NEAR(duals.parameters[i], hand.parameters[i], 1e-12 * (1 + std::fabs(hand.parameters[i])));
    EXPECT_NEAR(duals.initial_states[i], hand.initial_states[i], 1e-12 * (1 + std::fabs(hand.initial_states[i])));
  }
}

// Central differences of step 1e-5: their error is 1e-10 of third derivatives, which are below 2, and rounding 1e-11.
TEST(Gradient, dual_numbers_carry_the_derivative_of_the_arctangent) {
  for (const double x : {-40.0, -1.5, -1.0, -0.25, 0.0, 0.75, 1.0, 3.0}) {
    const Dual<double> y = atan(Dual<double>(x, 2));
    EXPECT_EQ(y.value, math::atan(x));
    EXPECT_NEAR(y.slope, 2 * (math::atan(x + 1e-5) - math::atan(x - 1e-5)) / 2e-5, 1e-9) << x;
  }
}

TEST(Gradient, trajectories_with_spans_and_save_times_of_their_own) {
  const Case c = lorenz_case();
  Problem problem = ensemble(c, 3);
  problem.start_times = {0, 1, 0.5};
  problem.end_times = {0.4, 0.8, 0.5};  // one runs backwards, one is over at once
  problem.save_times_per_trajectory = true;
  problem.save_times = {0.4, 0.81, 0.5};
  const Gradients gradients = solve_with_gradients(problem, f64("tsit5", StepControl::per_trajectory),
                                                   TrajectoryLoss(linear_loss), {.keep = GradientOptions::Keep::steps});
  const Direction direction(problem, 3);
  const auto loss = plain_loss<Dual<double>>(c, problem, "tsit5", gradients, direction,
                                             [](double x, double d) { return Dual<double>(x, d); });
  double magnitude = 0;
  const double along = direction.along(gradients, magnitude);
  EXPECT_NEAR(along, loss.slope, 1e-12 * magnitude);
}

}  // namespace
}  // namespace lockstep::ode

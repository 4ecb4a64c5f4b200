#include "lockstep/ode/fit_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "lockstep/train/initialise.h"

namespace lockstep::ode {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Rhs small_net() {
  Mlp mlp;
  mlp.layers.push_back({2, 5, std::vector<double>(10), std::vector<double>(5), {ActivationKind::tanh}});
  mlp.layers.push_back({5, 2, std::vector<double>(10), std::vector<double>(2), {ActivationKind::identity}});
  train::initialise(mlp, train::Initialisation::glorot_uniform, 1);
  return net(mlp);
}

// Three trajectories of 4, 2 and 3 points.
TrajectoryData uneven_data() {
  return {.trajectories = 3,
          .times = {0, 0.5, 1, 1.5, 0, 1, 2, 2.5, 3},
          .states = {1, 0, 0.9, kNaN, kNaN, kNaN, 0.7, 0.3, 0.5, 0.5, 0.4, 0.6, -1, 0, -1, 0.1, -1, 0.2},
          .lengths = {4, 2, 3}};
}

Options f64_options() {
  Options options;
  options.precision = Precision::f64;
  options.threads = 1;
  return options;
}

TEST(FitErrors, fitted_states_have_the_bits_of_a_solve) {
  const Rhs rhs = small_net();
  const TrajectoryData data = uneven_data();
  const std::vector<double> states = fitted_states(rhs, rhs->weights(), data, f64_options());
  ASSERT_EQ(states.size(), data.states.size());
  Problem last;
  last.rhs = rhs;
  last.initial_states = {-1, 0};
  last.start_times = {2};
  last.end_times = {3};
  last.save_times = {2.5, 3};
  const Solution solution = solve(last, f64_options());
  for (std::size_t point = 0; point < 2; ++point) {
    for (std::size_t c = 0; c < 2; ++c) EXPECT_EQ(states[(7 + point) * 2 + c], solution.state(0, point, c));
  }
  EXPECT_EQ(states[0], 1);  // where the first begins
}

TEST(FitErrors, squares_of_the_errors_add_up_to_the_loss) {
  const Rhs rhs = small_net();
  const TrajectoryData data = uneven_data();
  const std::vector<double> weights = rhs->weights();
  const std::vector<double> states = fitted_states(rhs, weights, data, f64_options());
  const std::vector<double> spreads = train::column_spreads(data.states, 2);
  const FitErrors errors = fit_errors(data, states, spreads);
  double sum = 0;
  for (const train::ColumnErrors& column : errors.components) {
    sum += column.rms * column.rms * static_cast<double>(column.numbers);
  }
  FitOptions options;
  options.solve = f64_options();
  const double loss = FitLoss<double>(rhs, data, options).loss(weights);
  EXPECT_NEAR(sum, 3 * loss, 1e-14 * sum);
  // Neither the first points nor what was not measured count.
  EXPECT_EQ(errors.components[0].numbers, 5u);
  EXPECT_EQ(errors.components[1].numbers, 4u);
  double squares = 0;
  for (std::size_t c = 0; c < 2; ++c) squares += std::pow((states[10 + c] - data.states[10 + c]) / spreads[c], 2);
  EXPECT_DOUBLE_EQ(errors.trajectories[1], std::sqrt(squares / 2));
}

// Thresholds of 0.25 and 0.5, of which sigma is the unit where there is one.
TEST(FitErrors, numbers_beyond_a_threshold_are_counted_and_the_farthest_named) {
  TrajectoryData data = uneven_data();
  std::vector<double> states = data.states;
  for (double& x : states) x = std::isnan(x) ? 7 : x;
  states[2] += 0.125;  // within
  states[6] -= 1;      // 4 thresholds
  states[7] += 4;      // 8
  states[11] += 0.75;  // 1.5
  states[12] += 5;     // 20, where a solve begins
  const std::vector<double> spreads{1, 1}, thresholds{0.25, 0.5};
  const FitErrors found = fit_errors(data, states, spreads, thresholds);
  EXPECT_EQ(found.compared, 10u) << "of 18 three are missing, and five are where solves begin";
  EXPECT_EQ(found.beyond, 4u);
  const auto is = [&](std::size_t i, std::size_t row, std::size_t component, double size) {
    EXPECT_EQ(found.outliers[i].row, row);
    EXPECT_EQ(found.outliers[i].component, component);
    EXPECT_NEAR(found.outliers[i].size, size, 1e-12);
  };
  ASSERT_EQ(found.outliers.size(), 4u);
  is(0, 6, 0, 20);
  is(1, 3, 1, 8);
  is(2, 3, 0, 4);
  is(3, 5, 1, 1.5);
  // Within, first points aside: 0.9, 0.5, -1, -1 with one error, and 0.1, 0.2 with none.
  ASSERT_TRUE(found.components[0].within && found.components[1].within);
  EXPECT_NEAR(found.components[0].within->rms, 0.125 / 2, 1e-15);
  EXPECT_EQ(found.components[1].within->numbers, 2u);
  EXPECT_NEAR(found.components[1].within->spread, 0.05, 1e-15);
  data.sigma.assign(18, 8);
  EXPECT_EQ(fit_errors(data, states, spreads, thresholds).beyond, 1u) << "the one where a solve begins";
  EXPECT_FALSE(fit_errors(data, states, spreads).components[0].within.has_value());
}

TEST(FitErrors, solves_begin_where_they_are_told) {
  const Rhs rhs = small_net();
  const TrajectoryData data = uneven_data();
  const std::vector<double> starts{1, 0.1, 0.5, 0.5, -1, 0};
  const std::vector<double> from_data = fitted_states(rhs, rhs->weights(), data, f64_options());
  const std::vector<double> moved = fitted_states(rhs, rhs->weights(), data, f64_options(), starts);
  EXPECT_EQ(moved[1], 0.1);
  EXPECT_NE(moved[2], from_data[2]);
  EXPECT_EQ(std::vector<double>(moved.begin() + 8, moved.end()),
            std::vector<double>(from_data.begin() + 8, from_data.end()));
}

TEST(FitErrors, a_solve_that_ends_early_counts_as_the_worst) {
  const TrajectoryData data{.trajectories = 2, .times = {0, 1}, .states = {1, 2, 3, 5}};
  const std::vector<double> states{1, kNaN, 3, 4}, spreads{2};
  const FitErrors errors = fit_errors(data, states, spreads);
  EXPECT_EQ(errors.trajectories[0], std::numeric_limits<double>::infinity());
  EXPECT_EQ(errors.trajectories[1], 0.5);
  EXPECT_EQ(errors.components[0].numbers, 1u);
  EXPECT_EQ(errors.components[0].largest, 1);
  EXPECT_EQ(errors.components[0].largest_row, 3u);
  EXPECT_EQ(errors.components[0].relative(), 0.5);
}

TEST(ErrorSums, a_column_that_was_never_compared_has_no_error) {
  train::ErrorSums sums(2);
  sums.add(std::vector<double>{1, 2}, std::vector<double>{kNaN, 5});
  sums.add(std::vector<double>{1, 7}, std::vector<double>{kNaN, 5});
  const std::vector<train::ColumnErrors> errors = sums.errors(std::vector<double>{1, 0});
  EXPECT_TRUE(std::isnan(errors[0].rms));
  EXPECT_EQ(errors[0].numbers, 0u);
  EXPECT_EQ(errors[1].rms, std::sqrt(6.5));
  EXPECT_EQ(errors[1].largest, 3);
  EXPECT_EQ(errors[1].largest_row, 0u);
  EXPECT_TRUE(std::isnan(errors[1].relative()));
}

}  // namespace
}  // namespace lockstep::ode

// Fits of measurements that are far better than their spread, by units of starts and by steps of least squares.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/parameter_uncertainty.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "lockstep/train/training.h"

namespace lockstep::ode {
namespace {

using Numbers = std::vector<double>;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kPoints = 97;
constexpr double kSigma = 1e-7, kPull = 1;
const Options kOrbitSolves{.method = "vern9", .rtol = 1e-11, .atol = 1e-11, .precision = Precision::f64, .threads = 1};

// A satellite about a centre whose pull is known to some millionths: as an optimiser has it, its effect is a millionth
// of a start's.
const std::vector<TrainedParameter> kTrained{{.parameter = 0, .start = kPull + 5e-6, .scale = 1e-6}};
Rhs orbit() { return train_parameters(system("kepler"), kTrained); }

// Four revolutions, measured to a ten-millionth of what the states vary by; the second one's speeds are measured at
// first alone, and its last half not at all.
TrajectoryData orbits(std::size_t count) {
  Problem problem{.rhs = system("kepler"), .parameters = {kPull}};
  for (std::size_t i = 0; i < count; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), {0.9, 0, 0, 1.1 + 0.02 * static_cast<double>(i)});
  }
  for (std::size_t i = 0; i < kPoints; ++i) problem.save_times.push_back(0.25 * static_cast<double>(i));
  problem.end_times = {problem.save_times.back()};
  const Solution solution = solve(problem, kOrbitSolves);
  TrajectoryData data{.trajectories = count};
  for (std::size_t i = 0; i < count; ++i) {
    data.lengths.push_back(i == 1 ? kPoints / 2 : kPoints);
    for (std::size_t point = 0; point < data.lengths.back(); ++point) {
      data.times.push_back(problem.save_times[point]);
      for (std::size_t c = 0; c < 4; ++c) {
        const double state = solution.state(i, point, c) + kSigma * Random(7).normal(data.states.size(), 0);
        data.states.push_back(i == 1 && point > 0 && c > 1 ? kMissing : state);
        data.sigma.push_back(kSigma);
      }
    }
  }
  return data;
}

FitOptions lbfgs(std::optional<double> continuity = 1) {
  FitOptions options{.solve = kOrbitSolves};
  options.phases[0].training.rule = train::LbfgsOptions{};
  options.phases[0].training.iterations = 300;
  options.phases[0].continuity = continuity;
  return options;
}

Numbers first_states(const TrajectoryData& data, const Numbers& states) {
  Numbers first;
  for (std::size_t i = 0, row = 0; i < data.trajectories; row += data.points(i++, 4)) {
    first.insert(first.end(), states.begin() + static_cast<std::ptrdiff_t>(4 * row),
                 states.begin() + static_cast<std::ptrdiff_t>(4 * row + 4));
  }
  return first;
}

void expect_the_least(const TrajectoryData& data, const FitResult& result) {
  const Numbers starts = first_states(data, result.states);
  const ParameterUncertainty found =
      parameter_uncertainty(system("kepler"), kTrained, result.weights, data, kOrbitSolves,
                            {.initial_states = starts, .error_size = ErrorSize::as_stated});
  EXPECT_LT(found.distance, 0.1);
  EXPECT_LT(std::fabs(found.values[0] - kPull), 4 * found.standard_errors[0]);
  // The reduced chi-square has a deviation of sqrt(2 / freedom), of which four are allowed.
  const double freedom = static_cast<double>(found.numbers - found.unknowns);
  EXPECT_NEAR(found.deviation * found.deviation, 1, 4 * std::sqrt(2 / freedom));
}

// L-BFGS by itself: a start that is moved in units of its spread is 1e12 times as steep as the pull.
TEST(FitSquares, a_start_that_is_measured_far_better_than_its_spread_is_moved_in_its_errors) {
  const TrajectoryData data = orbits(1);
  FitLoss<double> loss(orbit(), data, lbfgs());
  Numbers at = orbit()->weights();
  at.resize(loss.parameters());
  at[1] = at[3] = 1;
  const Numbers moved = loss.states(at);
  EXPECT_NEAR(moved[0] - data.states[0], 100 * kSigma, 1e-12);
  EXPECT_NEAR(moved[2] - data.states[2], 100 * kSigma, 1e-12);
  at[1] = at[3] = 0;
  train::Training<double> training({lbfgs().phases[0].training}, at);
  while (!training.finished()) {
    training.iterate(
        [&](const train::Place& place, std::span<const double> w, std::span<double> g) { return loss(place, w, g); });
  }
  const Numbers best(training.best_parameters().begin(), training.best_parameters().end());
  FitResult result{.weights = {best[0]}, .states = loss.states(best)};
  EXPECT_LT(training.place().total, 100);
  expect_the_least(data, result);
}

TEST(FitSquares, a_start_that_errs_by_more_than_a_hundredth_of_the_spread_is_moved_in_that) {
  TrajectoryData data = orbits(1);
  for (double& sigma : data.sigma) sigma *= 1e6;
  FitLoss<double> loss(orbit(), data, lbfgs());
  double mean = 0, square = 0;
  for (std::size_t at = 0; at < data.states.size(); at += 4) mean += data.states[at] / static_cast<double>(kPoints);
  for (std::size_t at = 0; at < data.states.size(); at += 4)
    square += std::pow(data.states[at] - mean, 2) / static_cast<double>(kPoints);
  Numbers at(loss.parameters());
  at[1] = 1;
  EXPECT_NEAR(loss.states(at)[0] - data.states[0], std::sqrt(square), 1e-12);
}

// With a memory of one pair of steps L-BFGS goes on for thousands of iterations.
TEST(FitSquares, what_lbfgs_does_not_reach_is_finished) {
  const TrajectoryData data = orbits(3);
  FitOptions options = lbfgs();
  options.phases[0].training.rule = train::LbfgsOptions{.history = 1};
  const FitResult result = fit(orbit(), data, options);
  EXPECT_LT(result.iterations, 80);
  expect_the_least(data, result);
}

// The gradient is -2 J^T r of what is summed, r the data less the states, and the Gauss-Newton step d = J^+ r: their
// product is -2 |J d|^2, twice the fall. It holds for each unknown by itself where the others stay: with large damping
// the step is along each -gradient / (2 damping |J_i|^2), so that step_i gradient_i < 0, and the fall is of the first
// order.
void expect_agreement(FitLoss<double>& loss, Numbers at) {
  const train::Place place{.phase = 0, .iteration = 1, .total = 1};
  Numbers gradient(at.size()), ignored(at.size());
  const double value = loss(place, at, gradient);
  const auto model = loss.squares(place, at);
  ASSERT_TRUE(model);
  const auto along = [&](const train::SquaresStep& step) {
    return std::inner_product(step.step.begin(), step.step.end(), gradient.begin(), 0.0);
  };
  const train::SquaresStep whole = model->step(0);
  // Gradients are of the solves' steps as they were taken, and differ from sensitivities by rounding alone, which a
  // difference of 1e-6 of the tangents' sum leaves far behind.
  EXPECT_NEAR(along(whole), -2 * whole.fall * value, 1e-6 * whole.fall * value);
  const train::SquaresStep damped = model->step(1e8);
  EXPECT_NEAR(along(damped), -damped.fall * value, 1e-6 * damped.fall * value);
  for (std::size_t i = 0; i < at.size(); ++i) {
    EXPECT_EQ(damped.step[i] == 0, gradient[i] == 0) << i;
    EXPECT_LE(damped.step[i] * gradient[i], 0) << i;
  }
  Numbers there = at;
  for (std::size_t i = 0; i < at.size(); ++i) there[i] += whole.step[i];
  const double fallen = (value - loss(place, there, ignored)) / value;
  EXPECT_NEAR(fallen, whole.fall, 0.05 * whole.fall);
}

TEST(FitSquares, steps_agree_with_gradients_of_starts_and_parameters) {
  TrajectoryData data = orbits(3);
  data.states[4 * 20 + 1] = kMissing;
  FitLoss<double> loss(orbit(), data, lbfgs());
  Numbers at = orbit()->weights();
  at[0] += 0.2;
  at.resize(loss.parameters());
  at[1] = 0.01;
  at[4 * kPoints + 1 + 3] = -0.02;
  expect_agreement(loss, at);
}

// x starts at p[1] of a function, of which the slope is not 1; y is free.
TEST(FitSquares, steps_agree_where_starts_are_given_by_parameters) {
  const Rhs decay = differentiable_function<2, 3>("decay", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = -1.0 * p[0] * u[0];
    du[1] = p[0] * u[0] - p[2] * u[1];
  });
  const Rhs starts = differentiable_function<2, 3>("starts", [](auto, const auto&, const auto& p, auto& du) {
    du[0] = p[1] * p[1];
    du[1] = 0.0 * p[0];
  });
  const std::vector<TrainedParameter> trained{
      {.parameter = 0, .start = 0.8, .law = ParameterLaw::bounded, .min = 0, .max = 2},
      {.parameter = 1, .start = 1.1, .scale = 7.0},
      {.parameter = 2, .start = 0.3, .law = ParameterLaw::positive}};
  TrajectoryData data{.trajectories = 2};
  for (std::size_t i = 0; i < 2; ++i) {
    for (int point = 0; point <= 12; ++point) {
      const double t = 0.3 * point;
      if (i == 0) data.times.push_back(t);
      const double x = std::exp(-t), y = (0.5 + static_cast<double>(i)) * std::exp(-0.2 * t) + 1 - x;
      data.states.push_back(x + 0.02 * Random(3).normal(data.states.size(), 0));
      data.states.push_back(y + 0.02 * Random(3).normal(data.states.size(), 0));
    }
  }
  for (const std::optional<double> continuity : {std::optional(1.0), std::optional<double>()}) {
    FitOptions options = lbfgs(continuity);
    options.starts = GivenStarts{train_parameters(starts, trained), {0}};
    options.component_weights = {2, 0.5};
    options.loss_unit = 256;
    FitLoss<double> loss(train_parameters(decay, trained), data, options);
    Numbers at = train_parameters(decay, trained)->weights();
    for (double& x : at) x += 0.01;
    at.resize(loss.parameters());
    // FitLoss sets gradients of the loss over its unit.
    const train::Place place{.phase = 0, .iteration = 1, .total = 1};
    Numbers gradient(at.size());
    const double value = loss(place, at, gradient);
    const auto model = loss.squares(place, at);
    ASSERT_TRUE(model);
    const train::SquaresStep step = model->step(0);
    const double along = 256 * std::inner_product(gradient.begin(), gradient.end(), step.step.begin(), 0.0);
    EXPECT_NEAR(along, -2 * step.fall * value, 1e-6 * step.fall * value);
  }
}

TEST(FitSquares, there_is_no_model_of_other_losses) {
  const TrajectoryData data = orbits(1);
  const Rhs rhs = orbit();
  const train::Place place;
  const auto has_model = [&](const FitOptions& options) {
    FitLoss<double> loss(rhs, data, options);
    Numbers at = rhs->weights();
    at.resize(loss.parameters());
    return loss.squares(place, at).has_value();
  };
  EXPECT_TRUE(has_model(lbfgs()));
  EXPECT_TRUE(has_model(lbfgs(std::nullopt)));
  FitOptions options = lbfgs();
  options.huber_threshold = 1.345;
  EXPECT_FALSE(has_model(options));
  options = lbfgs();
  options.phases[0].segment = 20;
  EXPECT_FALSE(has_model(options));
  options = lbfgs();
  options.phases[0].horizon = 20;
  EXPECT_FALSE(has_model(options));
  options = lbfgs();
  options.phases[0].component_weights = {1, 1, 0, 0};
  EXPECT_FALSE(has_model(options));
  options = lbfgs();
  options.phases[0].training.rule = train::OptimiserOptions{};
  EXPECT_FALSE(has_model(options));
}

// From any iteration on, those by least squares too, whose number is part of the state.
TEST(FitSquares, a_fit_that_is_interrupted_goes_on_with_the_same_bits) {
  const TrajectoryData data = orbits(2);
  FitOptions options = lbfgs();
  options.phases[0].training.rule = train::LbfgsOptions{.history = 2};
  FitLoss<double> loss(orbit(), data, options);
  const auto value = [&](const train::Place& place, std::span<const double> w, std::span<double> g) {
    return loss(place, w, g);
  };
  const auto begin = [&] {
    Numbers at = orbit()->weights();
    at.resize(loss.parameters());
    train::Training<double> training({options.phases[0].training}, at);
    training.finish_by([&](const train::Place& place, std::span<const double> w) { return loss.squares(place, w); });
    return training;
  };
  std::vector<train::TrainingState<double>> states;
  train::Training<double> whole = begin();
  std::int64_t by_squares = 0;
  while (!whole.finished()) {
    states.push_back(whole.state());
    by_squares = std::max(by_squares, states.back().by_squares);
    whole.iterate(value);
  }
  EXPECT_GE(by_squares, 2);
  ASSERT_GT(states.size(), 12u);
  for (std::size_t at = states.size() - 12; at < states.size(); ++at) {
    train::Training<double> rest = begin();
    rest.restore(states[at]);
    while (!rest.finished()) rest.iterate(value);
    EXPECT_EQ(rest.state().best, whole.state().best) << at;
    EXPECT_EQ(rest.place().total, whole.place().total) << at;
  }
}

}  // namespace
}  // namespace lockstep::ode

// Huber's loss of measurements: its gradient, its bits, what it is measured in, and what it does to a glitch.
#include "lockstep/ode/huber.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "lockstep/core/random.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/parameter_uncertainty.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<double>;

const Options kTight{.method = "dop853", .rtol = 1e-12, .atol = 1e-12, .precision = Precision::f64, .threads = 1};
const Options kFast{
    .method = "rk4", .control = StepControl::fixed, .dt = 0.25, .precision = Precision::f64, .threads = 1};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Prey and predators with rates 1.5, 1, 3, 1 at `points` times, `every` apart, errors of `sigma`, and of each twentieth
// number, or so, one of 20 sigma more.
TrajectoryData counts(std::size_t points, double sigma, bool glitches, std::uint64_t seed, std::size_t trajectories = 1,
                      double every = 0.25) {
  TrajectoryData data{.trajectories = trajectories};
  Problem problem{.rhs = system("lotka_volterra"), .initial_states = {}, .parameters = {1.5, 1, 3, 1}};
  for (std::size_t i = 0; i < points; ++i) problem.save_times.push_back(every * static_cast<double>(i));
  problem.end_times = {problem.save_times.back()};
  for (std::size_t i = 0; i < trajectories; ++i) {
    problem.initial_states.push_back(1 + 0.25 * static_cast<double>(i));
    problem.initial_states.push_back(1);
  }
  const Solution solution = solve(problem, kTight);
  const Random random(seed);
  data.times = problem.save_times;
  for (std::size_t at = 0; at < trajectories * points * 2; ++at) {
    const auto number = static_cast<std::uint32_t>(at);
    double error = sigma * random.normal(0, number);
    if (glitches && at % 20 == 13) error += 20 * sigma * (at % 40 == 13 ? 1 : -1);
    const bool first = at % (points * 2) < 2;
    data.states.push_back(solution.states<double>()[at] + (first ? 0 : error));
  }
  return data;
}

std::vector<TrainedParameter> rates(const std::array<double, 4>& starts = {1.4, 0.9, 3.1, 1.05}) {
  std::vector<TrainedParameter> trained;
  for (std::size_t i = 0; i < 4; ++i) {
    trained.push_back({.parameter = i, .start = starts[i], .law = ParameterLaw::positive});
  }
  return trained;
}

train::Phase by_lbfgs(std::int64_t iterations) {
  train::Phase phase;
  phase.rule = train::LbfgsOptions{};
  phase.iterations = iterations;
  return phase;
}

train::Phase by_adam(std::int64_t iterations) {
  train::Phase phase;
  phase.iterations = iterations;
  phase.learning_rate.rate = 0.01;
  return phase;
}

// Of all that has a loss: whole trajectories, segments, free states, starts that are given, sigma of each measurement.
TEST(Huber, gradients_are_those_of_differences_on_both_sides_of_the_threshold) {
  const Rhs rhs = train_parameters(system("lotka_volterra"), rates());
  TrajectoryData data = counts(13, 0.25, true, 5, 2);
  data.states[9] = std::nan("");
  TrajectoryData with_sigma = data;
  for (std::size_t i = 0; i < data.states.size(); ++i) with_sigma.sigma.push_back(0.25 + 0.125 * (i % 3));
  const Rhs one = train_parameters(
      differentiable_function<2, 4>("one", [](auto, const auto&, const auto& p, auto& du) { du[0] = du[1] = p[3]; }),
      rates());
  for (const TrajectoryData* of : {&data, &with_sigma}) {
    for (const bool given : {false, true}) {
      FitOptions options{.solve = kFast};
      options.phases = {{.training = by_adam(9)},
                        {.training = by_adam(9), .horizon = 9, .batch = 1},
                        {.training = by_adam(9), .segment = 4, .continuity = 3}};
      if (given) options.starts = GivenStarts{one, {1}};
      options.huber_threshold = 1.345;
      FitLoss<double> loss(rhs, *of, options);
      FitOptions squares = options;
      squares.huber_threshold.reset();
      FitLoss<double> squared(rhs, *of, squares);
      Numbers at(loss.parameters());
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = 0.05 * Random(2).normal(0, static_cast<std::uint32_t>(i));
      for (std::size_t phase = 0; phase < 3; ++phase) {
        const train::Place place{.phase = phase, .iteration = 1, .total = 1};
        Numbers gradient(at.size()), ignored(at.size());
        const double value = loss(place, at, gradient);
        EXPECT_LT(value, 0.9 * squared(place, at, ignored)) << "something is beyond";
        for (std::size_t i = 0; i < at.size(); ++i) {
          const double step = 1e-5;
          Numbers moved = at;
          moved[i] += step;
          const double above = loss(place, moved, ignored);
          moved[i] -= 2 * step;
          const double slope = (above - loss(place, moved, ignored)) / (2 * step);
          // step^2 / 6 = 2e-11 times a third derivative, of some thousands of the loss, and its roundings over the
          // step. No error passes its threshold within the step, where the second derivative jumps.
          EXPECT_NEAR(gradient[i], slope, 1e-5 * (1 + std::abs(value))) << given << " " << phase << " " << i;
        }
      }
    }
  }
}

// Parameters that no trial of a line search carries far: where squares overflow the losses differ.
TEST(Huber, errors_that_are_all_within_the_threshold_have_the_bits_of_squares) {
  const Rhs rhs = differentiable_function<2, 3>("driven", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = p[0] - 0.25 * u[0];
    du[1] = p[1] * u[0] - p[2];
  });
  const std::vector<TrainedParameter> trained{
      {.parameter = 0, .start = 1}, {.parameter = 1, .start = -0.5}, {.parameter = 2, .start = 0.25}};
  const auto noisy = [](std::uint64_t seed, std::size_t trajectories) {
    TrajectoryData data{.trajectories = trajectories};
    for (int i = 0; i <= 16; ++i) data.times.push_back(0.25 * i);
    for (std::uint32_t i = 0; i < trajectories * 34; ++i) data.states.push_back(Random(seed).normal(0, i));
    return data;
  };
  TrajectoryData data = noisy(5, 3), with_sigma = data;
  with_sigma.sigma.assign(data.states.size(), 0.25);
  for (const TrajectoryData* of : {&data, &with_sigma}) {
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      FitOptions options{.solve = kFast};
      options.solve.precision = precision;
      options.validation = noisy(6, 1);
      options.phases = {{.training = by_adam(6), .segment = 4, .batch = 2},
                        {.training = by_lbfgs(6), .segment = 4, .continuity = 10},
                        {.training = by_lbfgs(9)}};
      const FitResult squares = fit(train_parameters(rhs, trained), *of, options);
      options.huber_threshold = 1e4;
      const FitResult found = fit(train_parameters(rhs, trained), *of, options);
      EXPECT_EQ(found.weights, squares.weights);
      EXPECT_EQ(found.loss, squares.loss);
      EXPECT_EQ(found.validation_loss, squares.validation_loss);
      if (precision == Precision::f32) continue;
      UncertaintyOptions uncertainty{.huber_threshold = 1e4};
      const ParameterUncertainty known = parameter_uncertainty(rhs, trained, found.weights, *of, kFast, uncertainty);
      uncertainty.huber_threshold.reset();
      const ParameterUncertainty plain = parameter_uncertainty(rhs, trained, found.weights, *of, kFast, uncertainty);
      EXPECT_EQ(known.standard_errors, plain.standard_errors);
      EXPECT_EQ(known.lower, plain.lower);
      EXPECT_EQ(known.distance, plain.distance);
      EXPECT_EQ(known.beyond, 0u);
    }
  }
}

TEST(Huber, a_fit_with_outliers_has_the_same_bits_for_any_threads_and_targets) {
  const Rhs rhs = train_parameters(system("lotka_volterra"), rates());
  const TrajectoryData data = counts(17, 0.05, true, 5, 3);
  FitOptions options{.solve = kFast, .huber_threshold = kHuberThreshold};
  options.phases = {{.training = by_adam(5), .segment = 4, .batch = 2},
                    {.training = by_lbfgs(5), .segment = 4, .continuity = 10},
                    {.training = by_lbfgs(5)}};
  const FitResult one = fit(rhs, data, options);
  options.solve.threads = 2;
  EXPECT_EQ(fit(rhs, data, options).weights, one.weights);
  for (const CpuTarget target : available_cpu_targets()) {
    options.solve.cpu_target = target;
    EXPECT_EQ(fit(rhs, data, options).weights, one.weights) << to_string(target);
  }
}

struct Fitted {
  FitResult result;
  ParameterUncertainty known;
};
Fitted fitted(const TrajectoryData& data, std::optional<double> threshold) {
  FitOptions options{.solve = kTight, .huber_threshold = threshold};
  options.phases = {{.training = by_lbfgs(200)}};
  const Rhs rhs = system("lotka_volterra");
  FitResult result = fit(train_parameters(rhs, rates()), data, options);
  ParameterUncertainty known =
      parameter_uncertainty(rhs, rates(), result.weights, data, kTight, {.huber_threshold = threshold});
  return {std::move(result), std::move(known)};
}

// 5 % of the numbers are off by 20 sigma. Errors of 0.02 leave the rates errors of some 0.3 %, so glitches of 0.4 move
// least squares by many of those.
TEST(Huber, rates_are_recovered_from_data_with_glitches) {
  const std::array<double, 4> truth{1.5, 1, 3, 1};
  const TrajectoryData data = counts(61, 0.02, true, 7, 1, 0.125);
  const Fitted robust = fitted(data, kHuberThreshold), squares = fitted(data, {}),
               clean = fitted(counts(61, 0.02, false, 7, 1, 0.125), {});
  double farthest = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(robust.known.values[i], truth[i], 3 * robust.known.standard_errors[i]) << i;
    // Not much worse than without glitches: 1 / 0.95 for normal errors, and as much again for the twentieth beyond.
    EXPECT_LT(robust.known.standard_errors[i], 1.5 * clean.known.standard_errors[i]) << i;
    EXPECT_GT(squares.known.standard_errors[i], 2.5 * clean.known.standard_errors[i]) << i;
    farthest = std::max(farthest, std::abs(squares.known.values[i] - truth[i]) / robust.known.standard_errors[i]);
  }
  EXPECT_GT(farthest, 5) << "least squares";
  EXPECT_GE(robust.known.beyond, 4u);
  EXPECT_LT(robust.known.distance, 1e-3);
}

// Each error of 1 counts as 1 in the loss of Huber's threshold, wherever the unit comes from.
TEST(Huber, errors_nobody_stated_are_found_in_the_data) {
  const double sigma = 0.02;
  const TrajectoryData clean = counts(81, sigma, false, 3, 1, 0.125), glitches = counts(81, sigma, true, 3, 1, 0.125);
  for (std::size_t c = 0; c < 2; ++c) {
    // The median of 77 has a deviation of 1.17 / sqrt(77) = 13 %, and some more as neighbours go together; what bends
    // between points at a thirtieth of the period, a cubic leaves little of, and outliers in a quarter of them add 40
    // %.
    const double found = measurement_errors(clean, 2)[c], with_outliers = measurement_errors(glitches, 2)[c];
    EXPECT_TRUE(found > 0.6 * sigma && found < 2 * sigma) << found;
    EXPECT_LT(with_outliers, 2.5 * sigma);
  }
  // Exact: a line has none but the thousandth of its spread, whose median size is a quarter of its length.
  TrajectoryData line;
  for (int i = 0; i <= 8; ++i) line.times.push_back(i), line.states.push_back(2 * i);
  EXPECT_NEAR(measurement_errors(line, 1)[0], 1e-3 * 4 / 0.6744897501960817, 1e-15);
  // One off by 3 is in three of seven, by 3 / sqrt(1.5) and twice 1.5 / sqrt(1.5): the median is still nothing. In five
  // points it is the lesser of them.
  line.states[4] += 3;
  EXPECT_NEAR(measurement_errors(line, 1)[0], 1e-3 * 4 / 0.6744897501960817, 1e-15);
  const TrajectoryData few{.times = {0, 1, 2, 3, 4}, .states = {0, 0, 3, 0, 0}};
  EXPECT_NEAR(measurement_errors(few, 1)[0], 1.5 / std::sqrt(1.5) / 0.6744897501960817, 1e-15);
}

TEST(Huber, what_it_is_measured_in_follows_the_data) {
  TrajectoryData data = counts(21, 0.05, true, 4);
  const Numbers before = measurement_errors(data, 2);
  // A power of two: exact.
  for (double& x : data.states) x *= 1024;
  EXPECT_THAT(measurement_errors(data, 2), ::testing::ElementsAre(1024 * before[0], 1024 * before[1]));
  EXPECT_THAT(huber_thresholds(data, 2, {}, 2), ::testing::ElementsAre(2048 * before[0], 2048 * before[1]));
  EXPECT_THAT(huber_thresholds(data, 2, Numbers{4, 0}, 2), ::testing::ElementsAre(1, kInfinity));
  data.sigma.assign(data.states.size(), 3);
  EXPECT_THAT(huber_thresholds(data, 2, {}, 2), ::testing::ElementsAre(2, 2)) << "of a sigma of 1";
  // Missing numbers are passed over; two are no three; a component without any has no threshold.
  const double none = std::nan("");
  const TrajectoryData gaps{.times = {0, 1, 2, 3}, .states = {0, 1, none, 0, none, none, 3, 1, none, 4, none, none}};
  EXPECT_THAT(measurement_errors(gaps, 3), ::testing::ElementsAre(::testing::Gt(0), ::testing::Gt(0), kInfinity));
  // What is the same in most places has its deviation for a unit.
  const TrajectoryData still{.times = {0, 1, 2, 3, 4, 5}, .states = {0, 0, 0, 0, 0, 6}};
  EXPECT_DOUBLE_EQ(measurement_errors(still, 1)[0], std::sqrt(5.0));
  const TrajectoryData constant{.times = {0, 1, 2}, .states = {4, 4, 4}};
  EXPECT_EQ(measurement_errors(constant, 1)[0], 4);
}

// A first number that is off by 200 sigma: free states begin beside it, and leave it there.
TEST(Huber, free_starts_do_not_begin_at_a_glitch) {
  TrajectoryData data = counts(61, 0.02, false, 7, 1, 0.125);
  data.states[0] += 4;
  data.states[41] -= 4;
  FitOptions options{.solve = kTight, .huber_threshold = kHuberThreshold};
  options.phases = noisy_phases(61);
  const Rhs rhs = system("lotka_volterra");
  FitLoss<double> loss(train_parameters(rhs, rates()), data, options);
  const Numbers begun = loss.states(Numbers(loss.parameters()));
  EXPECT_EQ(begun[0], std::max(data.states[2], data.states[4])) << "the middle one of the first three";
  EXPECT_EQ(begun[41], std::min(data.states[39], data.states[43]));
  std::size_t others = 0;  // a turn may look like one
  for (std::size_t i = 1; i < begun.size(); ++i) others += i != 41 && begun[i] != data.states[i];
  EXPECT_LT(others, 5u);
  const FitResult result = fit(train_parameters(rhs, rates()), data, options);
  const Numbers starts{result.states[0], result.states[1]};
  const ParameterUncertainty found = parameter_uncertainty(
      rhs, rates(), result.weights, data, kTight, {.initial_states = starts, .huber_threshold = kHuberThreshold});
  const std::array<double, 4> truth{1.5, 1, 3, 1};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(found.values[i], truth[i], 3 * found.standard_errors[i]) << i;
  EXPECT_NEAR(starts[0], 1, 0.05);
}

// u = k t from 0 is linear in k: J = t, and Huber's formula can be written down.
TEST(Huber, standard_errors_are_those_of_his_formula) {
  const Rhs rhs =
      differentiable_function<1, 1>("line", [](auto, const auto&, const auto& p, auto& du) { du[0] = p[0]; });
  TrajectoryData data{.times = {0}, .states = {0}};
  const Random random(11);
  for (int i = 1; i <= 12; ++i) {
    data.times.push_back(0.5 * i);
    data.states.push_back(2 * data.times.back() + 0.25 * random.normal(0, static_cast<std::uint32_t>(i)));
  }
  data.states[3] += 4, data.states[8] -= 3;
  data.sigma.assign(13, 0.25);
  const std::vector<TrainedParameter> trained{{.parameter = 0, .start = 1.5}};
  FitOptions options{.solve = kTight, .huber_threshold = 1.5};
  options.phases = {{.training = by_lbfgs(100)}};
  const FitResult result = fit(train_parameters(rhs, trained), data, options);
  const double k = 1.5 * result.weights[0];
  double slope = 0, squares = 0, psi_squares = 0;
  std::size_t beyond = 0;
  for (std::size_t i = 1; i <= 12; ++i) {
    const double t = data.times[i] / 0.25, r = (data.states[i] - k * data.times[i]) / 0.25;
    const double psi = std::clamp(r, -1.5, 1.5);
    beyond += psi != r;
    slope += psi * t;
    squares += t * t;
    psi_squares += psi * psi;
  }
  EXPECT_NEAR(slope, 0, 1e-4) << "of terms of 10";
  ASSERT_GE(beyond, 2u);
  const double m = 1 - static_cast<double>(beyond) / 12, correction = 1 + (1 - m) / m / 12;
  const double expected = correction * std::sqrt(psi_squares / 11) / m / std::sqrt(squares);
  UncertaintyOptions uncertainty{.huber_threshold = 1.5};
  const auto found = [&] { return parameter_uncertainty(rhs, trained, result.weights, data, kTight, uncertainty); };
  EXPECT_NEAR(found().standard_errors[0], expected, 1e-9 * expected);
  EXPECT_EQ(found().beyond, beyond);
  EXPECT_EQ(found().numbers, 12u);
  // As stated: P = 0.8663855974622838 of normal errors are within 1.5, phi(1.5) = 0.12951759566589174.
  uncertainty.error_size = ErrorSize::as_stated;
  const double inside = 0.8663855974622838, good = std::min(1.0, m / inside);
  const double mean_square = good * (inside - 3 * 0.12951759566589174 + 2.25 * (1 - inside)) + (1 - good) * 2.25;
  const double stated = correction * std::sqrt(mean_square) / (good * inside) / std::sqrt(squares);
  EXPECT_NEAR(found().standard_errors[0], stated, 1e-9 * stated);
  EXPECT_NEAR(found().upper[0] - k, 1.959963984540054 * stated, 1e-8 * stated);
}

// Recorded by testdata/robust_covariance.py (statsmodels 0.15.0): RLM with HuberT(1.345) and cov="H1".
TEST(Huber, two_parameters_and_their_errors_are_those_of_statsmodels) {
  const Rhs rhs = differentiable_function<1, 2>(
      "parabola", [](auto t, const auto&, const auto& p, auto& du) { du[0] = p[0] + 2.0 * t * p[1]; });
  TrajectoryData data{.times = {0}, .states = {0,    0.61, 0.98, 1.65, 2.12, 2.53, 3.01, 9.4,  3.6,  4.02, 4.21,
                                               4.44, 4.85, 5.03, 5.02, -1.2, 5.37, 5.49, 5.38, 5.62, 7.1}};
  for (int i = 1; i <= 20; ++i) data.times.push_back(0.25 * i);
  data.sigma.assign(21, 0.10044658801938171);
  const std::vector<TrainedParameter> trained{{.parameter = 0, .start = 2}, {.parameter = 1, .start = -0.2}};
  FitOptions options{.solve = kTight, .huber_threshold = kHuberThreshold};
  options.phases = {{.training = by_lbfgs(300)}};
  const FitResult result = fit(train_parameters(rhs, trained), data, options);
  const ParameterUncertainty found =
      parameter_uncertainty(rhs, trained, result.weights, data, kTight, {.huber_threshold = kHuberThreshold});
  // What L-BFGS leaves where a step wins no more than roundings of the loss: their root, of errors.
  EXPECT_LT(found.distance, 1e-5);
  EXPECT_NEAR(found.values[0], 2.305031290769765, 1e-5 * found.standard_errors[0]);
  EXPECT_NEAR(found.values[1], -0.23926794609149, 1e-5 * found.standard_errors[1]);
  EXPECT_NEAR(found.standard_errors[0], 0.035015445544364, 1e-7 * 0.035);
  EXPECT_NEAR(found.standard_errors[1], 0.008826566249131, 1e-7 * 0.0088);
}

TEST(Huber, says_what_it_cannot_take) {
  const Rhs rhs = train_parameters(system("lotka_volterra"), rates());
  TrajectoryData data = counts(9, 0.05, false, 1);
  for (const auto& [threshold, text] : {std::pair{0.0, "0"}, {-1.0, "-1"}, {std::nan(""), "nan"}, {kInfinity, "inf"}}) {
    FitOptions options{.solve = kFast, .huber_threshold = threshold};
    EXPECT_THAT(message_of([&] { fit(rhs, data, options); }),
                HasSubstr(std::string("options.huber_threshold: found ") + text +
                          ", expected a finite number greater than 0; give none for the sum of squares"));
  }
  const auto uncertainty = [&](double threshold, ErrorSize size) {
    return message_of([&] {
      parameter_uncertainty(system("lotka_volterra"), rates(), Numbers(4, 0.5), data, kFast,
                            {.error_size = size, .huber_threshold = threshold});
    });
  };
  EXPECT_THAT(uncertainty(1, ErrorSize::as_stated), HasSubstr("huber_threshold: found errors as stated without sigma"));
  EXPECT_THAT(uncertainty(0, ErrorSize::from_fit), HasSubstr("huber_threshold: found 0, expected a finite number"));
  data.sigma.assign(data.states.size(), 1e-9);
  EXPECT_THAT(uncertainty(1, ErrorSize::as_stated), HasSubstr("no number within the threshold of Huber's loss"));
}

}  // namespace
}  // namespace lockstep::ode

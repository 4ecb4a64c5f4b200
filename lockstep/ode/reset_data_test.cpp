// Training from data of systems whose states change at events: balls that bounce, of which gravity, drag and
// restitution are to be found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/differentiable_event.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/fit_errors.h"
#include "lockstep/ode/parameter_uncertainty.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/jumps.h"

namespace lockstep::ode {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<double>;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kGravity = 9.81, kDrag = 0.3, kRestitution = 0.8;
const Options kTight{.method = "dop853", .rtol = 1e-11, .atol = 1e-11, .precision = Precision::f64, .threads = 1};
const Options kUsual{.rtol = 1e-7, .atol = 1e-7, .precision = Precision::f64, .threads = 1};

// Height and speed; p0: gravity, p1: drag, p2: the share of the speed that a bounce leaves.
Rhs falling() {
  return differentiable_function<2, 3>("falling", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = u[1];
    du[1] = -p[0] - p[1] * u[1];
  });
}
std::vector<Reset> bounces() {
  return {{differentiable_event_function<2, 3>("height", [](auto, const auto& u, const auto&) { return u[0]; }),
           differentiable_reset_function<2, 3>("bounce",
                                               [](auto, const auto& u, const auto& p, auto& next) {
                                                 next[0] = 0 * u[0];
                                                 next[1] = -p[2] * u[1];
                                               }),
           TerminalEvent::Direction::falling}};
}
// Drag and restitution from some way off.
const std::vector<TrainedParameter> kLost{
    {.parameter = 1, .start = 0.15, .law = ParameterLaw::positive},
    {.parameter = 2, .start = 0.7, .law = ParameterLaw::bounded, .min = 0, .max = 1}};
// At the truth.
const std::vector<TrainedParameter> kTrue{{.parameter = 1, .start = kDrag, .scale = 1.0},
                                          {.parameter = 2, .start = kRestitution, .scale = 1.0}};

// Exact states of balls dropped from differing heights, some of them lost sight of earlier.
TrajectoryData thrown(std::size_t count, double spacing = 0.05) {
  TrajectoryData data{.trajectories = count, .parameters = {kGravity}};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t points = 33 - i % 4;
    Problem problem{.rhs = falling(), .parameters = {kGravity, kDrag, kRestitution}};
    problem.initial_states = {1 + 0.06 * static_cast<double>(i % 17), 0.5 - 0.1 * static_cast<double>(i % 5)};
    for (std::size_t point = 0; point < points; ++point)
      problem.save_times.push_back(spacing * static_cast<double>(point));
    problem.end_times = {problem.save_times.back()};
    problem.resets = bounces();
    const Solution solution = solve(problem, kTight);
    data.times.insert(data.times.end(), problem.save_times.begin(), problem.save_times.end());
    data.states.insert(data.states.end(), solution.states<double>().begin(), solution.states<double>().end());
    data.lengths.push_back(points);
  }
  return data;
}
// Heights alone are measured, with errors; what they begin with is known.
constexpr double kNoise = 0.02;
TrajectoryData seen(TrajectoryData data, std::uint64_t seed) {
  for (std::size_t i = 0, row = 0; i < data.trajectories; row += data.lengths[i++]) {
    for (std::size_t point = 1; point < data.lengths[i]; ++point) {
      const std::size_t at = 2 * (row + point);
      data.states[at] += kNoise * Random(seed).normal(at, 0);
      data.states[at + 1] = kNone;
    }
  }
  return data;
}

FitOptions with_phases(std::vector<FitPhase> phases, const Options& solve,
                       const std::vector<TrainedParameter>& trained) {
  return {.solve = solve, .phases = std::move(phases), .resets = train_parameters(bounces(), trained)};
}

// Of the true parameters in whatever segments: those that begin in flight, and those that begin on the floor.
TEST(ResetData, the_truth_has_no_loss) {
  const TrajectoryData data = thrown(40);
  for (const FitPhase& phase :
       {FitPhase{}, FitPhase{.segment = 1}, FitPhase{.segment = 7}, FitPhase{.continuity = 2},
        FitPhase{.segment = 5, .continuity = 2}, FitPhase{.horizon = 20}, FitPhase{.batch = 9}}) {
    FitLoss<double> loss(train_parameters(falling(), kTrue), data, with_phases({phase}, kTight, kTrue));
    Numbers parameters(loss.parameters()), gradient(loss.parameters());
    parameters[0] = kDrag;
    parameters[1] = kRestitution;
    EXPECT_LT(loss({}, parameters, gradient), 1e-15);
    EXPECT_EQ(loss.left_out(), 0u);
    for (const double slope : gradient) EXPECT_LT(std::fabs(slope), 1e-6);
  }
}

// Derivatives by what resets read, whatever the phase: central differences of losses that are solved to 1e-11.
TEST(ResetData, gradients_are_those_of_the_loss) {
  const TrajectoryData data = seen(thrown(40), 3);
  TrajectoryData complete = thrown(40);
  for (std::size_t i = 0; i < complete.states.size(); i += 2) complete.states[i] = std::fabs(complete.states[i]) + 0.01;
  for (const FitPhase& phase : {FitPhase{}, FitPhase{.segment = 6}, FitPhase{.segment = 9, .continuity = 2}}) {
    FitLoss<double> loss(train_parameters(falling(), kLost), phase.segment == 6 ? complete : data,
                         with_phases({phase}, kTight, kLost));
    Numbers parameters(loss.parameters()), gradient(loss.parameters()), other(loss.parameters());
    parameters[0] = 0.2;
    parameters[1] = -0.1;
    const double value = loss({}, parameters, gradient);
    for (const std::size_t i : {0u, 1u}) {
      const double slope = testing::slope(
          parameters[i], [&] { return loss({}, parameters, other); }, 1e-5);
      EXPECT_NEAR(gradient[i], slope, 1e-6 * value) << i;
    }
  }
}

// Speeds that do not count in a phase are as good as not measured in it.
TEST(ResetData, a_phase_has_weights_of_its_own) {
  const TrajectoryData all = thrown(7);
  TrajectoryData heights = all;
  for (std::size_t i = 0, row = 0; i < 7; row += all.lengths[i++]) {
    for (std::size_t point = 1; point < all.lengths[i]; ++point) heights.states[2 * (row + point) + 1] = kNone;
  }
  for (FitPhase phase : {FitPhase{}, FitPhase{.horizon = 20}, FitPhase{.batch = 3}}) {
    FitLoss<double> bare(train_parameters(falling(), kLost), heights, with_phases({phase}, kUsual, kLost));
    phase.component_weights = {1, 0};
    FitLoss<double> weighed(train_parameters(falling(), kLost), all, with_phases({phase}, kUsual, kLost));
    const Numbers at{0.1, 0.2};
    Numbers expected(2), found(2);
    EXPECT_EQ(weighed({}, at, found), bare({}, at, expected));
    EXPECT_EQ(found, expected);
    EXPECT_GT(weighed.loss(at), bare.loss(at));  // of whole trajectories, with all weights
  }
  FitOptions options = with_phases({FitPhase{.component_weights = {1}}}, kUsual, kLost);
  EXPECT_THAT(message_of([&] { FitLoss<double>(train_parameters(falling(), kLost), all, options); }),
              HasSubstr("options.phases.component_weights: found 1 numbers, expected 2"));
}

// Those by a parameter of trajectories, times the slope of its law, in either precision; what is not trained keeps its
// own.
TEST(ResetData, gradients_by_trained_parameters_are_those_by_parameters) {
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    Problem problem{.rhs = falling(), .end_times = {1.5}, .save_times = {0.4, 1.1, 1.5}, .resets = bounces()};
    Problem trained{.rhs = train_parameters(falling(), kLost),
                    .end_times = {1.5},
                    .save_times = problem.save_times,
                    .resets = train_parameters(bounces(), kLost)};
    for (std::size_t i = 0; i < 70; ++i) {
      for (const double u : {1 + 0.01 * static_cast<double>(i), 0.1}) problem.initial_states.push_back(u);
      const double gravity = 9 + 0.01 * static_cast<double>(i);
      trained.parameters.push_back(gravity);
      for (const double p : {gravity, kLost[0].start, kLost[1].start}) problem.parameters.push_back(p);
    }
    trained.initial_states = problem.initial_states;
    Options options{.precision = precision};
    const Gradients expected = solve_with_gradients(problem, options, testing::weighted_sum);
    const Gradients found = solve_with_gradients(trained, options, testing::weighted_sum);
    EXPECT_EQ(found.loss, expected.loss);
    EXPECT_EQ(found.initial_states, expected.initial_states);
    ASSERT_EQ(found.weights.size(), 2u);
    ASSERT_EQ(found.parameters.size(), 70u);
    Numbers sums(2);
    for (std::size_t i = 0; i < 70; ++i) {
      EXPECT_EQ(found.parameters[i], expected.parameters[3 * i]);
      for (const std::size_t k : {0u, 1u}) sums[k] += expected.parameters[3 * i + 1 + k];
    }
    const auto slope = [&](std::size_t k) {
      return precision == Precision::f32 ? double{kLost[k].slope(0.0f)} : kLost[k].slope(0.0);
    };
    for (const std::size_t k : {0u, 1u}) EXPECT_EQ(found.weights[k], sums[k] * slope(k));
    // A plain solve reads them at their starts.
    const Solution plain = solve(problem, options), same = solve(trained, options);
    for (std::size_t i = 0; i < 70; ++i) EXPECT_EQ(plain.end_state(i, 0), same.end_state(i, 0));
  }
}

TEST(ResetData, what_was_lost_is_found_from_noisy_heights) {
  const TrajectoryData data = seen(thrown(12), 7);
  FitOptions options = with_phases(growing_phases(33), kUsual, kLost);
  options.validation = seen(thrown(5), 8);
  const FitResult result = fit(train_parameters(falling(), kLost), data, options);
  const ParameterUncertainty known =
      parameter_uncertainty(falling(), kLost, result.weights, data, kUsual, {.resets = bounces()});
  EXPECT_NEAR(known.deviation, kNoise, 0.1 * kNoise);
  EXPECT_LT(known.distance, 0.1);
  const double truth[] = {kDrag, kRestitution};
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_LT(known.lower[i], truth[i]);
    EXPECT_GT(known.upper[i], truth[i]);
    EXPECT_LT(known.standard_errors[i], 0.05 * truth[i]);
  }
  // The validation loss is that of noise.
  EXPECT_NEAR(*result.validation_loss, 31.0 * kNoise * kNoise, 0.4 * 31.0 * kNoise * kNoise);
  const Numbers states = fitted_states(train_parameters(falling(), kLost), result.weights, data, kUsual, {},
                                       train_parameters(bounces(), kLost));
  const FitErrors errors = fit_errors(data, states, Numbers{1, 1});
  EXPECT_NEAR(errors.components[0].rms, kNoise, 0.1 * kNoise);
}

// 95 % of 60 experiments, give or take 3.5 standard deviations of that share, 2.8 % each.
TEST(ResetData, intervals_hold_the_truth_as_often_as_they_say) {
  constexpr std::size_t kExperiments = 60;
  const TrajectoryData exact = thrown(3);
  std::size_t held = 0;
  for (std::size_t experiment = 0; experiment < kExperiments; ++experiment) {
    const TrajectoryData data = seen(exact, 100 + experiment);
    const FitResult result =
        fit(train_parameters(falling(), kLost), data, with_phases(growing_phases(33), kUsual, kLost));
    const ParameterUncertainty known =
        parameter_uncertainty(falling(), kLost, result.weights, data, kUsual, {.resets = bounces()});
    held += known.lower[1] < kRestitution && kRestitution < known.upper[1] ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(held) / kExperiments, 0.95, 0.1);
}

// Where each ball begins is known with errors alone, and the speed with large ones.
TEST(ResetData, free_starts_are_found_beside_them) {
  TrajectoryData data = seen(thrown(12), 7);
  for (std::size_t i = 0, row = 0; i < 12; row += data.lengths[i++]) {
    data.states[2 * row] += kNoise * Random(9).normal(i, 0);
    data.states[2 * row + 1] += 0.5 * Random(9).normal(i, 1);
  }
  FitOptions options = with_phases(growing_phases(33, {}, 1.0), kUsual, kLost);
  options.component_weights = {1 / (kNoise * kNoise), 1 / (0.5 * 0.5)};
  const FitResult result = fit(train_parameters(falling(), kLost), data, options);
  EXPECT_NEAR(kLost[1].value(result.weights[1]), kRestitution, 0.02);
  EXPECT_NEAR(result.states[1], 0.5, 0.1);  // some tenths from where it began
}

TEST(ResetData, what_cannot_be_had_is_named) {
  const TrajectoryData data = thrown(3);
  const auto message = [&](const Rhs& rhs, const FitOptions& options) {
    return message_of([&] { FitLoss<double>(rhs, data, options); });
  };
  const Rhs rhs = train_parameters(falling(), kLost);
  FitOptions options = with_phases({FitPhase{}}, kUsual, kLost);
  options.phases[0].solve = Options{.control = StepControl::fixed, .dt = 0.01};
  EXPECT_EQ(message(rhs, options),
            "options.phases[0].solve.control: found fixed with resets, expected each trajectory's own adaptive steps, "
            "which end where it is reset; use per_trajectory control");
  options = with_phases({FitPhase{}}, kUsual, kLost);
  options.solve.control = StepControl::common;
  EXPECT_THAT(message(rhs, options), HasSubstr("options.solve.control: found common with resets"));
  options = with_phases({FitPhase{}}, kUsual, kLost);
  options.resets = bounces();
  EXPECT_EQ(message(rhs, options),
            "options.resets[0].function: found 2 components and 3 parameters, expected 2 and 1, as the right-hand side "
            "has; parameters trained there are trained here too: train_parameters(resets, parameters)");
  options.resets = train_parameters(bounces(), {kLost[1], kLost[0]});
  FitLoss<double> loss(rhs, data, options);
  Numbers numbers(2);
  EXPECT_THAT(message_of([&] {
                loss({}, Numbers{0, 0}, numbers);
              }),
              HasSubstr("resets[0].function: found event height, 2 parameters trained, expected the parameters that"));
  // A ball that loses four fifths of its speed comes to rest within the data.
  const std::vector<TrainedParameter> dull{{.parameter = 1, .start = 0.1}, {.parameter = 2, .start = 0.2}};
  FitLoss<double> resting(train_parameters(falling(), dull), data, with_phases({FitPhase{}}, kUsual, dull));
  const Numbers at{1, 1};
  EXPECT_THAT(message_of([&] { resting({}, at, numbers); }),
              ::testing::AllOf(HasSubstr("trajectory 0: found step_too_small at t = "),
                               HasSubstr("end the data before resets follow each other without end")));
}

}  // namespace
}  // namespace lockstep::ode

// Trajectories whose first points were not fully measured: where their trained starts begin, and what comes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/fit_errors.h"
#include "lockstep/ode/parameter_uncertainty.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<double>;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
const Options kTight{.rtol = 1e-10, .atol = 1e-10, .precision = Precision::f64, .threads = 1};

const std::vector<TrainedParameter> kHunt{{.parameter = 0, .start = 1.2, .law = ParameterLaw::positive},
                                          {.parameter = 2, .start = 2.5}};

// Prey and predators with errors of 0.02 and the parameters 1.5, 1, 3, 1, from two starts. Predators are seen from the
// fifth time on, and in the second trajectory once, in its middle.
constexpr double kNoise = 0.02;
TrajectoryData hunted() {
  Problem problem{.rhs = system("lotka_volterra"), .initial_states = {1, 1, 2, 0.5}, .parameters = {1.5, 1, 3, 1}};
  for (int i = 0; i <= 24; ++i) problem.save_times.push_back(0.2 * i);
  problem.end_times = {problem.save_times.back()};
  TrajectoryData data{.trajectories = 2, .times = problem.save_times, .parameters = {1, 1}};
  const Solution solution = solve(problem, kTight);
  for (const double state : solution.states<double>()) {
    data.states.push_back(state + kNoise * Random(5).normal(data.states.size(), 0));
  }
  for (std::size_t point = 0; point < 25; ++point) {
    if (point < 4) data.states[2 * point + 1] = kNone;
    if (point != 12) data.states[50 + 2 * point + 1] = kNone;
  }
  return data;
}

FitOptions free_starts(std::size_t segment = 0) {
  FitOptions options{.solve = kTight};
  options.phases = {{.segment = segment, .continuity = 1}};
  options.phases[0].training.rule = train::LbfgsOptions{};
  return options;
}

TEST(MissingStarts, begin_at_the_first_measurement_or_at_the_mean_of_all) {
  const TrajectoryData data{.trajectories = 2,
                            .times = {0, 1, 2, 4, 5},
                            .states = {kNone, kNone, kNone, 3,     4, 5,     kNone, kNone, 10, kNone,  //
                                       1,     kNone, 2,     kNone, 3, kNone, 4,     kNone, 5,  kNone},
                            .parameters = {1, 1}};
  FitLoss<double> loss(train_parameters(system("lotka_volterra"), kHunt), data, free_starts());
  const Numbers at(loss.parameters());
  EXPECT_THAT(loss.states(at), ElementsAre(4, 3, 4, 3, 4, 5, 8, 5, 10, 5, 1, 4, 2, 4, 3, 4, 4, 4, 5, 4));
}

// Central differences: the third derivative of a loss of size 1000 by 1e-4 squared.
TEST(MissingStarts, the_gradient_is_that_of_what_was_measured) {
  for (const std::size_t segment : {0, 4}) {
    FitLoss<double> loss(train_parameters(system("lotka_volterra"), kHunt), hunted(), free_starts(segment));
    Numbers at(loss.parameters()), gradient(at.size()), direction(at.size());
    for (std::size_t i = 0; i < at.size(); ++i) {
      at[i] = (i < 2 ? 0 : 0.1) * Random(3).normal(i, 0) + (i == 1 ? 1 : 0);
      direction[i] = Random(3).normal(i, 1);
    }
    ASSERT_TRUE(std::isfinite(loss({}, at, gradient)));
    double along = 0;
    for (std::size_t i = 0; i < at.size(); ++i) along += direction[i] * gradient[i];
    const auto moved = [&](double by) {
      Numbers there = at;
      for (std::size_t i = 0; i < at.size(); ++i) there[i] += by * direction[i];
      return loss({}, there, gradient);
    };
    EXPECT_NEAR(along, (moved(1e-4) - moved(-1e-4)) / 2e-4, 1e-5 * std::fabs(along)) << segment;
  }
}

// The truth within four standard errors, of parameters and of nothing else: 1 in 8,000 fits would miss it.
TEST(MissingStarts, parameters_are_found_from_predators_seen_later) {
  const Rhs rhs = train_parameters(system("lotka_volterra"), kHunt);
  const TrajectoryData data = hunted();
  FitOptions options = free_starts();
  options.phases = noisy_phases(25);
  const FitResult one = fit(rhs, data, options);
  options.solve.threads = 2;
  const FitResult two = fit(rhs, data, options);
  EXPECT_EQ(one.weights, two.weights);
  EXPECT_EQ(one.states, two.states);
  EXPECT_EQ(one.loss, two.loss);
  const Numbers starts{one.states[0], one.states[1], one.states[50], one.states[51]};
  const ParameterUncertainty known =
      parameter_uncertainty(system("lotka_volterra"), kHunt, one.weights, data, kTight, {.initial_states = starts});
  EXPECT_EQ(known.numbers, 72u);
  EXPECT_EQ(known.unknowns, 6u);
  EXPECT_LT(known.distance, 0.01);
  EXPECT_NEAR(known.deviation, kNoise, 4 * kNoise / std::sqrt(2 * 66.0));
  EXPECT_NEAR(known.values[0], 1.5, 4 * known.standard_errors[0]);
  EXPECT_NEAR(known.values[1], 3, 4 * known.standard_errors[1]);
  EXPECT_LT(known.standard_errors[0], 0.02);
  EXPECT_NEAR(starts[1], 1, 0.1);
  EXPECT_NEAR(starts[3], 0.5, 0.1);
  const Numbers states = fitted_states(rhs, one.weights, data, kTight, starts);
  for (const train::ColumnErrors& each : fit_errors(data, states, Numbers(2, 1.0)).components) {
    EXPECT_NEAR(each.rms, kNoise, 0.5 * kNoise);
  }
}

// As good as none is a measurement of a billion times its size.
TEST(MissingStarts, errors_are_those_of_starts_measured_without_any_precision) {
  TrajectoryData missing = hunted(), imprecise = missing;
  const Numbers values{std::log(1.25), 1.2}, starts{1, 1, 2, 0.5};
  missing.sigma.assign(missing.states.size(), 0.1);
  imprecise.sigma = missing.sigma;
  for (const std::size_t at : {1, 51}) imprecise.states[at] = 1, imprecise.sigma[at] = 1e9;
  const auto errors_of = [&](const TrajectoryData& data) {
    return parameter_uncertainty(system("lotka_volterra"), kHunt, values, data, kTight,
                                 {.initial_states = starts, .error_size = ErrorSize::as_stated});
  };
  const ParameterUncertainty found = errors_of(missing), expected = errors_of(imprecise);
  EXPECT_EQ(found.numbers + 2, expected.numbers);
  EXPECT_EQ(found.unknowns, expected.unknowns);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(found.standard_errors[i], expected.standard_errors[i], 1e-9);
}

// x' = -p x beside y' = x, of which nothing was measured: its start is no unknown, x says all about p.
TEST(MissingStarts, a_start_that_nothing_depends_on_takes_up_no_number) {
  const auto beside = differentiable_function<2, 1>("beside", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = -p[0] * u[0];
    du[1] = u[0];
  });
  const auto alone = differentiable_function<1, 1>(
      "alone", [](auto, const auto& u, const auto& p, auto& du) { du[0] = -p[0] * u[0]; });
  TrajectoryData one, two;
  for (int i = 0; i < 9; ++i) {
    one.times.push_back(0.25 * i);
    one.states.push_back(2 * std::exp(-0.25 * i) + 0.01 * Random(2).normal(static_cast<std::uint64_t>(i), 0));
    two.states.insert(two.states.end(), {one.states.back(), kNone});
  }
  two.times = one.times;
  const std::vector<TrainedParameter> trained{{.parameter = 0, .start = 1}};
  const Numbers at{1}, start{2}, starts{2, 0};
  const auto expected = parameter_uncertainty(alone, trained, at, one, kTight, {.initial_states = start});
  const auto found = parameter_uncertainty(beside, trained, at, two, kTight, {.initial_states = starts});
  EXPECT_EQ(found.unknowns, 2u);
  EXPECT_EQ(found.numbers, 9u);
  EXPECT_NEAR(found.standard_errors[0], expected.standard_errors[0], 1e-9 * expected.standard_errors[0]);
  EXPECT_NEAR(found.deviation, expected.deviation, 1e-9);
}

// x' = k y, y' = -y, of x alone: twice the k with half the y is the same.
TEST(MissingStarts, a_parameter_that_a_free_start_makes_up_for_is_not_determined) {
  const auto chain = differentiable_function<2, 2>("chain", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = p[0] * u[1] - p[1] * u[0];
    du[1] = -u[1];
  });
  TrajectoryData data;
  for (int i = 0; i < 12; ++i) {
    data.times.push_back(0.25 * i);
    data.states.insert(data.states.end(),
                       {std::exp(-0.3 * i) + 0.01 * Random(2).normal(static_cast<std::uint64_t>(i), 0), kNone});
  }
  const std::vector<TrainedParameter> trained{{.parameter = 0, .start = 0.5}, {.parameter = 1, .start = 1.5}};
  const Numbers at{1, 1}, starts{2, 1};
  const auto found = parameter_uncertainty(chain, trained, at, data, kTight, {.initial_states = starts});
  ASSERT_EQ(found.undetermined.size(), 1u);
  EXPECT_NEAR(found.undetermined[0][0], 0.5, 1e-6);
  EXPECT_NEAR(found.undetermined[0][1], 0, 1e-6);
  data.states[1] = 1;  // one number of y, and both are known
  EXPECT_TRUE(parameter_uncertainty(chain, trained, at, data, kTight, {.initial_states = starts}).undetermined.empty());
}

TEST(MissingStarts, scaling_comes_from_what_was_measured) {
  Mlp missing;
  missing.layers.push_back({2, 2, Numbers(4), Numbers(2), {ActivationKind::identity}});
  const TrajectoryData late{
      .trajectories = 2, .times = {0, 1, 2}, .states = {kNone, 1, 4, 3, 6, 4, 7, kNone, 8, kNone, 9, 5}};
  fit_scaling(missing, late);
  EXPECT_EQ(missing.output_scaling.shift[0], (2 + 1 + 1) / 3.0);  // no difference to the other trajectory's end
  EXPECT_EQ(missing.output_scaling.shift[1], 1.5);
  EXPECT_EQ(missing.input_scaling.shift[1], 3.25);
}

TEST(MissingStarts, are_refused_where_a_solve_begins_there) {
  const Rhs rhs = train_parameters(system("lotka_volterra"), kHunt);
  const auto message = [&](const TrajectoryData& data, const FitOptions& options) {
    return message_of([&] { FitLoss<double>(rhs, data, options); }, ErrorKind::invalid_argument);
  };
  FitOptions options = free_starts();
  EXPECT_EQ(message(hunted(), options), "no error");
  options.phases.push_back({});
  EXPECT_THAT(message(hunted(), options),
              HasSubstr("data.states: found NaN in trajectory 0, row 0, component 1, expected a complete state, from "
                        "which the trajectory starts; give every phase a continuity"));
  options = free_starts();
  options.validation = hunted();
  EXPECT_THAT(message(hunted(), options),
              HasSubstr("options.validation.states: found NaN in trajectory 0, row 0, component 1"));
  TrajectoryData data = hunted();
  for (std::size_t at = 1; at < data.states.size(); at += 2) data.states[at] = kNone;
  EXPECT_THAT(message(data, free_starts()), HasSubstr("found no number of component 1 in any trajectory"));
  EXPECT_THAT(message_of([&] { fitted_states(rhs, rhs->weights(), hunted(), kTight); }),
              HasSubstr("expected a complete state"));
  data = hunted();
  data.states[0] = std::numeric_limits<double>::infinity();
  EXPECT_THAT(message(data, free_starts()), HasSubstr("row 0, component 0, expected finite states, or NaN"));
}

}  // namespace
}  // namespace lockstep::ode

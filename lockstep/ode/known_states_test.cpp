// Known numbers of trajectories carried along as states that nothing moves count as known, as parameters do.
#include "lockstep/ode/detail/known_states.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/parameter_uncertainty.h"

namespace lockstep::ode {
namespace {

using Numbers = std::vector<double>;
constexpr std::size_t kExperiments = 7, kTimes = 12;
constexpr double kRate = 0.2, kSlope = 0.005;

double temperature(std::size_t experiment) { return 300 + 10 * static_cast<double>(experiment); }

// u' = -(k + e (T - 330)) u, T a state that stands still, or a parameter.
Rhs by_state() {
  return differentiable_function<2, 2>("by state", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = -(p[0] + p[1] * (u[1] - 330.0)) * u[0];
    du[1] = 0.0 * u[1];
  });
}
Rhs by_parameter() {
  return differentiable_function<1, 3>("by parameter", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = -(p[0] + p[1] * (p[2] - 330.0)) * u[0];
  });
}

// Decays at seven temperatures with noise; with the temperature in every row, or in none.
TrajectoryData decays(bool with_temperature) {
  const Random random(1);
  TrajectoryData data{.trajectories = kExperiments};
  for (std::size_t i = 0; i < kTimes; ++i) data.times.push_back(10.0 * static_cast<double>(i) / (kTimes - 1));
  for (std::size_t i = 0; i < kExperiments; ++i) {
    for (std::size_t point = 0; point < kTimes; ++point) {
      const double noise = point == 0 ? 0 : 0.02 * random.normal(i, static_cast<std::uint32_t>(point));
      data.states.push_back(std::exp(-(kRate + kSlope * (temperature(i) - 330)) * data.times[point]) + noise);
      if (with_temperature) data.states.push_back(temperature(i));
    }
    if (!with_temperature) data.parameters.push_back(temperature(i));
  }
  return data;
}

const Options kExactSolves{.rtol = 1e-10, .atol = 1e-10, .precision = Precision::f64, .threads = 1};
const std::vector<TrainedParameter> kTrained{{.parameter = 0, .start = kRate}, {.parameter = 1, .start = kSlope}};

void expect_same(const ParameterUncertainty& found, const ParameterUncertainty& expected) {
  EXPECT_EQ(found.numbers, expected.numbers);
  EXPECT_EQ(found.unknowns, expected.unknowns);
  EXPECT_NEAR(found.deviation, expected.deviation, 1e-8);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(found.standard_errors[i], expected.standard_errors[i], 1e-6 * expected.standard_errors[i]);
  }
}

TEST(KnownStates, count_as_parameters_do) {
  const TrajectoryData data = decays(true), plain = decays(false);
  const Numbers ones(2, 1.0);
  const auto known = parameter_uncertainty(by_parameter(), kTrained, ones, plain, kExactSolves);
  EXPECT_EQ(known.numbers, kExperiments * (kTimes - 1));
  EXPECT_NEAR(known.deviation, 0.02, 0.005);
  expect_same(parameter_uncertainty(by_state(), kTrained, ones, data, kExactSolves), known);

  Numbers starts, plain_starts;
  for (std::size_t i = 0; i < kExperiments; ++i) {
    starts.insert(starts.end(), {1, temperature(i) + 1e-3});  // pulled by the fit
    plain_starts.push_back(1);
  }
  const auto free =
      parameter_uncertainty(by_parameter(), kTrained, ones, plain, kExactSolves, {.initial_states = plain_starts});
  EXPECT_EQ(free.unknowns, 2 + kExperiments);
  const auto found = parameter_uncertainty(by_state(), kTrained, ones, data, kExactSolves, {.initial_states = starts});
  EXPECT_EQ(found.numbers, free.numbers);
  EXPECT_EQ(found.unknowns, free.unknowns);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(found.standard_errors[i], free.standard_errors[i], 1e-3 * free.standard_errors[i]);
  }
}

// What errs is a measurement, whether or not anything moves it: it tells the size of errors.
TEST(KnownStates, do_not_err) {
  TrajectoryData data = decays(true);
  data.states[2 * 5 + 1] += 0.02;
  const auto found = parameter_uncertainty(by_state(), kTrained, Numbers(2, 1.0), data, kExactSolves);
  EXPECT_EQ(found.numbers, kExperiments * (kTimes - 1) + kTimes - 1);  // of the trajectory in which it errs
}

// Rows [by start of component 0, of 1, by a parameter, residual].
TEST(KnownStates, are_those_that_one_start_meets) {
  const auto left = [](const Numbers& numbers, std::vector<std::size_t> components) {
    detail::MeasuredRows rows{{4, numbers}, 2, components, Numbers(components.size(), 1e-9)};
    detail::take_out_known_states(rows);
    return rows.rows.numbers;
  };
  const Numbers moved{0, 1, 0, 0.5, 3, 2, 1, 0.25}, free{0, 1, 0, 0.5, 0, 2, 1, 0.25};
  const Numbers twice{1, 0, 0, 0.1, 2, 0, 0, 0.2}, errs{1, 0, 0, 0.1, 2, 0, 0, 0.3}, once{1, 0, 0, 0.1};
  const auto with = [](Numbers first, const Numbers& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  EXPECT_EQ(left(with(twice, moved), {0, 0, 1, 1}), free);
  EXPECT_EQ(left(with(errs, moved), {0, 0, 1, 1}), with(errs, moved));
  EXPECT_EQ(left(with(once, moved), {0, 1, 1}), with(once, moved));  // met by a start that is free for it
  const Numbers by_other{1, 1, 0, 0.1, 2, 2, 0, 0.2}, by_trained{1, 0, 1, 0, 2, 0, 1, 0};
  EXPECT_EQ(left(with(by_other, moved), {0, 0, 1, 1}), with(by_other, moved));
  EXPECT_EQ(left(with(by_trained, moved), {0, 0, 1, 1}), with(by_trained, moved));
}

}  // namespace
}  // namespace lockstep::ode

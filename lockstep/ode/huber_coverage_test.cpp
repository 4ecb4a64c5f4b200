// Repeated experiments with outliers, fitted by Huber's loss: whether intervals hold the truth as often as they say.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/huber.h"
#include "lockstep/ode/parameter_uncertainty.h"

namespace lockstep::ode {
namespace {

enum class Errors { from_fit, stated, found_in_data };

// u' = -k (u - c) from u = 2, k = 1.2 and c = 0.5, with normal errors of 0.02 and each number with a probability of 5 %
// off by 0.4 besides: the share of intervals that hold k or c.
double covered(Errors errors, std::uint64_t seed, std::size_t experiments) {
  constexpr std::size_t kPoints = 40;
  constexpr double kError = 0.02;
  const Rhs rhs = differentiable_function<1, 2>(
      "decay", [](auto, const auto& u, const auto& p, auto& du) { du[0] = -p[0] * (u[0] - p[1]); });
  const std::vector<TrainedParameter> trained{{.parameter = 0, .start = 1, .law = ParameterLaw::positive},
                                              {.parameter = 1, .start = 0.4}};
  const Options solver{
      .method = "rk4", .control = StepControl::fixed, .dt = 0.1, .precision = Precision::f64, .threads = 1};
  FitOptions options{.solve = solver, .huber_threshold = kHuberThreshold};
  options.phases[0].training.rule = train::LbfgsOptions{};
  options.phases[0].training.iterations = 40;
  UncertaintyOptions uncertainty{.huber_threshold = kHuberThreshold};
  if (errors == Errors::stated) uncertainty.error_size = ErrorSize::as_stated;
  const Random random(seed);
  std::size_t inside = 0;
  for (std::size_t experiment = 0; experiment < experiments; ++experiment) {
    TrajectoryData data{.times = {0}, .states = {2}};
    for (std::uint32_t i = 1; i <= kPoints; ++i) {
      data.times.push_back(0.1 * i);
      const double error = kError * random.normal(experiment, i);
      const double draw = random.normal(experiment + 1'000'000, i);  // beyond 1.96 in 5 % of all
      const double glitch = std::abs(draw) > 1.959963984540054 ? std::copysign(20 * kError, draw) : 0;
      data.states.push_back(0.5 + 1.5 * std::exp(-1.2 * data.times.back()) + error + glitch);
    }
    if (errors != Errors::found_in_data) data.sigma.assign(kPoints + 1, kError);
    const FitResult result = fit(train_parameters(rhs, trained), data, options);
    const ParameterUncertainty found = parameter_uncertainty(rhs, trained, result.weights, data, solver, uncertainty);
    EXPECT_LT(found.distance, 0.1) << experiment;
    inside += static_cast<std::size_t>(found.lower[0] < 1.2 && 1.2 < found.upper[0]);
    inside += static_cast<std::size_t>(found.lower[1] < 0.5 && 0.5 < found.upper[1]);
  }
  return static_cast<double>(inside) / static_cast<double>(2 * experiments);
}

// Of 200 experiments the share has a standard deviation of 1.5 % at most, as if both parameters were right together;
// 2.5 of them are allowed.
TEST(HuberCoverage, intervals_hold_the_truth_in_95_of_100_experiments_with_outliers) {
  EXPECT_NEAR(covered(Errors::from_fit, 1, 200), 0.95, 0.039);
  EXPECT_NEAR(covered(Errors::stated, 2, 200), 0.95, 0.039);
  EXPECT_NEAR(covered(Errors::found_in_data, 3, 200), 0.95, 0.039);
}

}  // namespace
}  // namespace lockstep::ode

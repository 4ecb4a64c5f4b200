#include "lockstep/ode/huber.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/detail/data_rows.h"
#include "lockstep/ode/detail/fit_data.h"

namespace lockstep::ode {
namespace {

constexpr double kLeastOfSpread = 1e-3;
constexpr std::size_t kFewestOfCubics = 8;

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const std::size_t middle = numbers.size() / 2;
  return numbers.size() % 2 != 0 ? numbers[middle] : 0.5 * (numbers[middle - 1] + numbers[middle]);
}

// The standard deviation of normal numbers around 0 of which these are the sizes.
double deviation_of_sizes(std::vector<double> sizes) {
  constexpr double kMedianOfNormal = 0.6744897501960817;
  return median(std::move(sizes)) / kMedianOfNormal;
}

double spread_of(const std::vector<double>& numbers) {
  const double middle = median(numbers);
  std::vector<double> sizes;
  for (const double x : numbers) sizes.push_back(std::fabs(x - middle));
  return deviation_of_sizes(std::move(sizes));
}

// The middle one of 2 `reach` + 1 measurements less the polynomial through the others, by Lagrange, sized so that
// errors of deviation 1 give 1.
double scatter(const double* times, const double* states, std::size_t reach) {
  double off = -states[reach], squares = 1;
  for (std::size_t j = 0; j <= 2 * reach; ++j) {
    if (j == reach) continue;
    double weight = 1;
    for (std::size_t l = 0; l <= 2 * reach; ++l) {
      if (l != j && l != reach) weight *= (times[reach] - times[l]) / (times[j] - times[l]);
    }
    off += weight * states[j];
    squares += weight * weight;
  }
  return std::fabs(off) / std::sqrt(squares);
}

}  // namespace

std::vector<double> measurement_errors(const TrajectoryData& data, std::size_t components) {
  const StandardArithmetic arithmetic;
  const detail::DataRows rows(data, components);
  const std::vector<detail::Moments> over_all = detail::moments(data, components);
  std::vector<double> errors(components, std::numeric_limits<double>::infinity());
  for (std::size_t c = 0; c < components; ++c) {
    std::vector<double> all, about_lines, about_cubics;
    for (std::size_t trajectory = 0; trajectory < rows.trajectories(); ++trajectory) {
      std::vector<double> times, states;  // of what was measured
      for (std::size_t point = 0; point < rows.points(trajectory); ++point) {
        const double state = data.states[(rows.first(trajectory) + point) * components + c];
        if (std::isnan(state)) continue;
        times.push_back(rows.times(data, trajectory)[point]);
        states.push_back(state);
      }
      for (std::size_t i = 0; i + 2 < states.size(); ++i) about_lines.push_back(scatter(&times[i], &states[i], 1));
      for (std::size_t i = 0; i + 4 < states.size(); ++i) about_cubics.push_back(scatter(&times[i], &states[i], 2));
      all.insert(all.end(), states.begin(), states.end());
    }
    if (all.empty()) continue;
    const double spread = spread_of(all);
    errors[c] = about_lines.empty() ? spread : deviation_of_sizes(about_lines);
    if (about_cubics.size() >= kFewestOfCubics) errors[c] = std::min(errors[c], deviation_of_sizes(about_cubics));
    errors[c] = std::max(errors[c], kLeastOfSpread * spread);
    if (!(errors[c] > 0)) errors[c] = over_all[c].size();  // more than half of all are the same number
  }
  return errors;
}

std::vector<double> huber_thresholds(const TrajectoryData& data, std::size_t components,
                                     std::span<const double> component_weights, double threshold) {
  const StandardArithmetic arithmetic;
  std::vector<double> units(components, 1.0);
  if (data.sigma.empty() && component_weights.empty()) units = measurement_errors(data, components);
  for (std::size_t c = 0; c < component_weights.size(); ++c) units[c] = 1 / std::sqrt(component_weights[c]);
  for (double& unit : units) unit *= threshold;
  return units;
}

}  // namespace lockstep::ode

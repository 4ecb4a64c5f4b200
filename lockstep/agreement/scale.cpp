#include "lockstep/agreement/scale.h"

#include <algorithm>
#include <cmath>

namespace lockstep::agreement {
namespace {

constexpr std::size_t kSample = 1024;

}  // namespace

double Scale::relative_magnitude(std::size_t time) const {
  double largest = 0;
  for (std::size_t c = 0; c < components(); ++c) {
    largest = std::max(largest, magnitude[time * components() + c] / size[c]);
  }
  return largest;
}

double Scale::typical_magnitude() const {
  std::vector<double> values;
  for (std::size_t k = 0; k * components() < magnitude.size(); ++k) values.push_back(relative_magnitude(k));
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

Scale measure_scale(const Ensemble& ensemble) {
  const std::size_t components = ensemble.components();
  const std::size_t points = ensemble.save_points();
  const std::size_t trajectories = ensemble.trajectories();
  const std::size_t sample = std::min(trajectories, kSample);
  std::vector<double> states;  // [sample][time][component]
  for (std::size_t s = 0; s < sample; ++s) {
    const std::vector<double> row = ensemble.states(s * trajectories / sample, 1);
    states.insert(states.end(), row.begin(), row.end());
  }
  Scale scale;
  scale.size.assign(components, 1);
  scale.magnitude.assign(points * components, 0);
  std::vector<double> sum(components), count(components), squares(components);
  std::vector<double> counts(points * components);
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!std::isfinite(states[i])) continue;
    sum[i % components] += states[i];
    count[i % components] += 1;
    scale.magnitude[i % (points * components)] += states[i] * states[i];
    counts[i % (points * components)] += 1;
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    const std::size_t c = i % components;
    if (!std::isfinite(states[i])) continue;
    const double away = states[i] - sum[c] / count[c];
    squares[c] += away * away;
  }
  for (std::size_t c = 0; c < components; ++c) {
    if (count[c] == 0) continue;
    const double deviation = std::sqrt(squares[c] / count[c]);
    const double mean = std::abs(sum[c] / count[c]);
    // A constant's deviation is rounding: below 1e-6 of the mean it says nothing of an extent.
    if (deviation > 1e-6 * mean) {
      scale.size[c] = deviation;
    } else if (mean > 0) {
      scale.size[c] = mean;
    }
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    scale.magnitude[i] = counts[i] > 0 ? std::sqrt(scale.magnitude[i] / counts[i]) : 0;
  }
  scale.largest_so_far = scale.magnitude;
  for (std::size_t i = components; i < counts.size(); ++i) {
    scale.largest_so_far[i] = std::max(scale.largest_so_far[i], scale.largest_so_far[i - components]);
  }
  return scale;
}

}  // namespace lockstep::agreement

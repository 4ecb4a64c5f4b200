// What one measurement adds to a fit's loss.
#pragma once

#include <algorithm>

namespace lockstep::ode::detail {

struct MeasurementLoss {
  double loss, slope;  // slope: derivative by the error
};

// weight h(error) as SquaredError has it, `threshold` perhaps infinite: with c the error cut at the threshold,
// h(e) = c (e + (e - c)), the operations of e e where nothing is cut.
inline MeasurementLoss measurement_loss(double weight, double error, double threshold) {
  const double cut = std::clamp(error, -threshold, threshold);
  return {weight * cut * (error + (error - cut)), 2 * weight * cut};
}

}  // namespace lockstep::ode::detail

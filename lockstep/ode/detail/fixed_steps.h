// How a span is cut into steps of one size.
#pragma once

#include <cmath>

#include "lockstep/kernels/lane/scalar_lane.h"

namespace lockstep::ode::detail {

struct FixedSteps {
  double count;    // steps, at least 1
  double dt;       // signed
  double last_dt;  // of the step that lands on the end time
};

inline constexpr double kStepSlack = 1e-9;

// Spans that are a whole number of steps to within kStepSlack of a step get that number, all of the same size.
LOCKSTEP_HOST_DEVICE FixedSteps fixed_steps(double t_start, double t_end, double dt_size) {
  const double dt = t_end < t_start ? -dt_size : dt_size;
  const double ratio = (t_end - t_start) / dt;
  const double nearest = std::round(ratio);
  if (nearest >= 1 && std::fabs(ratio - nearest) <= kStepSlack) return {nearest, dt, dt};
  const double count = std::ceil(ratio);
  return {count, dt, t_end - std::fma(count - 1, dt, t_start)};
}

}  // namespace lockstep::ode::detail

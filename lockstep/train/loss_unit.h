// The unit that an optimiser sees a loss in. What optimisers have constants for (Adam's epsilon, the step that L-BFGS
// begins with, a rate) supposes gradients of about 1, and float32 squares of numbers that are not far from it: losses
// of targets of 1e-6, or 1e20, are neither.
#pragma once

#include <cmath>

namespace lockstep::train {

// A power of 256 by which numbers of this size become numbers from 1/16 to 16: exact, and 1 itself where they are that
// anyway, or 0 or not finite.
inline double unit_of(double size) {
  double unit = 1;
  if (!(size > 0) || !std::isfinite(size)) return unit;
  while (size > 16 * unit) unit *= 256;
  while (size < unit / 16) unit /= 256;
  return unit;
}

}  // namespace lockstep::train

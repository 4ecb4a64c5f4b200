#include "lockstep/train/clip.h"

#include <cmath>

#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/train/detail/positive.h"
#include "lockstep/train/sums.h"

namespace lockstep::train {

void ClipOptions::validate() const {
  const StandardArithmetic arithmetic;
  if (norm) detail::require_positive("clip.norm", *norm);
  if (value) detail::require_positive("clip.value", *value);
}

template <class T>
double clip(std::span<T> gradient, const ClipOptions& options) {
  const StandardArithmetic arithmetic;
  const double length = norm(std::span<const T>(gradient));
  if (!std::isfinite(length)) return length;
  if (options.norm && length > *options.norm) {
    const T factor = static_cast<T>(*options.norm / length);
    for (T& g : gradient) g *= factor;
  }
  if (options.value) {
    const T bound = static_cast<T>(*options.value);
    for (T& g : gradient) g = g > bound ? bound : g < -bound ? -bound : g;
  }
  return length;
}

template double clip<float>(std::span<float>, const ClipOptions&);
template double clip<double>(std::span<double>, const ClipOptions&);

}  // namespace lockstep::train

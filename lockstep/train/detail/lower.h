// Which loss counts as lower than another.
#pragma once

#include <cmath>
#include <type_traits>

namespace lockstep::train::detail {

// A float32 objective adds numbers that are each rounded by up to 2^-24 of their size. What falls by a smaller share of
// the whole follows those roundings, for hundreds of iterations along steps that few parameters see. Of float64 any
// loss below counts.
template <class T>
bool is_lower(double loss, double start) {
  constexpr double kRounding = std::is_same_v<T, float> ? 0x1p-24 : 0;
  return loss < start - kRounding * std::fabs(start);
}

}  // namespace lockstep::train::detail

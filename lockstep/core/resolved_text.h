// Numbers that lie near each other and far from 0, such as times in seconds since 1970, with the digits that tell them
// apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "lockstep/core/text.h"

namespace lockstep {

// As rounded_text() of `digits`; where that is coarser than `resolution`, how far apart such numbers lie, without an
// exponent down to its first digit: "1700002220" of times 60 apart, "2460000.5257" of times 1/1440 apart. What is no
// distance (0, infinite, NaN) asks for none.
inline std::string resolved_text(double value, double resolution, int digits = 6) {
  constexpr int kMost = 17;
  const double size = std::fabs(value), distance = std::fabs(resolution);
  if (!(size > 0) || !(distance > 0) || !std::isfinite(size) || !std::isfinite(distance))
    return rounded_text(value, digits);
  const int leading = static_cast<int>(std::floor(std::log10(size)));
  const int last = static_cast<int>(std::floor(std::log10(distance)));
  if (leading - last + 1 <= digits) return rounded_text(value, digits);
  if (leading - last + 1 > kMost || leading >= kMost) return number_text(value);
  std::string text = fixed_text(value, std::max(-last, 0));
  if (text.find('.') == text.npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace lockstep

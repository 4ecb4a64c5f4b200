// Checks that several options share.
#pragma once

#include <cmath>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"

namespace lockstep::train::detail {

[[noreturn]] inline void refuse(const std::string& field, const std::string& found, const std::string& expected,
                                const std::string& remedy = {}) {
  throw Error(ErrorKind::invalid_argument, {field, found, expected, remedy});
}

// Of numbers of which one at least is not finite: "a loss of 3, a gradient that is not finite".
inline std::string loss_text(double loss, double gradient_norm) {
  const auto text = [](double number, const char* of) {
    return std::isfinite(number) ? of + number_text(number) : std::string(" that is not finite");
  };
  return "a loss" + text(loss, " of ") + ", a gradient" + text(gradient_norm, " of norm ");
}

inline void require_positive(const char* field, double value) {
  if (!(value > 0) || !std::isfinite(value)) refuse(field, number_text(value), "a finite number above 0");
}

inline void require_not_negative(const char* field, double value) {
  if (!(value >= 0) || !std::isfinite(value)) refuse(field, number_text(value), "a finite number, not negative");
}

// In [0, 1).
inline void require_fraction(const char* field, double value) {
  if (!(value >= 0 && value < 1)) refuse(field, number_text(value), "a number from 0 to below 1");
}

}  // namespace lockstep::train::detail

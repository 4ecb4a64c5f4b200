// How far from a stop the times are at which a right-hand side is evaluated on either side of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/ode/options.h"
#include "lockstep/ode/time_knot.h"

namespace lockstep::ode::detail {

struct StopSides {
  // In units of the precision at the numbers that lead there: the argument of a table takes a few roundings on its way
  // from the time.
  static constexpr double kUlps = 8;
  // Beside 0 at least so far: the slope in time of sqrt(t) is not finite there, which a linearly implicit step allows
  // for, and so steep nearer by that no step is short enough.
  static constexpr double kLeast = 0x1p-120;

  // Of fixed steps, which end where they do.
  double least = 0;
  double most = std::numeric_limits<double>::infinity();

  static double of_roundings(const TimeKnot& knot, Precision precision) {
    const double epsilon = precision == Precision::f32 ? 0x1p-23 : 0x1p-52;
    return std::max(kUlps * epsilon * std::max(std::fabs(knot.time), knot.magnitude), kLeast);
  }
  double of(const TimeKnot& knot, Precision precision) const {
    return std::min(std::max(of_roundings(knot, precision), least), most);
  }
};

}  // namespace lockstep::ode::detail

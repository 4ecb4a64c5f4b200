// What holds for all knots of a right-hand side, and the spans that it is asked about.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "lockstep/ode/time_knot.h"

namespace lockstep::ode::detail {

constexpr TimeSpan kEver{-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};

inline KnotBounds bounds_of(const std::vector<TimeKnot>& ever, bool repeats) {
  KnotBounds bounds{!ever.empty(), false, repeats, 0};
  for (const TimeKnot& knot : ever) {
    bounds.some_jump = bounds.some_jump || knot.jumps;
    bounds.magnitude = std::max(bounds.magnitude, knot.magnitude);
  }
  return bounds;
}

inline KnotBounds bounds_of_both(const KnotBounds& a, const KnotBounds& b) {
  return {a.some || b.some, a.some_jump || b.some_jump, a.repeats || b.repeats, std::max(a.magnitude, b.magnitude)};
}

// `function`: a StateFunction, or what tells the same of several.
template <class Function>
KnotBounds knot_bounds(const Function& function, std::span<const double> parameters) {
  if (function.has_many_knots()) return function.knot_bounds(parameters);
  return bounds_of(function.time_knots(kEver, parameters), function.repeats_knots());
}

// The largest of the numbers that lead to a knot of the span.
inline double size_of(const TimeSpan& span, double magnitude) {
  return std::max({std::fabs(span.first), std::fabs(span.last), span.last - span.first, magnitude});
}

// The knots of a function beside another one's: of a sum, or of all trajectories that share their stops. Where some
// repeat, those lie beyond the span, and it tells its own there, too: all, as those that are joined in a chain depend
// on where the chain begins.
template <class Function>
std::vector<TimeKnot> knots_beside(const Function& function, std::span<const double> parameters, bool some_repeat,
                                   const TimeSpan& span) {
  if (!some_repeat || !function.has_many_knots()) return function.time_knots(span, parameters);
  return function.time_knots(function.repeats_knots() ? span : kEver, parameters);
}

}  // namespace lockstep::ode::detail

// Of a right-hand side that has very many knots, those that the stops of a span depend on.
#pragma once

#include <functional>
#include <vector>

#include "lockstep/ode/detail/stop_sides.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/time_knot.h"

namespace lockstep::ode::detail {

// A stop besides, which another one is joined with that lies nearer than a side.
struct OtherStop {
  double time, side;
};

// The span and what roundings make of it: a stop whose sides lie beyond it is of no account.
TimeSpan rounded_span(const TimeSpan& span, double magnitude, const StopSides& sides, Precision precision);

// The span and as much beside it as knots that repeat are joined across with some of the span.
TimeSpan span_of_repeated(const TimeSpan& span, double magnitude, const StopSides& sides, Precision precision);

// Stops made of these, and of the others, are within the rounded span those made of all there are. `ask` tells the
// knots of a span, `bounds` what holds for all.
std::vector<TimeKnot> near_knots(const TimeSpan& rounded, const KnotBounds& bounds, std::vector<OtherStop> others,
                                 const StopSides& sides, Precision precision,
                                 const std::function<std::vector<TimeKnot>(const TimeSpan&)>& ask);

}  // namespace lockstep::ode::detail

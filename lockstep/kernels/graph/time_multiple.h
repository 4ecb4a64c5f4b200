// Values of a graph that are a multiple of the time plus a constant, and the times at which operations on them bend.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>

#include "lockstep/kernels/graph/operation.h"

namespace lockstep::graph {

// Of one feature: factor t + offset; a number where the factor is 0.
struct TimeMultiple {
  double factor = 0;
  double offset = 0;
  double magnitude = 0;  // the largest constant that was met on the way, in the value's units

  double time_of(double value) const { return (value - offset) / factor; }  // where it has this value
};

// Of what the operation makes of such values; `inputs` are null where a value is none. Null where it makes none.
std::optional<TimeMultiple> time_multiple(const Operation& operation, std::span<const TimeMultiple* const> inputs);

// Calls found(argument, value, jumps) for each value of an argument, a multiple of the time, at which what the
// operation makes of it jumps, or else bends: comparisons, minima and maxima, absolute values, bounds, knots of tables
// where the pieces beside them differ. Rectifiers too. Of tables, which may be long, those knots that `asked` is for.
struct KnotsAsked {
  double first = -std::numeric_limits<double>::infinity();  // the times between which they are met
  double last = std::numeric_limits<double>::infinity();
  bool ends_only = false;  // the first and the last one for all
};
void find_bends(const Operation& operation, std::span<const TimeMultiple* const> inputs, const KnotsAsked& asked,
                const std::function<void(const TimeMultiple&, double, bool)>& found);

}  // namespace lockstep::graph

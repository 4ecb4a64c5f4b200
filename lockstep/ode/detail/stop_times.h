// Where adaptive steps end whatever their error: sorted times, on the host and on devices.
#pragma once

#include <cstdint>

#include "lockstep/kernels/lane/scalar_lane.h"

namespace lockstep::ode::detail {

// Ascending. Where the right-hand side jumps, low < time < high: on either side of it and of what roundings in the
// state's precision make of it; elsewhere all three are equal.
struct StopTimes {
  const double* time = nullptr;
  const double* low = nullptr;
  const double* high = nullptr;
  std::int32_t count = 0;
};

// What a step from t heads for at most: a stop or the span's end.
struct StepLimit {
  double t;
  double before;  // the time of stages at a step's end there: the near side of a jump
};

// The place of the first stop beyond t on the way to t_end; none where it is no place of a stop.
LOCKSTEP_HOST_DEVICE std::int32_t next_stop(const StopTimes& stops, double t, double t_end) {
  const bool backward = t_end < t;
  std::int32_t low = 0, high = stops.count;  // the first one after t, or not before it
  while (low < high) {
    const std::int32_t middle = (low + high) / 2;
    const bool behind = backward ? stops.time[middle] < t : stops.time[middle] <= t;
    if (behind) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return backward ? low - 1 : low;
}

// A span that ends between the sides of a jump ends at the jump.
LOCKSTEP_HOST_DEVICE StepLimit limit_at(const StopTimes& stops, double t, double t_end) {
  const std::int32_t place = next_stop(stops, t, t_end);
  if (place < 0 || place >= stops.count) return {t_end, t_end};
  const bool backward = t_end < t;
  const double stop = stops.time[place], before = backward ? stops.high[place] : stops.low[place];
  if (stops.low[place] <= t_end && t_end <= stops.high[place]) return {t_end, before};
  return (backward ? stop < t_end : stop > t_end) ? StepLimit{t_end, t_end} : StepLimit{stop, before};
}

// The time at which the derivative behind t is to be evaluated, on the way to t_end: t itself but between the sides of
// a jump, where it is the far one.
LOCKSTEP_HOST_DEVICE double time_behind(const StopTimes& stops, double t, double t_end) {
  const bool backward = t_end < t;
  const std::int32_t here = next_stop(stops, t, t_end) + (backward ? 1 : -1);
  if (here < 0 || here >= stops.count || t < stops.low[here] || t > stops.high[here]) return t;
  return backward ? stops.low[here] : stops.high[here];
}

}  // namespace lockstep::ode::detail

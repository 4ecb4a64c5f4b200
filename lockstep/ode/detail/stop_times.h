// Where adaptive steps end whatever their error, and what any steps that end there see: sorted times, on the host and
// on devices.
#pragma once

#include <cstdint>

#include "lockstep/kernels/lane/scalar_lane.h"

namespace lockstep::ode::detail {

// An impulse at a stop: u[component] becomes factor * u[component] + change.
struct StateChange {
  double factor, change;
  std::int32_t component;
};

template <class T>
LOCKSTEP_HOST_DEVICE T changed(T u, const StateChange& change) {
  return ScalarLane<T>::fma(static_cast<T>(change.factor), u, static_cast<T>(change.change));
}

// Ascending. Where the right-hand side jumps, or its derivative by a parameter that moves a bend, low < time < high: on
// either side of it and of what roundings in the state's precision make of it; elsewhere all three are equal.
struct StopTimes {
  const double* time = nullptr;
  const double* low = nullptr;
  const double* high = nullptr;
  std::int32_t count = 0;
  bool fixed = false;  // of fixed steps, which end where they do: at a jump where that is between its sides
  // What happens to the state at stop k: the changes from first_change[k] to first_change[k + 1]. Null without any.
  const std::int64_t* first_change = nullptr;  // [count + 1]
  const StateChange* changes = nullptr;
};

// What a step from t heads for at most: a stop or the span's end.
struct StepLimit {
  double t;
  double before;  // the time of stages at a step's end there: the near side of a jump
};

// Times at which stages at a step's end are evaluated, and the next step's first one: the sides of a jump, elsewhere
// that end itself.
struct StepEnd {
  double before, behind;
};

// How many of ascending times are below t, or not above it.
LOCKSTEP_HOST_DEVICE std::int32_t times_until(const double* times, std::int32_t count, double t, bool with_t) {
  std::int32_t low = 0, high = count;
  while (low < high) {
    const std::int32_t middle = (low + high) / 2;
    if (times[middle] < t || (with_t && times[middle] == t)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The place of the first stop beyond t; none where it is no place of a stop.
LOCKSTEP_HOST_DEVICE std::int32_t next_stop(const StopTimes& stops, double t, bool backward) {
  return times_until(stops.time, stops.count, t, !backward) - (backward ? 1 : 0);
}

// Of adaptive steps. A span that ends between the sides of a jump ends at the jump.
LOCKSTEP_HOST_DEVICE StepLimit limit_at(const StopTimes& stops, double t, double t_end) {
  const bool backward = t_end < t;
  const std::int32_t place = next_stop(stops, t, backward);
  if (place < 0 || place >= stops.count) return {t_end, t_end};
  const double stop = stops.time[place], before = backward ? stops.high[place] : stops.low[place];
  if (stops.low[place] <= t_end && t_end <= stops.high[place]) return {t_end, before};
  return (backward ? stop < t_end : stop > t_end) ? StepLimit{t_end, t_end} : StepLimit{stop, before};
}

// The place of the stop at which a step ends that ends at t, or a span starts that starts there; -1 where there is
// none.
LOCKSTEP_HOST_DEVICE std::int32_t stop_at(const StopTimes& stops, double t, bool backward) {
  const std::int32_t here = stops.fixed ? times_until(stops.low, stops.count, t, true) - 1
                                        : next_stop(stops, t, backward) + (backward ? 1 : -1);
  return here < 0 || here >= stops.count || t < stops.low[here] || t > stops.high[here] ? -1 : here;
}

// Of a step that ends at t, or a span that starts there.
LOCKSTEP_HOST_DEVICE StepEnd step_end(const StopTimes& stops, double t, bool backward) {
  const std::int32_t here = stop_at(stops, t, backward);
  if (here < 0) return {t, t};
  return backward ? StepEnd{stops.high[here], stops.low[here]} : StepEnd{stops.low[here], stops.high[here]};
}

// Calls change(StateChange) for what happens to the state at t, where a step ends or a span starts; spans with such
// changes run forward.
template <class Change>
LOCKSTEP_HOST_DEVICE void for_changes(const StopTimes& stops, double t, const Change& change) {
  if (stops.changes == nullptr) return;
  const std::int32_t here = stop_at(stops, t, false);
  if (here < 0) return;
  for (std::int64_t i = stops.first_change[here]; i < stops.first_change[here + 1]; ++i) change(stops.changes[i]);
}

// The time of stages at the end of a step from t, the last one before its limit or not.
LOCKSTEP_HOST_DEVICE double last_stage_time(const StopTimes& stops, double t, double t_new, bool last) {
  if (stops.fixed) return step_end(stops, t_new, t_new < t).before;
  return last ? limit_at(stops, t, t_new).before : t_new;
}

}  // namespace lockstep::ode::detail

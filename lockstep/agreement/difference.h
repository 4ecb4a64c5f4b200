// How far two solutions are apart at each time, over all trajectories: one pass over both, in bounded memory.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "lockstep/agreement/ensemble.h"
#include "lockstep/agreement/scale.h"
#include "lockstep/agreement/spread.h"
#include "lockstep/agreement/statistics.h"
#include "lockstep/core/run_control.h"

namespace lockstep::agreement {

// Two states this far apart (in units of the attractor's size) have nothing to do with each other any more.
inline constexpr double kDiverged = 0.1;

struct TimeDifference {
  // kDistanceQuantile of the distance: of all trajectories within 5 %, the tail of the certified ones exactly.
  std::array<double, kLevels> quantile{};
  double tail_of_all = 0;  // the 99.9 % quantile of all trajectories
  double largest = 0;      // infinite where one state is finite and the other is not
  std::size_t largest_trajectory = 0;
  std::size_t compared = 0;    // trajectories finite in either
  std::size_t one_finite = 0;  // in one solution only
  std::size_t departed = 0;    // trajectories whose distance passes kDiverged here for the first time
};

// A trajectory that goes where rounding would not have taken it, or the earliest to diverge.
struct Departure {
  std::size_t trajectory = 0;
  std::size_t time = 0;  // save point
  double distance = 0;
  double allowed = 0;
};

// Where trajectories ended in the same way, by both solutions' end states and times.
struct EndDifference {
  std::size_t different = 0;  // more than ten roundings apart
  std::size_t by_event = 0;   // of these, those that an event ended; what follows is of them
  double time = 0;            // the largest difference of times, and of whom
  std::size_t time_trajectory = 0;
  double distance = 0;  // of states, in units of the solution's size
  std::size_t distance_trajectory = 0;
};

struct Difference {
  std::vector<TimeDifference> at;  // [time]
  std::size_t different = 0;       // numbers of other bits; any NaN equals any other
  std::size_t trajectories = 0;    // with such numbers
  std::size_t left_out = 0;        // not finished in one solution or both
  std::size_t unfinished_a = 0;    // in a
  std::size_t unfinished_b = 0;
  std::size_t statuses = 0;        // trajectories that ended in another way
  EndDifference ends;
  std::size_t not_finite = 0;      // trajectories with numbers that are not finite, in either
  std::size_t not_finite_a = 0;    // in a
  std::size_t not_finite_b = 0;
  bool b_is_float32 = true;  // every number of b is a float32
  bool a_is_float32 = true;
  std::vector<Departure> first;  // up to 3, earliest first
  // The first trajectory that ended in both alike and yet is finite in one alone, not between the times of its ends: at
  // no time is that rounding. (Of those that ended early, by an event or a blow-up, rounding decides when.)
  std::optional<Departure> one_sided;
  // Ascending, up to 32: the farthest out of what the certified ones show. See detail/suspects.h.
  std::vector<std::size_t> suspects;
  Statistics statistics;

  double median_divergence(const std::vector<double>& times) const;  // infinite when fewer than half diverge
};

// Both must have the same shape. Throws Error (cancelled) at the caller's request.
Difference measure_difference(const Ensemble& a, const Ensemble& b, const Scale& scale, const Spread& spread,
                              const RunControl& control = {});

}  // namespace lockstep::agreement

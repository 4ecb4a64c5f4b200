// Numbers and counts as the verdict's sentences write them.
#pragma once

#include <cstddef>
#include <string>

#include "lockstep/core/text.h"

namespace lockstep::agreement {

// Three digits: "24.5", "1.3e-07".
inline std::string number(double value) { return rounded_text(value, 3); }

// An elapsed time: "t = 2.5" where that is the time itself; "2.5 after the start" of ensembles that start elsewhere
// than at 0, each trajectory at a time of its own, or go backwards.
inline std::string moment_text(double elapsed, bool is_time) {
  if (is_time) return "t = " + number(elapsed);
  return elapsed == 0 ? "the start" : number(elapsed) + " after the start";
}
inline std::string at_moment(double elapsed, bool is_time) {
  return (is_time || elapsed == 0 ? "at " : "") + moment_text(elapsed, is_time);
}

inline std::string trajectories_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " trajectory" : " trajectories");
}

}  // namespace lockstep::agreement

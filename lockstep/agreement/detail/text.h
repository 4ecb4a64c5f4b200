// Numbers and counts as the verdict's sentences write them.
#pragma once

#include <cstddef>
#include <string>

#include "lockstep/core/text.h"

namespace lockstep::agreement {

// Three digits: "24.5", "1.3e-07".
inline std::string number(double value) { return rounded_text(value, 3); }

inline std::string trajectories_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " trajectory" : " trajectories");
}

}  // namespace lockstep::agreement

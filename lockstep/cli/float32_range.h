// What is to be said of numbers that float32 has no room for.
#pragma once

#include <string>
#include <vector>

#include "lockstep/ode/problem.h"

namespace lockstep::cli {

// Of a problem to be solved in float32: a note for each component whose initial state, and each parameter that is
// infinite there though it is finite, or 0 though it is not.
std::vector<std::string> float32_range_notes(const ode::Problem& problem, const std::vector<std::string>& components,
                                             const std::vector<std::string>& parameters);

}  // namespace lockstep::cli

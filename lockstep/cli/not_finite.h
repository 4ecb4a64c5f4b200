// Which trajectory became NaN or infinite, where, and by which component.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::cli {

// Of the first such trajectory of a result file: "trajectory 3 came to t = 0.5 of 1, where dx/dt is no finite number".
// The right-hand side is looked at in the solve's precision where the trajectory stopped; where it is finite there, a
// step led out of where it is, and the component of the largest size is named. `stored`: which components the file
// holds; empty: all. "" where there is none.
std::string first_not_finite(const ode::Problem& problem, const ode::Options& options,
                             const std::vector<std::string>& component_names, const std::vector<std::size_t>& stored,
                             const std::filesystem::path& result);

}  // namespace lockstep::cli

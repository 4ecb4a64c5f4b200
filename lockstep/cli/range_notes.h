// Which inputs of a net left its training range, for people.
#pragma once

#include <string>
#include <vector>

#include "lockstep/cli/problem_setup.h"
#include "lockstep/ode/guard.h"

namespace lockstep::cli {

// What solve says below its count of statuses: the inputs that lay farthest outside, in how many trajectories, and how
// far. Empty where none did.
std::vector<std::string> range_notes(std::vector<ode::Excursion> excursions, const ProblemSetup& setup);

}  // namespace lockstep::cli

// Which inputs of a net left its training range, for people.
#pragma once

#include <string>
#include <vector>

#include "lockstep/cli/problem_setup.h"
#include "lockstep/ode/guard.h"

namespace lockstep::cli {

// The inputs that lay farthest outside, in how many trajectories, and how far; or by which trajectories were ended,
// those that ended most first. "" where there are none.
std::string text_of_excursions(std::vector<ode::Excursion> excursions, const ProblemSetup& setup);

}  // namespace lockstep::cli

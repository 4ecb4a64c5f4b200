// The integrator written plainly, one trajectory and one lane at a time: the text to check against the papers, and the
// bits that every engine must reproduce.
#pragma once

#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {

// As solve(); slow. Throws as solve() does.
Solution solve_reference(const Problem& problem, const Options& options);

}  // namespace lockstep::ode

// Whether a trajectory is one that its problem's own adaptive steps may take: a step can be accepted whose error is far
// above the tolerance, because the estimate passes through zero there, and rounding decides who takes it.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/agreement/scale.h"
#include "lockstep/agreement/spread.h"
#include "lockstep/core/run_control.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::agreement {

// True where `row`, states [time][component] at the save points of `problem` (one trajectory), is what the problem
// gives within own_members.h's bounds, but for at most two gaps of a few save points each. Behind a gap the row is a
// solution again, of the state in which it comes out of it. In the gap it lies near one that the solver itself makes
// when some step begins elsewhere and is tried with another size (docs/validation.md, "Steps that are accepted by
// accident"). `trajectories`: of the whole ensemble. False where steps are not each trajectory's own, where products
// are rounded to fewer digits, and where the row is not finite at two save points. Throws Error as ode::solve() does.
bool is_by_accepted_steps(const ode::Problem& problem, const ode::Options& options, const std::vector<double>& row,
                          const Scale& scale, const Spread& spread, std::size_t trajectories,
                          const RunControl& control = {});

}  // namespace lockstep::agreement

// Whether trajectories may have fewer save points than their rows of save times have room for.
#pragma once

#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode::detail {

// may_end_early: rows of save_times_per_trajectory may be filled up with infinities in the direction of the span, which
// no step reaches. Gradients know what that means; solutions and their files do not.
enum class SaveRows { full, may_end_early };

// As ode::validate and Problem::validate.
void validate(const Problem& problem, const Options& options, SaveRows rows);
void validate(const Problem& problem, SaveRows rows);

}  // namespace lockstep::ode::detail

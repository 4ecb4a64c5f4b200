// What to tell of trajectories that ran out of steps: how far one came, and what made its steps many.
#pragma once

#include <filesystem>
#include <string>

#include "lockstep/core/run_control.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"
#include "lockstep/ode/trajectory_record.h"

namespace lockstep::cli {

inline constexpr const char* kTooCoarse = "float32 is too coarse here: ";  // so the reason begins where it is that

// Solves the trajectory again as far as it came, in float64: of float32 that needs many times the steps the rounding is
// to blame. Then without max_step. Where half of the steps end at impulses, stops or resets these are the cause; they
// are as many at any tolerance, and do not count in what follows. Then with tolerances ten times tighter. Where steps
// are as long as accuracy allows, a method of order q then needs 10^(1/q) times as many: 1.6 at order 5, 1.3 at
// order 9. Where it needs less than 10^(1/(2 q)) times as many stability decides: the problem is stiff. (Looser
// tolerances would not tell: those above the size of a fast component no longer see it.) Not for fixed steps.
std::string explain_out_of_steps(const ode::Problem& problem, const ode::Options& options, std::size_t trajectory,
                                 const ode::TrajectoryRecord& record, const RunControl& control = {});

// The same of the first such trajectory in a solution of this problem, or in a result file.
std::string explain_out_of_steps(const ode::Problem& problem, const ode::Options& options,
                                 const ode::Solution& solution, const RunControl& control = {});
std::string explain_out_of_steps(const ode::Problem& problem, const ode::Options& options,
                                 const std::filesystem::path& result, const RunControl& control);

// Whether float32 is what makes a trajectory's steps so many: float64 gets as far in a third of them. Its rounding of
// states then is as large as the tolerance, or its time too coarse for what the right-hand side makes of it.
bool float32_is_too_coarse(const ode::Problem& problem, const ode::Options& options, std::size_t trajectory,
                           const ode::TrajectoryRecord& record, const RunControl& control = {});

}  // namespace lockstep::cli

// Forward sensitivities: how every saved state varies with the initial state and the parameters.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/core/run_control.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {

// All in float64 whatever the solve's precision; NaN where a trajectory ended before the save point.
struct Sensitivities {
  std::vector<double> states;            // [trajectory][time][component]
  std::vector<double> by_initial_state;  // [trajectory][time][component][component of u0]
  std::vector<double> by_parameter;      // [trajectory][time][component][parameter], of the trajectory's own
  // Where each trajectory ended: at its terminal event, or at its end time, whose derivative is zero. Derivatives are
  // NaN of one that failed. The time itself is in its record.
  std::vector<double> end_states;                  // [trajectory][component]
  std::vector<double> end_state_by_initial_state;  // [trajectory][component][component of u0]
  std::vector<double> end_state_by_parameter;      // [trajectory][component][parameter]
  std::vector<double> end_time_by_initial_state;   // [trajectory][component of u0]
  std::vector<double> end_time_by_parameter;       // [trajectory][parameter]
  std::vector<TrajectoryRecord> records;
};

// Exact derivatives of what was computed, accepted steps taken as constants (docs/adjoint.md); states have the bits of
// solve(). Every stage's Jacobian is formed, n components by n + m columns: for a few of each. For the derivative of
// one loss by many numbers, or by weights, use solve_with_gradients(). Throws Error as that does.
Sensitivities solve_with_sensitivities(const Problem& problem, const Options& options = {},
                                       const RunControl& control = {});

}  // namespace lockstep::ode

// Forward sensitivities: how every saved state varies with the initial state and the parameters.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/core/run_control.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"
#include "lockstep/ode/unresolved_derivatives.h"

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
  std::optional<UnresolvedDerivatives> unresolved;  // found: steps were unstable for derivatives, which are wrong
};

// Exact derivatives of what was computed, accepted steps taken as constants (docs/adjoint.md); states have the bits of
// solve(). n components by n + m columns are carried along: for a few of each. For the derivative of one loss by many
// numbers, or by weights, use solve_with_gradients(). Throws Error as that does.
Sensitivities solve_with_sensitivities(const Problem& problem, const Options& options = {},
                                       const RunControl& control = {});

// Along which derivatives are wanted.
struct Directions {
  static constexpr std::size_t kNoParameter = ~std::size_t(0);
  // [direction]: the parameter that grows by 1, of which kNoParameter is none.
  std::vector<std::size_t> parameters;
  // By how much the initial states change: [trajectory][component][direction], or [component][direction] for all of
  // them; empty: not at all.
  std::vector<double> initial_states;

  std::size_t count() const { return parameters.size(); }
  // What derivatives by parameters make of a direction.
  double along(std::size_t direction, std::span<const double> by_parameter) const {
    return parameters[direction] == kNoParameter ? 0.0 : by_parameter[parameters[direction]];
  }
};

struct DirectionalDerivatives {
  std::vector<double> states;        // [trajectory][time][component]
  std::vector<double> by_direction;  // [trajectory][time][component][direction]
  std::vector<TrajectoryRecord> records;
  std::optional<UnresolvedDerivatives> unresolved;  // as Sensitivities have it
};

// As solve_with_sensitivities(), along some directions alone: what these ask of time and memory grows as their number,
// not as that of all numbers that a solve begins with. Throws Error (invalid_argument) too for directions that are not
// the problem's.
DirectionalDerivatives solve_along(const Problem& problem, const Directions& directions, const Options& options = {},
                                   const RunControl& control = {});

}  // namespace lockstep::ode

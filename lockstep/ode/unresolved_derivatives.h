// Derivatives that a solve's steps are too long for, while its states show nothing of it.
#pragma once

#include <cstddef>

namespace lockstep::ode {

// Error control looks at states. What is not in them, as at rest or where fast modes have decayed, it does not see, and
// explicit steps go beyond stability, where derivatives grow with every step (docs/adjoint.md, "Stiff trajectories, and
// trajectories at rest").
struct UnresolvedDerivatives {
  std::size_t trajectory = 0;
  double t = 0, h = 0;     // the step whose local error of a derivative was largest
  double error = 0;        // that, relative to the largest that the derivative ever is; above kMostError
  double stable_step = 0;  // greater than 0: steps no longer than this (Options::max_step, or dt) are stable

  // Steps that states do without an error of more than 1e-2 leave derivatives as good; these are no numbers at all.
  static constexpr double kMostError = 0.1;
};

}  // namespace lockstep::ode

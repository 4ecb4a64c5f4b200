// Whether an ensemble's steps are too long for derivatives, and how long they may be.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "lockstep/core/run_control.h"
#include "lockstep/ode/cpu/differentiable_rhs.h"
#include "lockstep/ode/cpu/step_record.h"
#include "lockstep/ode/detail/gradient_engine.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/unresolved_derivatives.h"

namespace lockstep::ode::cpu {

// Of all trajectories those with the longest steps. Several threads offer theirs.
template <class T>
class LongSteps {
 public:
  static constexpr std::size_t kMost = kTileLanes / LongStep<T>::kOfATrajectory;

  // Of a trajectory, the longest first; each trajectory once.
  void offer(const LongStep<T>* steps);
  void clear() { steps_.clear(); }
  // Those of a trajectory side by side; trajectories with the longest steps first, of equal ones the earlier.
  const std::vector<LongStep<T>>& steps() const { return steps_; }

 private:
  std::mutex mutex_;
  std::vector<LongStep<T>> steps_;
};

// Looks at these steps, and where one of them is unstable carries derivatives along its trajectory. Takes a few
// transposes of one tile, and in that case some solves of one tile. None with a linearly implicit method, and none with
// fixed steps of a method that does not estimate errors. `common` as AdjointTile::forward() takes them; `rhs` is at the
// weights of the solve.
template <class T>
std::optional<UnresolvedDerivatives> find_unresolved(const Problem& problem, const Options& options,
                                                     const DifferentiableRhs<T>& rhs, CpuTarget target,
                                                     const detail::CommonSteps& common, const LongSteps<T>& longest,
                                                     const RunControl& control);

// The same of a trajectory whose derivatives are known to have this error.
template <class T>
UnresolvedDerivatives describe_unresolved(const Problem& problem, const Options& options,
                                          const DifferentiableRhs<T>& rhs, CpuTarget target,
                                          const detail::CommonSteps& common, std::size_t trajectory,
                                          const LocalError& error, const RunControl& control);

}  // namespace lockstep::ode::cpu

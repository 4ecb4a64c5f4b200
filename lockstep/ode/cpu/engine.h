// The CPU engine: whole solves run inside a tile while it sits in L1; lanes that finish take the next trajectory.
#pragma once

#include <vector>

#include "lockstep/core/run_control.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode::cpu {

// What the engine settled before it starts.
struct EnginePlan {
  CpuTarget target;
  int threads;
};
EnginePlan plan(const Problem& problem, const Options& options);

// Advances a validated problem. Per-trajectory or fixed control; T is the state's number type. Counts only in the
// summary.
template <class T>
Summary advance_each(const Problem& problem, const Options& options, const EnginePlan& plan, SolutionSink& sink,
                     const RunControl& control);

// The same with one step size for all trajectories: the largest error decides. All spans are equal. Where `accepted` is
// not null it is given the steps. `rhs` stands in for the problem's own when it is not null, with its Jacobian where
// the method needs one.
template <class T>
Summary advance_together(const Problem& problem, const Options& options, const EnginePlan& plan, SolutionSink& sink,
                         const RunControl& control, std::vector<AcceptedStep>* accepted = nullptr,
                         std::shared_ptr<const TileFunction<T>> rhs = nullptr,
                         std::shared_ptr<const JacobianTile<T>> jacobian = nullptr);

}  // namespace lockstep::ode::cpu

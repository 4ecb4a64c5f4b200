// The engine cuda_gemm, for wide nets: trajectories are columns of matrices, each round evaluates all of them by one
// matrix product a layer, and a kernel takes each trajectory on to its next evaluation. The steps are those of every
// engine; the products are cuBLASLt's, whose sums have an order of their own, so that results carry no promise about
// bits.
#pragma once

#include <cstddef>

#include "lockstep/core/run_control.h"
#include "lockstep/ode/cuda/gemm/gemm_runtime.h"
#include "lockstep/ode/cuda/runtime.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode::cuda {

struct GemmTarget {
  Runtime* runtime = nullptr;
  GemmRuntime* gemm = nullptr;
  int device = 0;
  std::size_t memory_budget = std::size_t{4} << 30;  // bytes on the device, and less pinned on the host
  std::size_t most_columns = 16384;                  // trajectories on their way at once
  std::size_t least_columns = 256;                   // below that a smaller product is no faster
};

// Advances a validated problem; T is the state's number type. Counts only in the summary, and what ran. A batch, or the
// number of columns, that does not fit is halved until it does. Throws Error (unsupported) where this engine cannot run
// the problem and where the device fails.
template <class T>
Summary advance_gemm(const Problem& problem, const Options& options, const GemmTarget& target, SolutionSink& sink,
                     const RunControl& control);

}  // namespace lockstep::ode::cuda

// Advances an ensemble from its initial states to its end times.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/core/run_control.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {

// What happened, over all trajectories.
struct Summary {
  std::array<std::size_t, kStatusCount> count_of{};  // trajectories by status
  std::int64_t accepted = 0;
  std::int64_t rejected = 0;
  std::int64_t evaluations = 0;
  double seconds = 0;      // wall time of the solve, writing included
  std::string engine;      // "cpu", "cuda_fused", "cuda_gemm", or "cpu + " one of them
  std::string device;      // the GPUs' names, empty without
  std::string reason;      // why that engine
  std::string cpu_target;  // "avx512"
  int threads = 0;
  std::string kernel;  // what the right-hand side was lowered to
  bool cancelled = false;

  void add(const TrajectoryRecord& record);
  void add(const Summary& part);  // counts only
};

// Throws Error (invalid_argument, unsupported) before any work is done; numerical trouble is a trajectory's status.
// When control.cancel is requested, the trajectories not yet finished keep Status::cancelled.
Solution solve(const Problem& problem, const Options& options = {}, const RunControl& control = {});

// The same, handing finished blocks to a sink (a file). Exceptions thrown by the sink stop the solve and pass through.
// Blocks that were not finished when the solve was cancelled are committed too, their open trajectories marked.
Summary solve(const Problem& problem, const Options& options, SolutionSink& sink, const RunControl& control = {});

// Throws what solve() would throw for options.device, engine and matrix_precision, before files are made and memory is
// taken.
void require_devices(const Problem& problem, const Options& options);

// What solve() would do, and why.
struct Explanation {
  std::string engine;
  std::string cpu_target;
  int threads = 0;
  std::string method;
  std::string kernel;
  double predicted_seconds = 0;
  double evaluation_seconds = 0;     // of the right-hand side for one trajectory, measured here
  double steps_per_trajectory = 0;   // counted where the step is fixed, else from a pilot solve of a sample
  std::vector<std::string> reasons;  // sentences for people
};
Explanation explain(const Problem& problem, const Options& options = {});

}  // namespace lockstep::ode

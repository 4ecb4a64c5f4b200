// The engine cuda_fused: one launch advances a batch of trajectories through their whole spans, a thread each; batches
// follow one another through a budget of device memory while the results of earlier ones are handed to the sink.
#pragma once

#include <cstddef>
#include <string>

#include "lockstep/core/run_control.h"
#include "lockstep/ode/cuda/runtime.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode::cuda {

// Bytes that each of so many devices may take on itself, and pinned on the host: 2 GiB, or together a quarter of the
// host's memory where that is less.
std::size_t memory_budget(int devices);

struct DeviceTarget {
  Runtime* runtime = nullptr;
  int device = 0;
  std::size_t memory_budget = std::size_t{2} << 30;  // bytes on the device, and as much pinned on the host
};

// Advances a validated problem; T is the state's number type. Counts only in the summary, and what ran. Halves a batch
// that does not fit until it does; the bits do not depend on that. Throws Error (unsupported) where the kernels cannot
// run the problem and where the device fails, naming the kernel.
template <class T>
Summary advance(const Problem& problem, const Options& options, const DeviceTarget& target, SolutionSink& sink,
                const RunControl& control);

// Throws a device's failure as Error (unsupported).
[[noreturn]] void refuse(const Fault& fault, const std::string& remedy);

}  // namespace lockstep::ode::cuda

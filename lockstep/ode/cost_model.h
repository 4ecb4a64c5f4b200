// How long a solve takes on each engine, from figures that are built in: a latency, then work over throughput. Good for
// the choice between engines, where they differ by factors; not a promise.
#pragma once

#include <cstddef>

#include "lockstep/core/precision.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/ode/cuda/runtime.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode {

// What a solve has to do.
struct Work {
  double trajectories = 0;
  double steps = 0;         // of one trajectory
  double operations = 0;    // of one step: about as many as fused multiply-adds would take the time
  double output_bytes = 0;  // of one trajectory
  Precision precision = Precision::f32;
};

// `steps`: of a trajectory where known (a pilot's), else counted for fixed steps and guessed for adaptive ones.
Work estimate_work(const Problem& problem, const Options& options, double steps = 0);

double predict_cpu_seconds(const Work& work, CpuTarget target, int threads);
double predict_cuda_seconds(const Work& work, const cuda::DeviceInfo& device);

// Below this much time on the CPU no GPU is asked for: waking one takes longer.
inline constexpr double kLeastSecondsForCuda = 0.2;

}  // namespace lockstep::ode

// Who runs which trajectories: options.device put to work, by predicted times where it is automatic.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/ode/device_choice.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode::detail {

struct DevicePart {
  DeviceShare::Kind kind;
  int device;
  std::size_t first, count;                       // trajectories; those of a CUDA device start at a multiple of a tile
  EngineChoice engine = EngineChoice::automatic;  // of a CUDA device: which
};

struct DevicePlan {
  std::vector<DevicePart> parts;  // in order; together all trajectories
  std::string engine;             // "cpu", "cuda_fused", "cuda_gemm", "cpu + cuda_fused"
  std::string device;             // the GPUs' names, empty without
  std::string reason;             // why, for people and for the file
};

// `steps` of a trajectory, else counted or guessed as by estimate_work(): solve() gives none, so that its choice is the
// same every time. Throws Error (unsupported) where options.device names a CUDA device that is not
// there or cannot run the problem, and where options.matrix_precision or engine takes a GPU and none can be had.
DevicePlan plan_devices(const Problem& problem, const Options& options, double steps = 0);

}  // namespace lockstep::ode::detail

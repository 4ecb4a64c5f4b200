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
  std::size_t first, count;  // trajectories; those of a CUDA device start at a multiple of a tile
};

struct DevicePlan {
  std::vector<DevicePart> parts;  // in order; together all trajectories
  std::string engine;             // "cpu", "cuda_fused", "cpu + cuda_fused"
  std::string device;             // the GPUs' names, empty without
  std::string reason;             // why, for people and for the file
};

// `steps` of a trajectory, where known. Throws Error (unsupported) where options.device names a CUDA device that is not
// there or cannot run the problem.
DevicePlan plan_devices(const Problem& problem, const Options& options, double steps = 0);

// The trajectories [first, first + count) as a problem of their own.
Problem slice(const Problem& problem, std::size_t first, std::size_t count);

}  // namespace lockstep::ode::detail

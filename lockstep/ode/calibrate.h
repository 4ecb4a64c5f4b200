// Measures this machine for the cost model: a few short solves on each instruction set and on each CUDA device.
#pragma once

#include <cstddef>

#include "lockstep/core/run_control.h"
#include "lockstep/ode/calibration.h"

namespace lockstep::ode {

struct CalibrateOptions {
  double seconds = 0.05;                     // of each measurement on the CPU: there are four an instruction set
  std::size_t cuda_trajectories = 1u << 19;  // enough to fill a card,
  int cuda_steps = 1000;                     // for so many steps
};

// Takes a few seconds; other programs that run meanwhile make the figures slower than the machine is. Devices that are
// missing or fail are left out. Throws Error (cancelled) when control.cancel is requested.
Calibration calibrate(const CalibrateOptions& options = {}, const RunControl& control = {});

}  // namespace lockstep::ode

// Steps compiled in one piece with a built-in system, its stages in registers: for right-hand sides that cost less than
// the integrator's own work. The same bits as the general kernels.
#pragma once

#include <string_view>

#include "lockstep/ode/cpu/tile_kernels.h"

namespace lockstep::ode::cpu {

template <class T>
struct InlinedKernels {
  // As TileKernels::attempt. Stores the inner stages only where settings.keep_stages.
  void (*attempt)(TileState<T>&, const StepSettings<T>&);
  // propose, attempt, decide and advance in one, without leaving the registers: for adaptive float64 solves with
  // nothing to interpolate; y is then the state at t_new where the step was accepted. Null for float32.
  void (*whole_step)(TileState<T>&, const StepSettings<T>&);
  // `count` fixed steps at once, none of them a lane's last and none with a save point: y, k_1, t and step_index move.
  // Returns false, having changed nothing, if a state on the way is not finite.
  bool (*run_fixed)(TileState<T>&, const StepSettings<T>&, int count);
};

// Null where the pair has not been compiled.
template <class T>
const InlinedKernels<T>* inlined_kernels(std::string_view system, std::string_view method, CpuTarget target);

}  // namespace lockstep::ode::cpu

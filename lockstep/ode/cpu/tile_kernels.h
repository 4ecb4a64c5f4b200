// The vector work of a step on a tile, compiled for each instruction set.
#pragma once

#include "lockstep/kernels/cpu_target.h"
#include "lockstep/ode/cpu/tile_state.h"

namespace lockstep::ode::cpu {

template <class T>
struct TileKernels {
  using State = TileState<T>;
  using Settings = StepSettings<T>;

  // k_1 = f(t_stage, y), and for adaptive control the first step h. error_squared is 0, or NaN where y or k_1 is not
  // finite.
  void (*start)(State&, const Settings&);
  // Chooses h_try, t_new and `last` for every lane.
  void (*propose)(State&, const Settings&);
  // Stages 2 .. s of the proposed step: k, y1, and error_squared (NaN where y1 is not finite).
  void (*attempt)(State&, const Settings&);
  // Accepts or rejects: accepted, stuck, save_due, next h. Does not move the state.
  void (*decide)(State&, const Settings&);
  // Stages that only the interpolant needs.
  void (*complete_interpolant)(State&, const Settings&);
  // scratch = the state at theta[lane] of the step; y1 itself where theta is 1.
  void (*interpolate)(State&, const Settings&);
  // scratch = about the state at the middle of the step, t_stage; from its ends alone.
  void (*estimate_middle)(State&, const Settings&);
  // Lanes of `moved` go to t_new: y = y1, k_1 = k_s.
  void (*advance)(State&, const Settings&, LaneMask moved);
  // k_1 = f(t_stage, y) in the lanes of `renewed`.
  void (*renew)(State&, const Settings&, LaneMask renewed);
};

template <class T>
const TileKernels<T>& tile_kernels(CpuTarget target);

}  // namespace lockstep::ode::cpu

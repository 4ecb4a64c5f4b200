// The built-in systems on SIMD lanes: lockstep::HWY_NAMESPACE::systems::Lorenz::evaluate<L> for L = HwyLane<D>.
// Include like hwy_lane-inl.h: after lane/targets.h and hwy/foreach_target.h, outside any namespace.
#if defined(LOCKSTEP_ODE_SYSTEMS_SYSTEMS_HWY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_ODE_SYSTEMS_SYSTEMS_HWY_INL_H_
#undef LOCKSTEP_ODE_SYSTEMS_SYSTEMS_HWY_INL_H_
#else
#define LOCKSTEP_ODE_SYSTEMS_SYSTEMS_HWY_INL_H_
#endif

#include <string>
#include <vector>

#include "lockstep/kernels/lane/hwy_lane-inl.h"
#include "lockstep/kernels/lane/scalar_lane.h"
#include "lockstep/kernels/math/math_hwy-inl.h"
#include "lockstep/ode/system_info.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace systems {
using ode::SystemInfo;
#define LOCKSTEP_LANE_FN HWY_INLINE
#include "lockstep/ode/systems/systems_bodies-inl.h"
#undef LOCKSTEP_LANE_FN
}  // namespace systems
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target

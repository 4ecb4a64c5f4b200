// Elementary functions and activations on SIMD lanes: templates over HwyLane<D> in lockstep::HWY_NAMESPACE.
// Include like hwy_lane-inl.h: after lane/targets.h and hwy/foreach_target.h, outside any namespace.
// The bodies are included once a target, inside its HWY_BEFORE_NAMESPACE region, so that intrinsics can be inlined.
#if defined(LOCKSTEP_KERNELS_MATH_MATH_HWY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_MATH_MATH_HWY_INL_H_
#undef LOCKSTEP_KERNELS_MATH_MATH_HWY_INL_H_
#else
#define LOCKSTEP_KERNELS_MATH_MATH_HWY_INL_H_
#endif

#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/lane/hwy_lane-inl.h"
#include "lockstep/kernels/math/format.h"
#include "lockstep/kernels/math/reduce_pi.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
#define LOCKSTEP_LANE_FN HWY_INLINE
#include "lockstep/kernels/math/math_bodies-inl.h"
#undef LOCKSTEP_LANE_FN
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target

// The step arithmetic of numerics-inl.h on SIMD lanes. Include like hwy_lane-inl.h.
#if defined(LOCKSTEP_ODE_CPU_LANE_NUMERICS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_ODE_CPU_LANE_NUMERICS_INL_H_
#undef LOCKSTEP_ODE_CPU_LANE_NUMERICS_INL_H_
#else
#define LOCKSTEP_ODE_CPU_LANE_NUMERICS_INL_H_
#endif

#include "lockstep/kernels/math/math_hwy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

// The float32 lanes that stand beside lanes of float64.
template <class LD>
struct Float32Lane;
template <class D>
struct Float32Lane<HwyLane<D>> {
  using D32 = hn::Rebind<float, D>;
  using L = HwyLane<D32>;
  static HWY_INLINE typename L::V down(hn::Vec<D> x) { return hn::DemoteTo(D32(), x); }
  static HWY_INLINE hn::Vec<D> up(typename L::V x) { return hn::PromoteTo(D(), x); }
};

#define LOCKSTEP_LANE_FN HWY_INLINE
#include "lockstep/ode/numerics-inl.h"
#undef LOCKSTEP_LANE_FN

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target

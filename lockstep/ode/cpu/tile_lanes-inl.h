// Small vector pieces that the kernels on a tile share. Include like hwy_lane-inl.h.
#if defined(LOCKSTEP_ODE_CPU_TILE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_ODE_CPU_TILE_LANES_INL_H_
#undef LOCKSTEP_ODE_CPU_TILE_LANES_INL_H_
#else
#define LOCKSTEP_ODE_CPU_TILE_LANES_INL_H_
#endif

#include "lockstep/ode/cpu/lane_numerics-inl.h"
#include "lockstep/ode/cpu/tile_state.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

using ode::cpu::LaneMask;
using ode::cpu::StepSettings;
using ode::cpu::TileState;

using DoubleTag = hn::ScalableTag<double>;
using LD = HwyLane<DoubleTag>;

// Which lanes of a mask that starts at lane `first`, as bits of a LaneMask, and back.
template <class D>
HWY_INLINE LaneMask mask_bits(D d, hn::Mask<D> mask, int first) {
  uint8_t bytes[8] = {};
  hn::StoreMaskBits(d, mask, bytes);
  LaneMask bits;
  __builtin_memcpy(&bits, bytes, sizeof bits);
  return bits << first;
}
template <class D>
HWY_INLINE hn::Mask<D> lanes_of(D d, LaneMask bits, int first) {
  uint8_t bytes[8] = {};
  bits >>= first;
  __builtin_memcpy(bytes, &bits, sizeof bits);
  return hn::LoadMaskBits(d, bytes);
}
HWY_INLINE LaneMask active(int lanes) { return lanes == 32 ? ~LaneMask{0} : (LaneMask{1} << lanes) - 1; }

// float64 lanes as numbers of the state.
template <class T>
HWY_INLINE const T* narrow(const double* in, T* out, int lanes) {
  if constexpr (sizeof(T) == 8) {
    (void)out, (void)lanes;
    return in;
  } else {
    const DoubleTag d;
    for (int v = 0; v < lanes; v += static_cast<int>(hn::Lanes(d))) {
      const hn::Rebind<float, DoubleTag> d32;
      hn::Store(hn::DemoteTo(d32, hn::Load(d, in + v)), d32, out + v);
    }
    return out;
  }
}
template <class T>
HWY_INLINE hn::Vec<DoubleTag> widen(const T* in) {
  if constexpr (sizeof(T) == 8) {
    return hn::Load(DoubleTag(), in);
  } else {
    return hn::PromoteTo(DoubleTag(), hn::Load(hn::Rebind<float, DoubleTag>(), in));
  }
}

// error_squared from sums of squares over components [lane]; NaN where a check is.
template <class T, bool has_error3>
HWY_INLINE void finish_error(TileState<T>& s, const T* sums, const T* sums3, const T* checks) {
  const DoubleTag d;
  const auto over_n = hn::Set(d, 1.0 / static_cast<double>(s.components));
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d))) {
    auto square = widen(sums + v);
    if constexpr (has_error3) square = combine_errors<LD>(square, widen(sums3 + v));
    hn::Store(LD::fma(square, over_n, widen(checks + v)), d, s.error_squared + v);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target

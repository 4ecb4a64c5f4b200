// Small vector pieces that the kernels on a tile share. Include like hwy_lane-inl.h.
#if defined(LOCKSTEP_ODE_CPU_TILE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_ODE_CPU_TILE_LANES_INL_H_
#undef LOCKSTEP_ODE_CPU_TILE_LANES_INL_H_
#else
#define LOCKSTEP_ODE_CPU_TILE_LANES_INL_H_
#endif

#include <type_traits>

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
  // Read back no more than was stored: a wider load would wait for the store to leave the core.
  using Bits = std::conditional_t<(hn::MaxLanes(D()) > 8), uint16_t, uint8_t>;
  uint8_t bytes[8];
  hn::StoreMaskBits(d, mask, bytes);
  Bits bits;
  __builtin_memcpy(&bits, bytes, sizeof bits);
  return static_cast<LaneMask>(bits) << first;
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

// What an attempt came to, gathered over the registers of a tile.
struct StepMasks {
  LaneMask accepted = 0, stuck = 0, save_due = 0;

  HWY_INLINE void add(int v, hn::Mask<DoubleTag> accept, hn::Mask<DoubleTag> is_stuck, hn::Mask<DoubleTag> saves) {
    const DoubleTag d;
    accepted |= mask_bits(d, accept, v);
    stuck |= mask_bits(d, is_stuck, v);
    save_due |= mask_bits(d, saves, v);
  }
  template <class T>
  HWY_INLINE void store(TileState<T>& s) const {
    const LaneMask wanted = active(s.lanes);
    s.accepted = accepted & wanted;
    s.after_rejection = ~accepted & wanted;
    s.stuck = stuck & wanted;
    s.save_due = save_due & accepted & wanted;
  }
};

HWY_INLINE hn::Mask<DoubleTag> save_reached(hn::Vec<DoubleTag> t_new, hn::Vec<DoubleTag> next_save,
                                            hn::Vec<DoubleTag> h) {
  return LD::le(LD::zero(), LD::mul(LD::sub(t_new, next_save), h));
}

// Accepts or rejects the lanes from v on and stores their next step. Returns the accepted ones.
template <class T>
HWY_INLINE hn::Mask<DoubleTag> decide_lanes(TileState<T>& s, const StepSettings<T>& settings, int v,
                                            hn::Vec<DoubleTag> error_squared, hn::Vec<DoubleTag> t,
                                            hn::Vec<DoubleTag> t_end, hn::Vec<DoubleTag> h_try,
                                            hn::Vec<DoubleTag> t_new, StepMasks& masks) {
  const DoubleTag d;
  const auto log_error = hn::Load(d, s.log_error + v);
  const auto step = decide_step<LD>(error_squared, h_try, log_error, lanes_of(d, s.after_rejection, v), settings.beta1,
                                    settings.beta2);
  hn::Store(step.h_next, d, s.h + v);
  hn::Store(LD::select(step.accept, step.log_error, log_error), d, s.log_error + v);
  const auto too_small = LD::le(LD::abs(step.h_next), smallest_step<LD>(t, t_end));
  masks.add(v, step.accept, LD::both(LD::negate(step.accept), too_small),
            save_reached(t_new, hn::Load(d, s.next_save + v), h_try));
  return step.accept;
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target

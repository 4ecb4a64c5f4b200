// The step arithmetic of numerics-inl.h on SIMD lanes. Include like hwy_lane-inl.h.
#if defined(LOCKSTEP_ODE_CPU_LANE_NUMERICS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_ODE_CPU_LANE_NUMERICS_INL_H_
#undef LOCKSTEP_ODE_CPU_LANE_NUMERICS_INL_H_
#else
#define LOCKSTEP_ODE_CPU_LANE_NUMERICS_INL_H_
#endif

#include <type_traits>

#include "lockstep/kernels/lane/lane_group-inl.h"
#include "lockstep/kernels/math/math_hwy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

// Which lanes of a mask are set, as bits, and back.
template <class D>
HWY_INLINE uint32_t mask_bits(D d, hn::Mask<D> mask) {
  // Read back no more than was stored: a wider load would wait for the store to leave the core.
  using Bits = std::conditional_t<(hn::MaxLanes(D()) > 8), uint16_t, uint8_t>;
  uint8_t bytes[8];
  hn::StoreMaskBits(d, mask, bytes);
  Bits bits;
  __builtin_memcpy(&bits, bytes, sizeof bits);
  return bits;
}
template <class D>
HWY_INLINE hn::Mask<D> lanes_of(D d, uint32_t bits) {
  uint8_t bytes[8] = {};
  __builtin_memcpy(bytes, &bits, sizeof bits);
  return hn::LoadMaskBits(d, bytes);
}

// The float32 lanes that stand beside lanes of float64.
template <class LD>
struct Float32Lane;
template <class D>
struct Float32Lane<HwyLane<D>> {
  using D32 = hn::Rebind<float, D>;
  using L = HwyLane<D32>;
  static HWY_INLINE typename L::V down(hn::Vec<D> x) { return hn::DemoteTo(D32(), x); }
  static HWY_INLINE hn::Vec<D> up(typename L::V x) { return hn::PromoteTo(D(), x); }
  static HWY_INLINE typename L::M mask(hn::Mask<D> m) { return lanes_of(D32(), mask_bits(D(), m)); }
};

// Those of a group of registers: where there are several, two of them make one whole register of float32.
template <class D, size_t kCount>
struct Float32Lane<LaneGroup<D, kCount>> {
  using LD = LaneGroup<D, kCount>;
  using Half = hn::Rebind<float, D>;
  static constexpr size_t kJoined = kCount == 1 ? 1 : 2;
  static_assert(kCount % kJoined == 0);
  using D32 = std::conditional_t<kJoined == 1, Half, hn::Repartition<float, D>>;
  static constexpr int kRegisters = kCount / kJoined;
  using L = LaneGroup<D32, kRegisters>;

  static HWY_INLINE typename L::V down(typename LD::V x) {
    typename L::V out;
    if constexpr (kJoined == 1) {
      out.each[0] = hn::DemoteTo(D32(), x.each[0]);
    } else {
#if HWY_TARGET != HWY_SCALAR  // whose registers have no halves
      for (size_t i = 0; i < kCount / 2; ++i) {
        out.each[i] = hn::Combine(D32(), hn::DemoteTo(Half(), x.each[2 * i + 1]), hn::DemoteTo(Half(), x.each[2 * i]));
      }
#endif
    }
    return out;
  }
  static HWY_INLINE typename LD::V up(typename L::V x) {
    typename LD::V out;
    if constexpr (kJoined == 1) {
      out.each[0] = hn::PromoteTo(D(), x.each[0]);
    } else {
#if HWY_TARGET != HWY_SCALAR
      for (size_t i = 0; i < kCount / 2; ++i) {
        out.each[2 * i] = hn::PromoteTo(D(), hn::LowerHalf(Half(), x.each[i]));
        out.each[2 * i + 1] = hn::PromoteTo(D(), hn::UpperHalf(Half(), x.each[i]));
      }
#endif
    }
    return out;
  }
  static HWY_INLINE typename L::M mask(typename LD::M m) {
    typename L::M out;
    for (size_t i = 0; i < kRegisters; ++i) {
      uint32_t bits = mask_bits(D(), m.each[kJoined * i]);
      if constexpr (kJoined == 2) bits |= mask_bits(D(), m.each[2 * i + 1]) << hn::MaxLanes(D());
      out.each[i] = lanes_of(D32(), bits);
    }
    return out;
  }
};

#define LOCKSTEP_LANE_FN HWY_INLINE
#include "lockstep/ode/numerics-inl.h"
#undef LOCKSTEP_LANE_FN

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target

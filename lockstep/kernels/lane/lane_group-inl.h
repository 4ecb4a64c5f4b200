// Several registers side by side as one lane type: operations on independent registers alternate, so that a function's
// chain of dependent operations does not leave the arithmetic units idle. Include like hwy_lane-inl.h.
#if defined(LOCKSTEP_KERNELS_LANE_LANE_GROUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_LANE_LANE_GROUP_INL_H_
#undef LOCKSTEP_KERNELS_LANE_LANE_GROUP_INL_H_
#else
#define LOCKSTEP_KERNELS_LANE_LANE_GROUP_INL_H_
#endif

#include "lockstep/kernels/lane/hwy_lane-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

// HwyLane<D> over `kCount` registers: those of its operations that functions evaluated in groups use.
template <class D, size_t kCount>
struct LaneGroup {
  using One = HwyLane<D>;
  using T = typename One::T;
  static constexpr bool kLooksUpInOne = One::kLooksUpInOne;
  using TI = typename One::TI;
  template <class Element>
  struct Many {
    // GCC compiles an implicit one for the file's instruction set, and cannot inline NEON's constructors there.
    HWY_INLINE Many() {}
    Element each[kCount];
  };
  using V = Many<typename One::V>;
  using M = Many<typename One::M>;
  using I = Many<typename One::I>;

  static HWY_INLINE void store(V a, T* to) {
    _Pragma("GCC unroll 16") for (size_t i = 0; i < kCount; ++i) hn::Store(a.each[i], D(), to + i * hn::Lanes(D()));
  }

#define LOCKSTEP_EACH(Result, expression)                                                    \
  {                                                                                          \
    Result out;                                                                              \
    _Pragma("GCC unroll 16") for (size_t i = 0; i < kCount; ++i) out.each[i] = (expression); \
    return out;                                                                              \
  }
  // clang-format off
  static HWY_INLINE V load(const T* from) LOCKSTEP_EACH(V, hn::Load(D(), from + i * hn::Lanes(D())))
  static HWY_INLINE V set(T x) LOCKSTEP_EACH(V, One::set(x))
  static HWY_INLINE V zero() LOCKSTEP_EACH(V, One::zero())
  static HWY_INLINE V add(V a, V b) LOCKSTEP_EACH(V, One::add(a.each[i], b.each[i]))
  static HWY_INLINE V sub(V a, V b) LOCKSTEP_EACH(V, One::sub(a.each[i], b.each[i]))
  static HWY_INLINE V mul(V a, V b) LOCKSTEP_EACH(V, One::mul(a.each[i], b.each[i]))
  static HWY_INLINE V div(V a, V b) LOCKSTEP_EACH(V, One::div(a.each[i], b.each[i]))
  static HWY_INLINE V neg(V a) LOCKSTEP_EACH(V, One::neg(a.each[i]))
  static HWY_INLINE V abs(V a) LOCKSTEP_EACH(V, One::abs(a.each[i]))
  static HWY_INLINE V fma(V a, V b, V c) LOCKSTEP_EACH(V, One::fma(a.each[i], b.each[i], c.each[i]))
  static HWY_INLINE V nfma(V a, V b, V c) LOCKSTEP_EACH(V, One::nfma(a.each[i], b.each[i], c.each[i]))
  static HWY_INLINE V fms(V a, V b, V c) LOCKSTEP_EACH(V, One::fms(a.each[i], b.each[i], c.each[i]))
  static HWY_INLINE V min(V a, V b) LOCKSTEP_EACH(V, One::min(a.each[i], b.each[i]))
  static HWY_INLINE V max(V a, V b) LOCKSTEP_EACH(V, One::max(a.each[i], b.each[i]))
  static HWY_INLINE V copysign_to_abs(V a, V b) LOCKSTEP_EACH(V, One::copysign_to_abs(a.each[i], b.each[i]))
  static HWY_INLINE M eq(V a, V b) LOCKSTEP_EACH(M, One::eq(a.each[i], b.each[i]))
  static HWY_INLINE M lt(V a, V b) LOCKSTEP_EACH(M, One::lt(a.each[i], b.each[i]))
  static HWY_INLINE M le(V a, V b) LOCKSTEP_EACH(M, One::le(a.each[i], b.each[i]))
  static HWY_INLINE M both(M a, M b) LOCKSTEP_EACH(M, One::both(a.each[i], b.each[i]))
  static HWY_INLINE M negate(M a) LOCKSTEP_EACH(M, One::negate(a.each[i]))
  static HWY_INLINE V select(M m, V a, V b) LOCKSTEP_EACH(V, One::select(m.each[i], a.each[i], b.each[i]))
  static HWY_INLINE I bits(V a) LOCKSTEP_EACH(I, One::bits(a.each[i]))
  static HWY_INLINE I int_set(TI a) LOCKSTEP_EACH(I, One::int_set(a))
  static HWY_INLINE I int_add(I a, I b) LOCKSTEP_EACH(I, One::int_add(a.each[i], b.each[i]))
  static HWY_INLINE I int_sub(I a, I b) LOCKSTEP_EACH(I, One::int_sub(a.each[i], b.each[i]))
  static HWY_INLINE I int_and(I a, I b) LOCKSTEP_EACH(I, One::int_and(a.each[i], b.each[i]))
  static HWY_INLINE I int_or(I a, I b) LOCKSTEP_EACH(I, One::int_or(a.each[i], b.each[i]))
  static HWY_INLINE V from_bits(I a) LOCKSTEP_EACH(V, One::from_bits(a.each[i]))
  template <int k>
  static HWY_INLINE I shift_left(I a) LOCKSTEP_EACH(I, One::template shift_left<k>(a.each[i]))
  template <int k>
  static HWY_INLINE I shift_right_logical(I a) LOCKSTEP_EACH(I, One::template shift_right_logical<k>(a.each[i]))
  static HWY_INLINE V lookup16(const T* table, I a) LOCKSTEP_EACH(V, One::lookup16(table, a.each[i]))
  // clang-format on
#undef LOCKSTEP_EACH
};

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target

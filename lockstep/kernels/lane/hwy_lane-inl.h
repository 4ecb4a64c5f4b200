// Lane operations on a SIMD register through Highway; the same interface and bits as ScalarLane.
// Include after lane/targets.h and hwy/foreach_target.h, outside any namespace.
#if defined(LOCKSTEP_KERNELS_LANE_HWY_LANE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_LANE_HWY_LANE_INL_H_
#undef LOCKSTEP_KERNELS_LANE_HWY_LANE_INL_H_
#else
#define LOCKSTEP_KERNELS_LANE_HWY_LANE_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

#include "lockstep/kernels/lane/scalar_lane.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// D is a Highway tag of float or double: hn::ScalableTag<T> for whole registers.
template <class D>
struct HwyLane {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  using M = hn::Mask<D>;
  using DI = hn::RebindToSigned<D>;
  using TI = hn::TFromD<DI>;
  using I = hn::Vec<DI>;

  static HWY_INLINE V set(T x) { return hn::Set(D(), x); }
  static HWY_INLINE V zero() { return hn::Zero(D()); }
  static HWY_INLINE V add(V a, V b) { return hn::Add(a, b); }
  static HWY_INLINE V sub(V a, V b) { return hn::Sub(a, b); }
  static HWY_INLINE V mul(V a, V b) { return hn::Mul(a, b); }
  static HWY_INLINE V div(V a, V b) { return hn::Div(a, b); }
  static HWY_INLINE V neg(V a) { return hn::Neg(a); }
  static HWY_INLINE V sqrt(V a) { return hn::Sqrt(a); }
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  // By the sign bit, which copysign_to_abs takes as well: a register less.
  static HWY_INLINE V abs(V a) { return hn::AndNot(hn::SignBit(D()), a); }
#else
  static HWY_INLINE V abs(V a) { return hn::Abs(a); }
#endif
#if HWY_TARGET == HWY_SCALAR
  static HWY_INLINE V floor(V a) { return V(std::floor(a.raw)); }
  static HWY_INLINE V round(V a) { return V(std::rint(a.raw)); }
  static HWY_INLINE V fma(V a, V b, V c) { return V(std::fma(a.raw, b.raw, c.raw)); }
  static HWY_INLINE V nfma(V a, V b, V c) { return V(std::fma(-a.raw, b.raw, c.raw)); }
  static HWY_INLINE V fms(V a, V b, V c) { return V(std::fma(a.raw, b.raw, -c.raw)); }
  static HWY_INLINE V min(V a, V b) { return b.raw < a.raw ? b : a; }
  static HWY_INLINE V max(V a, V b) { return b.raw > a.raw ? b : a; }
#else
  static HWY_INLINE V floor(V a) { return hn::Floor(a); }
  static HWY_INLINE V round(V a) { return hn::Round(a); }  // halves to even
  static_assert(HWY_NATIVE_FMA, "a target that rounds a * b + c twice cannot keep the same bits");
  static HWY_INLINE V fma(V a, V b, V c) { return hn::MulAdd(a, b, c); }
  static HWY_INLINE V nfma(V a, V b, V c) { return hn::NegMulAdd(a, b, c); }
  static HWY_INLINE V fms(V a, V b, V c) { return hn::MulSub(a, b, c); }
#if HWY_ARCH_X86
  // MINPS and MAXPS return their second operand when the two compare equal or either is NaN.
  static HWY_INLINE V min(V a, V b) { return hn::Min(b, a); }
  static HWY_INLINE V max(V a, V b) { return hn::Max(b, a); }
#else
  static HWY_INLINE V min(V a, V b) { return hn::IfThenElse(hn::Lt(b, a), b, a); }
  static HWY_INLINE V max(V a, V b) { return hn::IfThenElse(hn::Lt(a, b), b, a); }
#endif
#endif
  static HWY_INLINE V copysign(V magnitude, V sign) { return hn::CopySign(magnitude, sign); }
#if HWY_TARGET == HWY_AVX3
  // Written over the magnitude; hn::CopySignToAbs writes over the sign bit, which then is copied each time.
  static HWY_INLINE V copysign_to_abs(V magnitude, V sign) { return hn::OrAnd(magnitude, hn::SignBit(D()), sign); }
#else
  static HWY_INLINE V copysign_to_abs(V magnitude, V sign) { return hn::CopySignToAbs(magnitude, sign); }
#endif

  static HWY_INLINE M lt(V a, V b) { return hn::Lt(a, b); }
  static HWY_INLINE M le(V a, V b) { return hn::Le(a, b); }
  static HWY_INLINE M eq(V a, V b) { return hn::Eq(a, b); }
  static HWY_INLINE M both(M a, M b) { return hn::And(a, b); }
  static HWY_INLINE M either(M a, M b) { return hn::Or(a, b); }
  static HWY_INLINE M negate(M a) { return hn::Not(a); }
  static HWY_INLINE V select(M condition, V yes, V no) { return hn::IfThenElse(condition, yes, no); }

  static HWY_INLINE bool any(M a) { return !hn::AllFalse(D(), a); }

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET <= HWY_AVX3
  // a 2^n for an integer n, rounded once, in one instruction.
  static constexpr bool kHasScale = true;
  static HWY_INLINE V scale(V a, V n) { return V{raw_scale(a.raw, n.raw)}; }
#else
  static constexpr bool kHasScale = false;
#endif

  // f of each lane, one after another: for rare cases.
  template <class F>
  static HWY_NOINLINE V map(V a, F f) {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(a, D(), lanes);
    for (size_t i = 0; i < hn::Lanes(D()); ++i) lanes[i] = f(lanes[i]);
    return hn::Load(D(), lanes);
  }

  static HWY_INLINE I bits(V a) { return hn::BitCast(DI(), a); }
  static HWY_INLINE V from_bits(I a) { return hn::BitCast(D(), a); }
  static HWY_INLINE I int_set(TI a) { return hn::Set(DI(), a); }
  static HWY_INLINE I int_add(I a, I b) { return hn::Add(a, b); }
  static HWY_INLINE I int_sub(I a, I b) { return hn::Sub(a, b); }
  static HWY_INLINE I int_and(I a, I b) { return hn::And(a, b); }
  static HWY_INLINE I int_or(I a, I b) { return hn::Or(a, b); }
  static HWY_INLINE I int_xor(I a, I b) { return hn::Xor(a, b); }
  template <int k>
  static HWY_INLINE I shift_left(I a) {
    return hn::ShiftLeft<k>(a);
  }
  template <int k>
  static HWY_INLINE I shift_right_logical(I a) {
    const hn::RebindToUnsigned<D> du;
    return hn::BitCast(DI(), hn::ShiftRight<k>(hn::BitCast(du, a)));
  }
  static HWY_INLINE M int_eq(I a, I b) { return hn::RebindMask(D(), hn::Eq(a, b)); }
  static HWY_INLINE M int_lt(I a, I b) { return hn::RebindMask(D(), hn::Lt(a, b)); }

  static HWY_INLINE V gather(const T* table, I i) { return hn::GatherIndex(D(), table, i); }

  // Whether lookup16 is one instruction.
  static constexpr bool kLooksUpInOne = HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_AVX3;
  // table[i mod 16] for each lane of a whole register; `table` is aligned to 64 bytes. For float32 only.
  static HWY_INLINE V lookup16(const T* table, I i) {
    static_assert(sizeof(T) == 4 && hn::MaxLanes(D()) == hn::MaxLanes(hn::ScalableTag<T>()));
#if HWY_TARGET == HWY_SCALAR
    return V(table[i.raw & 15]);
#elif HWY_TARGET == HWY_AVX2
    // Each permutation reads three bits of i; the fourth, as a sign, chooses between them.
    const __m256 low = _mm256_permutevar8x32_ps(_mm256_load_ps(table), i.raw);
    const __m256 high = _mm256_permutevar8x32_ps(_mm256_load_ps(table + 8), i.raw);
    const __m256i sign = _mm256_slli_epi32(i.raw, 28);
    __m256 entry;  // GCC would compare the sign with zero before blending by it
    asm("vblendvps %3, %2, %1, %0" : "=x"(entry) : "x"(low), "x"(high), "x"(sign));
    return V{entry};
#elif HWY_ARCH_X86
    return V{_mm512_permutexvar_ps(i.raw, _mm512_load_ps(table))};
#else
    // The four bytes of entry i begin at 4 i.
    const uint8x16x4_t bytes = vld1q_u8_x4(reinterpret_cast<const uint8_t*>(table));
    const uint32x4_t entry = vandq_u32(vreinterpretq_u32_s32(i.raw), vdupq_n_u32(15));
    const uint32x4_t at = vmlaq_u32(vdupq_n_u32(0x03020100), entry, vdupq_n_u32(0x04040404));
    return V(vreinterpretq_f32_u8(vqtbl4q_u8(bytes, vreinterpretq_u8_u32(at))));
#endif
  }

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET <= HWY_AVX3
 private:
  static HWY_INLINE __m512 raw_scale(__m512 a, __m512 n) { return _mm512_scalef_ps(a, n); }
  static HWY_INLINE __m512d raw_scale(__m512d a, __m512d n) { return _mm512_scalef_pd(a, n); }
  static HWY_INLINE __m256 raw_scale(__m256 a, __m256 n) { return _mm256_scalef_ps(a, n); }
  static HWY_INLINE __m256d raw_scale(__m256d a, __m256d n) { return _mm256_scalef_pd(a, n); }
  static HWY_INLINE __m128 raw_scale(__m128 a, __m128 n) { return _mm_scalef_ps(a, n); }
  static HWY_INLINE __m128d raw_scale(__m128d a, __m128d n) { return _mm_scalef_pd(a, n); }
#endif
};

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target

// Lane operations on plain numbers, for the host's scalar code and for CUDA threads: the reference that every vector
// implementation must match bit for bit. Each is one IEEE 754 operation, rounded once.
#pragma once

#ifndef __CUDACC_RTC__
#include <cmath>
#include <cstdint>
#include <cstring>
#endif

#ifdef __CUDACC__
#define LOCKSTEP_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define LOCKSTEP_HOST_DEVICE inline
#endif

namespace lockstep {

namespace detail {
template <class T>
struct IntOf;
template <>
struct IntOf<float> {
  using type = int32_t;
  using unsigned_type = uint32_t;
};
template <>
struct IntOf<double> {
  using type = int64_t;
  using unsigned_type = uint64_t;
};
}  // namespace detail

// The interface every lane type offers: T (number), V (lanes of T), M (mask), TI (integer of T's size), I (lanes of
// TI).
template <class Number>
struct ScalarLane {
  using T = Number;
  using V = T;
  using M = bool;
  using I = typename detail::IntOf<T>::type;
  using TI = I;
  using U = typename detail::IntOf<T>::unsigned_type;

  static LOCKSTEP_HOST_DEVICE V set(T x) { return x; }
  static LOCKSTEP_HOST_DEVICE V zero() { return T(0); }
  static LOCKSTEP_HOST_DEVICE V add(V a, V b) { return a + b; }
  static LOCKSTEP_HOST_DEVICE V sub(V a, V b) { return a - b; }
  static LOCKSTEP_HOST_DEVICE V mul(V a, V b) { return a * b; }
  static LOCKSTEP_HOST_DEVICE V div(V a, V b) { return a / b; }
#if defined(__clang__) && !defined(__CUDACC__)
  // Clang 14 takes a minus sign lightly where it was told to, whatever ieee_arithmetic.h says.
  static V neg(V a) { return a * V(-1); }
#else
  static LOCKSTEP_HOST_DEVICE V neg(V a) { return -a; }
#endif
#ifdef __CUDACC__
  static LOCKSTEP_HOST_DEVICE V sqrt(V a) { return ::sqrt(a); }
  static LOCKSTEP_HOST_DEVICE V abs(V a) { return ::fabs(a); }
  static LOCKSTEP_HOST_DEVICE V floor(V a) { return ::floor(a); }
  static LOCKSTEP_HOST_DEVICE V round(V a) { return ::rint(a); }
  static LOCKSTEP_HOST_DEVICE V fma(V a, V b, V c) { return ::fma(a, b, c); }
  static LOCKSTEP_HOST_DEVICE V copysign(V magnitude, V sign) { return ::copysign(magnitude, sign); }
#else
  static LOCKSTEP_HOST_DEVICE V sqrt(V a) { return std::sqrt(a); }
  static LOCKSTEP_HOST_DEVICE V abs(V a) { return std::fabs(a); }
  static LOCKSTEP_HOST_DEVICE V floor(V a) { return std::floor(a); }
  static LOCKSTEP_HOST_DEVICE V round(V a) { return std::rint(a); }               // halves to even
  static LOCKSTEP_HOST_DEVICE V fma(V a, V b, V c) { return std::fma(a, b, c); }  // a b + c
  static LOCKSTEP_HOST_DEVICE V copysign(V magnitude, V sign) { return std::copysign(magnitude, sign); }
#endif
  static LOCKSTEP_HOST_DEVICE V fms(V a, V b, V c) { return fma(a, b, neg(c)); }  // a b - c
  // As copysign, for a magnitude whose sign bit is already clear.
  static LOCKSTEP_HOST_DEVICE V copysign_to_abs(V magnitude, V sign) { return copysign(magnitude, sign); }
  static LOCKSTEP_HOST_DEVICE V nfma(V a, V b, V c) { return fma(neg(a), b, c); }  // c - a b
  // The smaller / larger; a when they compare equal or either is NaN (so NaN in a is kept, NaN in b dropped).
  static LOCKSTEP_HOST_DEVICE V min(V a, V b) { return b < a ? b : a; }
  static LOCKSTEP_HOST_DEVICE V max(V a, V b) { return b > a ? b : a; }

  // Comparisons are false when either side is NaN.
  static LOCKSTEP_HOST_DEVICE M lt(V a, V b) { return a < b; }
  static LOCKSTEP_HOST_DEVICE M le(V a, V b) { return a <= b; }
  static LOCKSTEP_HOST_DEVICE M eq(V a, V b) { return a == b; }
  static LOCKSTEP_HOST_DEVICE M both(M a, M b) { return a && b; }
  static LOCKSTEP_HOST_DEVICE M either(M a, M b) { return a || b; }
  static LOCKSTEP_HOST_DEVICE M negate(M a) { return !a; }
  static LOCKSTEP_HOST_DEVICE V select(M condition, V yes, V no) { return condition ? yes : no; }

  static LOCKSTEP_HOST_DEVICE bool any(M a) { return a; }
  // f of each lane, one after another: for rare cases.
  template <class F>
  static LOCKSTEP_HOST_DEVICE V map(V a, F f) {
    return f(a);
  }
  // Whether scale(a, n) = a 2^n is one instruction.
  static constexpr bool kHasScale = false;

  static LOCKSTEP_HOST_DEVICE I bits(V a) {
    I i;
    memcpy(&i, &a, sizeof a);
    return i;
  }
  static LOCKSTEP_HOST_DEVICE V from_bits(I a) {
    V v;
    memcpy(&v, &a, sizeof a);
    return v;
  }
  // Integers wrap around.
  static LOCKSTEP_HOST_DEVICE I int_set(I a) { return a; }
  static LOCKSTEP_HOST_DEVICE I int_add(I a, I b) { return I(U(a) + U(b)); }
  static LOCKSTEP_HOST_DEVICE I int_sub(I a, I b) { return I(U(a) - U(b)); }
  static LOCKSTEP_HOST_DEVICE I int_and(I a, I b) { return a & b; }
  static LOCKSTEP_HOST_DEVICE I int_or(I a, I b) { return a | b; }
  static LOCKSTEP_HOST_DEVICE I int_xor(I a, I b) { return a ^ b; }
  template <int k>
  static LOCKSTEP_HOST_DEVICE I shift_left(I a) {
    return I(U(a) << k);
  }
  template <int k>
  static LOCKSTEP_HOST_DEVICE I shift_right_logical(I a) {
    return I(U(a) >> k);
  }
  static LOCKSTEP_HOST_DEVICE M int_eq(I a, I b) { return a == b; }
  static LOCKSTEP_HOST_DEVICE M int_lt(I a, I b) { return a < b; }

  static LOCKSTEP_HOST_DEVICE V gather(const T* table, I i) { return table[i]; }

  static constexpr bool kLooksUpInOne = true;
  // table[i mod 16] for each lane; `table` is aligned to 64 bytes. For float32 only.
  static LOCKSTEP_HOST_DEVICE V lookup16(const T* table, I i) { return table[i & 15]; }
};

}  // namespace lockstep

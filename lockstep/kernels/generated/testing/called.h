// Functions for generated code to call, in tests: of one number 2 - a, of more of them also what the context holds, k:
// k - a + b and k - a + b - c. They leave nothing in any register that the convention lets them have.
#pragma once

#include <array>
#include <memory>

#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/generated/lane_program.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep::generated::testing {

// The same of one lane.
template <class T>
T called(LaneOp op, const void* context, T a, T b, T c) {
  if (op == LaneOp::function) return T(2) - a;
  const T sum = *static_cast<const T*>(context) - a + b;
  return op == LaneOp::function_of_two ? sum : sum - c;
}

using Codes = std::array<const void*, 3>;

#if defined(__x86_64__)

#define LOCKSTEP_SPOIL_GENERAL(r) asm volatile("mov $-1, %%" #r ::: #r)
#define LOCKSTEP_SPOIL_NARROW(n) asm volatile("vpcmpeqd %%ymm" #n ", %%ymm" #n ", %%ymm" #n ::: "xmm" #n)
#define LOCKSTEP_SPOIL_WIDE(n) asm volatile("vpternlogd $255, %%zmm" #n ", %%zmm" #n ", %%zmm" #n ::: "xmm" #n)
#define LOCKSTEP_SPOIL_FOUR(spoil, a, b, c, d) \
  spoil(a);                                    \
  spoil(b);                                    \
  spoil(c);                                    \
  spoil(d)
#define LOCKSTEP_SPOIL_SIXTEEN(spoil)                              \
  LOCKSTEP_SPOIL_FOUR(LOCKSTEP_SPOIL_GENERAL, rax, rcx, rdx, rsi); \
  LOCKSTEP_SPOIL_FOUR(LOCKSTEP_SPOIL_GENERAL, rdi, r8, r9, r10);   \
  LOCKSTEP_SPOIL_GENERAL(r11);                                     \
  LOCKSTEP_SPOIL_FOUR(spoil, 0, 1, 2, 3);                          \
  LOCKSTEP_SPOIL_FOUR(spoil, 4, 5, 6, 7);                          \
  LOCKSTEP_SPOIL_FOUR(spoil, 8, 9, 10, 11);                        \
  LOCKSTEP_SPOIL_FOUR(spoil, 12, 13, 14, 15)
#define LOCKSTEP_SPOIL_AVX2() LOCKSTEP_SPOIL_SIXTEEN(LOCKSTEP_SPOIL_NARROW)
#define LOCKSTEP_SPOIL_AVX512()                             \
  LOCKSTEP_SPOIL_SIXTEEN(LOCKSTEP_SPOIL_WIDE);              \
  LOCKSTEP_SPOIL_FOUR(LOCKSTEP_SPOIL_WIDE, 16, 17, 18, 19); \
  LOCKSTEP_SPOIL_FOUR(LOCKSTEP_SPOIL_WIDE, 20, 21, 22, 23); \
  LOCKSTEP_SPOIL_FOUR(LOCKSTEP_SPOIL_WIDE, 24, 25, 26, 27); \
  LOCKSTEP_SPOIL_FOUR(LOCKSTEP_SPOIL_WIDE, 28, 29, 30, 31); \
  asm volatile("kxnorw %%k1, %%k1, %%k1" ::: "k1")

#define LOCKSTEP_CALLED(name, instructions, Register, T, spoil)                                                      \
  struct name {                                                                                                      \
    __attribute__((target(instructions))) static Register one(const void*, Register a) {                             \
      const Register made = T(2) - a;                                                                                \
      spoil();                                                                                                       \
      return made;                                                                                                   \
    }                                                                                                                \
    __attribute__((target(instructions))) static Register two(const void* k, Register a, Register b) {               \
      const Register made = *static_cast<const T*>(k) - a + b;                                                       \
      spoil();                                                                                                       \
      return made;                                                                                                   \
    }                                                                                                                \
    __attribute__((target(instructions))) static Register three(const void* k, Register a, Register b, Register c) { \
      const Register made = *static_cast<const T*>(k) - a + b - c;                                                   \
      spoil();                                                                                                       \
      return made;                                                                                                   \
    }                                                                                                                \
    static Codes codes() {                                                                                           \
      return {reinterpret_cast<const void*>(one), reinterpret_cast<const void*>(two),                                \
              reinterpret_cast<const void*>(three)};                                                                 \
    }                                                                                                                \
  }
LOCKSTEP_CALLED(CalledAvx2F32, "avx2,fma", __m256, float, LOCKSTEP_SPOIL_AVX2);
LOCKSTEP_CALLED(CalledAvx2F64, "avx2,fma", __m256d, double, LOCKSTEP_SPOIL_AVX2);
LOCKSTEP_CALLED(CalledAvx512F32, "avx512f", __m512, float, LOCKSTEP_SPOIL_AVX512);
LOCKSTEP_CALLED(CalledAvx512F64, "avx512f", __m512d, double, LOCKSTEP_SPOIL_AVX512);

#undef LOCKSTEP_CALLED
#undef LOCKSTEP_SPOIL_AVX512
#undef LOCKSTEP_SPOIL_AVX2
#undef LOCKSTEP_SPOIL_SIXTEEN
#undef LOCKSTEP_SPOIL_FOUR
#undef LOCKSTEP_SPOIL_WIDE
#undef LOCKSTEP_SPOIL_NARROW
#undef LOCKSTEP_SPOIL_GENERAL

template <class T>
Codes codes_for(CpuTarget target) {
  if constexpr (sizeof(T) == 4) {
    return target == CpuTarget::avx512 ? CalledAvx512F32::codes() : CalledAvx2F32::codes();
  } else {
    return target == CpuTarget::avx512 ? CalledAvx512F64::codes() : CalledAvx2F64::codes();
  }
}
#else
template <class T>
Codes codes_for(CpuTarget) {
  return {};  // no code is generated that would call them
}
#endif

template <class T>
std::array<LaneFunction, 3> functions_for(CpuTarget target) {
  const Codes codes = codes_for<T>(target);
  return {LaneFunction{codes[0]},
          {codes[1], std::make_shared<const T>(T(0.75))},
          {codes[2], std::make_shared<const T>(T(-3))}};
}

}  // namespace lockstep::generated::testing

// Which of the two kinds of AVX-512 processor this is: Zen 4 and small Intel cores begin one 512-bit multiply-add a
// cycle, Zen 5 and Xeons two. No flag tells.
#include <algorithm>
#include <chrono>

#include "lockstep/kernels/mlp/detail/packed.h"

namespace lockstep::mlp {
namespace {

#if defined(__x86_64__)
#define LOCKSTEP_FMA(to) "vfmadd231ps %%zmm0, %%zmm0, %%zmm" #to "\n"
#define LOCKSTEP_THREE_FMA(a, b, c) LOCKSTEP_FMA(a) LOCKSTEP_FMA(b) LOCKSTEP_FMA(c)
// Nanoseconds of 512 rounds of multiply-adds of zeros.
#define LOCKSTEP_NANOSECONDS(fmas)                                                                                \
  [] {                                                                                                            \
    const auto start = std::chrono::steady_clock::now();                                                          \
    int rounds = 512;                                                                                             \
    asm volatile("vpxor %%xmm0, %%xmm0, %%xmm0\n 1:\n" fmas "dec %0\n jnz 1b\n vzeroupper"                        \
                 : "+r"(rounds)                                                                                   \
                 :                                                                                                \
                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
                   "xmm11", "xmm12");                                                                             \
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();            \
  }()

// One chain takes its latency a round, 4 cycles on all of them; twelve take 6 cycles in two pipes, 12 in one. The
// shortest of some tries: the first ones find the units asleep.
WidePipes measure() {
  double one = 1e9, twelve = 1e9;
  for (int i = 0; i < 20; ++i) {
    one = std::min(one, LOCKSTEP_NANOSECONDS(LOCKSTEP_FMA(1)));
    twelve = std::min(twelve, LOCKSTEP_NANOSECONDS(LOCKSTEP_THREE_FMA(1, 2, 3) LOCKSTEP_THREE_FMA(4, 5, 6)
                                                       LOCKSTEP_THREE_FMA(7, 8, 9) LOCKSTEP_THREE_FMA(10, 11, 12)));
  }
  if (twelve >= 2.25 * one) return WidePipes::one;
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") ? WidePipes::two_far : WidePipes::two;
}
#endif

}  // namespace

WidePipes wide_pipes([[maybe_unused]] CpuTarget target) {
#if defined(__x86_64__)
  if (target != CpuTarget::avx512) return WidePipes::one;
  static const WidePipes pipes = measure();
  return pipes;
#else
  return WidePipes::one;
#endif
}

}  // namespace lockstep::mlp

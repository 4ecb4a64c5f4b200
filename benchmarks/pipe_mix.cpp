// How fast the processor begins the instructions of a layer and of tanh when none waits for another: the bound that
// benchmarks/README.md quotes. Prints cycles of the fused multiply-add's clock; needs AVX-512.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

namespace {

using Clock = std::chrono::steady_clock;

alignas(64) std::array<float, 64> memory;

// Registers 0 to 23 are written in turn; 30 and 31 are read.
#define LOCKSTEP_FMA(to) "vfmadd231ps %%zmm30, %%zmm31, %%zmm" #to "\n"
#define LOCKSTEP_FMA_BROADCAST(to) "vfmadd231ps (%0)%{1to16%}, %%zmm31, %%zmm" #to "\n"
#define LOCKSTEP_STORE "vmovups %%zmm30, 64(%0)\n"
#define LOCKSTEP_BROADCAST(to) "vbroadcastss (%0), %%zmm" #to "\n"
// The 16 operations of tanh in float32 and its division, spread as far as they go.
#define LOCKSTEP_TANH \
  "vdivps %%zmm30, %%zmm31, %%zmm12\n vaddps %%zmm30, %%zmm31, %%zmm13\n" LOCKSTEP_FMA(14)      \
  "vpermps %%zmm30, %%zmm31, %%zmm15\n" LOCKSTEP_FMA(16) "vminps %%zmm30, %%zmm31, %%zmm17\n"   \
  "vpermps %%zmm30, %%zmm31, %%zmm18\n" LOCKSTEP_FMA(19) "vaddps %%zmm30, %%zmm31, %%zmm20\n"   \
  "vpsrld $20, %%zmm30, %%zmm21\n" LOCKSTEP_FMA(22) "vpermps %%zmm30, %%zmm31, %%zmm23\n"       \
  "vsubps %%zmm30, %%zmm31, %%zmm12\n" LOCKSTEP_FMA(13) "vandps %%zmm30, %%zmm31, %%zmm14\n"    \
  "vpternlogd $0xac, %%zmm30, %%zmm31, %%zmm15\n"
#define LOCKSTEP_FOUR_FMA LOCKSTEP_FMA(0) LOCKSTEP_FMA(1) LOCKSTEP_FMA(2) LOCKSTEP_FMA(3)
#define LOCKSTEP_EIGHT_FMA LOCKSTEP_FOUR_FMA LOCKSTEP_FMA(4) LOCKSTEP_FMA(5) LOCKSTEP_FMA(6) LOCKSTEP_FMA(7)

// Seconds of one of the `instructions`; the best of 200 measurements.
#define LOCKSTEP_SECONDS(instructions)                                                                                \
  [] {                                                                                                                \
    constexpr int kRepeats = 4000;                                                                                    \
    double best = 1;                                                                                                  \
    for (int i = 0; i < 200; ++i) {                                                                                   \
      const auto start = Clock::now();                                                                                \
      for (int repeat = 0; repeat < kRepeats; ++repeat) {                                                             \
        asm volatile("vbroadcastss (%0), %%zmm30\n vmovaps %%zmm30, %%zmm31\n" instructions instructions instructions \
                         instructions                                                                                 \
                     :                                                                                                \
                     : "r"(memory.data())                                                                             \
                     : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm12", "xmm13",    \
                       "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23",      \
                       "xmm30", "xmm31");                                                                             \
      }                                                                                                               \
      best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count() / (4.0 * kRepeats));          \
    }                                                                                                                 \
    return best;                                                                                                      \
  }()

}  // namespace

int main() {
  if (!__builtin_cpu_supports("avx512dq")) {
    std::puts("this processor has no AVX-512");
    return 1;
  }
  memory.fill(1);
  const double cycle = LOCKSTEP_SECONDS(LOCKSTEP_EIGHT_FMA) / 8;
  std::printf("%-58s %6.2f GHz\n", "one 512-bit fused multiply-add a cycle: the clock", 1e-9 / cycle);
  const auto print = [cycle](const char* name, double seconds) { std::printf("%-58s %6.2f\n", name, seconds / cycle); };
  print("8 fused multiply-adds and 4 stores",
        LOCKSTEP_SECONDS(LOCKSTEP_EIGHT_FMA LOCKSTEP_STORE LOCKSTEP_STORE LOCKSTEP_STORE LOCKSTEP_STORE));
  print("tanh", LOCKSTEP_SECONDS(LOCKSTEP_TANH));
  print("tanh and 4 broadcasts", LOCKSTEP_SECONDS(LOCKSTEP_TANH LOCKSTEP_BROADCAST(0) LOCKSTEP_BROADCAST(1)
                                                      LOCKSTEP_BROADCAST(2) LOCKSTEP_BROADCAST(3)));
  print("tanh and 4 multiply-adds", LOCKSTEP_SECONDS(LOCKSTEP_TANH LOCKSTEP_FOUR_FMA));
  print("tanh and 4 multiply-adds that broadcast from memory",
        LOCKSTEP_SECONDS(LOCKSTEP_TANH LOCKSTEP_FMA_BROADCAST(0) LOCKSTEP_FMA_BROADCAST(1) LOCKSTEP_FMA_BROADCAST(2)
                             LOCKSTEP_FMA_BROADCAST(3)));
  print("tanh and 8 multiply-adds", LOCKSTEP_SECONDS(LOCKSTEP_TANH LOCKSTEP_EIGHT_FMA));
  print("tanh and 16 multiply-adds", LOCKSTEP_SECONDS(LOCKSTEP_TANH LOCKSTEP_EIGHT_FMA LOCKSTEP_EIGHT_FMA));
}

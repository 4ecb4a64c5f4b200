// The instruction sets the kernels are compiled for. All of them give the same bits.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "lockstep/core/cpp20.h"

namespace lockstep {

enum class CpuTarget {
  scalar,  // std::fma one lane at a time: the slow, always correct fallback
  avx2,    // x86-64-v3: AVX2 and FMA
  avx512,  // x86-64-v4: AVX-512 F, VL, DQ, BW, CD
  neon,    // AArch64
};

std::string_view to_string(CpuTarget target);
std::optional<CpuTarget> parse_cpu_target(std::string_view name);

// Compiled in and runnable on this machine, slowest first; never empty.
std::span<const CpuTarget> available_cpu_targets();
CpuTarget best_cpu_target();

// Throws Error (unsupported) when the target is not available here.
void require_cpu_target(CpuTarget target);

}  // namespace lockstep

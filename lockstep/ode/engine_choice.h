// Which engine runs a problem on a GPU: the value of --engine and of run.engine in a problem file.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace lockstep::ode {

enum class EngineChoice {
  automatic,   // cuda_gemm for nets wider than 256 and what cuda_fused cannot run, cuda_fused otherwise
  cuda_fused,  // one kernel advances trajectories through their whole spans: the bits of the CPU
  cuda_gemm,   // one matrix product a layer for all trajectories, by cuBLASLt: no promise about bits
};

inline constexpr std::array<std::string_view, 3> kEngineChoiceNames{"auto", "cuda_fused", "cuda_gemm"};

constexpr std::string_view to_string(EngineChoice choice) {
  return kEngineChoiceNames[static_cast<std::size_t>(choice)];
}

constexpr std::optional<EngineChoice> parse_engine_choice(std::string_view name) {
  for (std::size_t i = 0; i < kEngineChoiceNames.size(); ++i) {
    if (kEngineChoiceNames[i] == name) return static_cast<EngineChoice>(i);
  }
  return std::nullopt;
}

}  // namespace lockstep::ode

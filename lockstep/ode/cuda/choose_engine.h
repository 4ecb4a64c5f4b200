// Which of the GPU engines runs a problem, or why none can.
#pragma once

#include <optional>
#include <string>

#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode::cuda {

// Nets wider than this go to cuda_gemm where nobody asks for another, and the ensemble is not cut between devices: no
// kernel of cuda_fused was made for them.
inline constexpr std::size_t kWidestForFused = 256;

struct EngineDecision {
  EngineChoice engine = EngineChoice::cuda_fused;  // never automatic
  std::optional<Obstacle> obstacle;                // where it cannot run the problem, nor another that may
  std::string note;                                // why not the obvious one, for people; often empty
};

// By the problem and the options alone. With `on_a_device`, also by whether cuBLASLt and NVRTC are there, of which what
// is wanted is opened.
EngineDecision decide_engine(const Problem& problem, const Options& options, bool on_a_device);

}  // namespace lockstep::ode::cuda

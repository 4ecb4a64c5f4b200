// A problem and options made into what the engine cuda_gemm runs: matrix products for its nets, and the plain data of
// the kernels between them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lockstep/ode/cuda/gemm/gemm_launch.h"
#include "lockstep/ode/cuda/program.h"

namespace lockstep::ode::cuda {

// Why this engine cannot run a problem; nullopt when it can. Neither cuBLASLt nor NVRTC is asked for.
std::optional<Obstacle> gemm_obstacle(const Problem& problem, const Options& options);
// What LoweredGemm::source will be.
std::optional<KernelSource> gemm_source(const Problem& problem, const Options& options);

// One dense layer. Inputs and outputs are padded with zeros to multiples of kFeatureStep, so that the rows of every
// matrix start where tensor cores can read them.
inline constexpr int kFeatureStep = 8;
struct GemmLayer {
  int inputs, outputs;
  int in_pitch, out_pitch;  // padded
  Activation activation;
  std::size_t weights;  // bytes from the start of LoweredGemm::factors: [out_pitch][in_pitch]
  std::size_t bias;     // numbers from the start of LoweredGemm::biases: [out_pitch]
};

template <class T>
struct LoweredGemm {
  struct Net {
    int part;  // of the program
    std::vector<GemmLayer> layers;
  };
  GemmLaunch<T> launch{};  // its pointers and columns are left out
  MatrixPrecision mode = MatrixPrecision::f32;
  std::vector<Net> nets;
  std::vector<T> scalings;         // GemmLaunch::weights
  std::vector<std::byte> factors;  // stored as the mode says, each layer at a multiple of 256 bytes
  std::vector<T> biases;
  detail::Stops stops;
  std::optional<KernelSource> source;  // of the kernel that takes trajectories on, where terms or the event are text
  int widest = 0;                      // out_pitch of any layer, in_pitch of any net

  std::size_t factor_bytes() const {
    return mode == MatrixPrecision::bf16 || mode == MatrixPrecision::fp16 ? 2 : sizeof(T);
  }
};

// Throws Error (unsupported) where there is an obstacle, (model) for weights that do not fit in the mode's numbers.
template <class T>
LoweredGemm<T> lower_gemm(const Problem& problem, const Options& options);

extern template LoweredGemm<float> lower_gemm<float>(const Problem&, const Options&);
extern template LoweredGemm<double> lower_gemm<double>(const Problem&, const Options&);

}  // namespace lockstep::ode::cuda

// How the kernels of a round are launched: blocks, shared memory, and the launch of the one between two products.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/ode/cuda/gemm/gemm_launch.h"

namespace lockstep::ode::cuda {

inline constexpr int kGemmThreads = 128;        // of a block, a trajectory each
inline constexpr int kCompactionThreads = 256;  // of the one block that plans moves
inline constexpr std::size_t kCompactionSharedBytes = 2 * (kCompactionThreads + 1) * sizeof(std::int32_t);

// out = activation(in + bias), rounded to what the next product takes: where cuBLASLt has no epilogue for it. Pointers
// are at multiples of 16 bytes, and `pitch` is one of 8.
template <class T>
struct ActivationLaunch {
  const T* in;    // [column][pitch]
  const T* bias;  // [pitch]; null: it is in already
  void* out;      // [column][pitch], stored as `mode` says
  std::int64_t columns;
  std::int32_t pitch, activation;  // an ActivationKind
  double alpha;
  MatrixPrecision mode;
};
}  // namespace lockstep::ode::cuda

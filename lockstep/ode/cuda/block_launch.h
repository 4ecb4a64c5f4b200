// What a kernel is launched with whose blocks evaluate nets together (block_advance.cuh).
#pragma once

#include "lockstep/kernels/cuda/block_net.h"
#include "lockstep/ode/cuda/launch.h"

namespace lockstep::ode::cuda {

// From first_chunk on `weights` holds chunks, then resident numbers. The parts' own nets are not read. In modes of
// tensor cores (T is float then) the chunks are the words of TensorWeights, four bytes a number, and `tensor` is filled
// in.
template <class T>
struct BlockLaunch : Launch<T> {
  lockstep::cuda::BlockNet nets[kMostParts];  // of the program's parts
  std::int64_t first_chunk;
  std::int32_t chunks, resident_numbers;
  std::int32_t widest;  // layer of any net
  lockstep::cuda::TensorLayout tensor;
};

// Trajectories of a block.
template <class T>
inline constexpr int kBlockTile = 256 / static_cast<int>(sizeof(T));

template <class T>
std::size_t block_advance_shared_bytes(const BlockLaunch<T>& launch) {
  if (launch.tensor.pitch != 0) return launch.tensor.shared_bytes();
  return lockstep::cuda::block_shared_bytes<T>(kBlockTile<T>, launch.widest,
                                               static_cast<std::size_t>(launch.resident_numbers));
}

// Weights stay in shared memory up to this much of it in all: two blocks to a multiprocessor of compute capability 8.0,
// which has 164 KiB.
inline constexpr std::size_t kMostTensorShared = 80 << 10;

}  // namespace lockstep::ode::cuda

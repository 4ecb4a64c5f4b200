// What the kernel is given that evaluates a net for a batch on tensor cores, and the tile sizes it is compiled in.
#pragma once

#include "lockstep/kernels/cuda/evaluate_launch.h"
#include "lockstep/kernels/cuda/tensor_net.h"

namespace lockstep::cuda {

// `chunks` of the base are not read.
struct TensorLaunch : EvaluateLaunch<float> {
  TensorLayout layout;
  const void* fragments;  // TensorWeights::words on the device, aligned to 16 bytes
};

inline constexpr int kTensorTiles[] = {128, 64};  // samples, largest first
inline constexpr int kWarpTile = 32;              // of a warp alone

// Blocks that a multiprocessor is to hold at once: 32 samples of a warp alone take the registers of two blocks.
constexpr int tensor_blocks(int samples) { return samples == kMostWarpSamples ? 1 : 2; }

}  // namespace lockstep::cuda

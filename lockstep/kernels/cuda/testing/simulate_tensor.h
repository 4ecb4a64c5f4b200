// A net evaluated by the tensor-core kernel's source on the CPU, for tests.
#pragma once

#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/cuda/tensor_kernel.cuh"

namespace lockstep::cuda::testing {

struct TensorRun {
  int tile = 128;
  unsigned blocks = 2, seed = 0;
  WeightPlace place = WeightPlace::shared;
};

// One block's work by the kernel for that tile.
template <class Format, WeightPlace place>
void run_tensor_block(int tile, const TensorLaunch& launch, unsigned char* shared) {
  if constexpr (Format::kTile == 16) {
    if (tile == kWarpTile) return evaluate_tensor_tiles<Format, kWarpTile, place>(launch, shared);
    if (tile == kWarpTile / 2) return evaluate_tensor_tiles<Format, kWarpTile / 2, place>(launch, shared);
  }
  if (tile == kTensorTiles[0]) {
    evaluate_tensor_tiles<Format, kTensorTiles[0], place>(launch, shared);
  } else {
    evaluate_tensor_tiles<Format, kTensorTiles[1], place>(launch, shared);
  }
}

template <class Format>
void simulate_tensor(const TensorWeights<Format>& weights, const BlockNet& net, MatrixView<const float> in,
                     MatrixView<float> out, const TensorRun& run) {
  TensorLaunch launch{};
  launch.net = net;
  launch.resident = weights.resident.data();
  launch.samples = static_cast<std::int64_t>(in.rows);
  launch.in = in.data;
  launch.in_row_stride = in.row_stride;
  launch.in_column_stride = in.column_stride;
  launch.out = out.data;
  launch.out_row_stride = out.row_stride;
  launch.out_column_stride = out.column_stride;
  launch.layout = tensor_layout<Format>(&net, 1, run.tile, weights.resident.size());
  if (run.place == WeightPlace::shared)
    launch.layout.weight_bytes = static_cast<std::int32_t>(weights.words.size() * 4);
  std::vector<ColumnFragments> fragments(weights.words.size() / 4);
  std::memcpy(fragments.data(), weights.words.data(), weights.words.size() * 4);
  launch.fragments = fragments.data();
  simulate(
      {.blocks = run.blocks, .threads = kBlockThreads, .shared_bytes = launch.layout.shared_bytes(), .seed = run.seed},
      [&](unsigned char* shared) {
        if (run.place == WeightPlace::shared) {
          run_tensor_block<Format, WeightPlace::shared>(run.tile, launch, shared);
        } else {
          run_tensor_block<Format, WeightPlace::global>(run.tile, launch, shared);
        }
      });
}

}  // namespace lockstep::cuda::testing

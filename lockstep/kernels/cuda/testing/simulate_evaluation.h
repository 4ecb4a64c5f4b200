// A net evaluated by the GPU kernel's source on the CPU, for tests.
#pragma once

#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/cuda/evaluate_kernel.cuh"

namespace lockstep::cuda::testing {

// In tiles of `tile` samples, by `blocks` blocks; false where no such size is compiled for the net.
template <class T>
bool simulate_evaluation(const Mlp& mlp, MatrixView<const T> in, MatrixView<T> out, int tile, unsigned blocks,
                         unsigned seed = 0) {
  BlockWeights<T> weights;
  EvaluateLaunch<T> launch{.net = weights.add(mlp)};
  launch.chunks = weights.chunks.data();
  launch.resident = weights.resident.data();
  launch.resident_numbers = static_cast<std::int32_t>(weights.resident.size());
  launch.samples = static_cast<std::int64_t>(in.rows);
  launch.in = in.data;
  launch.in_row_stride = in.row_stride;
  launch.in_column_stride = in.column_stride;
  launch.out = out.data;
  launch.out_row_stride = out.row_stride;
  launch.out_column_stride = out.column_stride;
  bool found = false;
  for_each_tile_size<T>([&]<int samples, int widest>() {
    if (samples != tile || launch.net.widest > widest) return;
    found = true;
    simulate({.blocks = blocks,
              .threads = kBlockThreads,
              .shared_bytes = evaluate_shared_bytes(launch, samples),
              .seed = seed},
             [&](unsigned char* shared) { evaluate_tiles<T, samples, widest>(launch, shared); });
  });
  return found;
}

}  // namespace lockstep::cuda::testing

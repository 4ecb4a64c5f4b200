// The kernel that evaluates a dense net for a batch in device memory on tensor cores: blocks take tiles in turn.
#pragma once

#include "lockstep/kernels/cuda/evaluate_kernel.cuh"
#include "lockstep/kernels/cuda/tensor_launch.h"
#include "lockstep/kernels/cuda/tensor_net.cuh"

namespace lockstep::cuda {

LOCKSTEP_DEVICE_CALL float scaled_input(float x, float shift, float scale) { return (x - shift) / scale; }

// A tile of inputs from a view: scaled, rounded, zeros for samples past the last and for inputs up to a whole tile.
template <class Format, int samples>
__device__ void load_tensor_inputs(const TensorLaunch& launch, const TensorSpace& space, std::int64_t first) {
  const BlockNet& net = launch.net;
  const int thread = static_cast<int>(threadIdx.x);
  const int count = static_cast<int>(launch.samples - first < samples ? launch.samples - first : samples);
  const float* const in = launch.in + first * launch.in_row_stride;
  const auto put = [&](int sample, int feature, float x) {
    if (net.input_scale >= 0)
      x = scaled_input(x, space.resident[net.input_shift + feature], space.resident[net.input_scale + feature]);
    put_value<Format>(launch.layout, space.values, sample, feature, x);
  };
  const bool by_four = launch.in_column_stride == 1 && net.inputs % 4 == 0 && launch.in_row_stride % 4 == 0 &&
                       reinterpret_cast<std::uintptr_t>(launch.in) % 16 == 0;
  if (by_four) {
    // All of a thread's loads are under way before the first is waited for.
    constexpr int kBatch = 4;
    const int quads = net.inputs / 4, total = quads * samples;
    LOCKSTEP_ROLLED
    for (int begin = thread; begin < total; begin += kBatch * kBlockThreads) {
      Numbers<float, 4> x[kBatch];
      LOCKSTEP_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        const int i = begin + b * kBlockThreads, sample = i / quads;
        x[b] = {};
        if (sample < count)
          x[b] = *reinterpret_cast<const Numbers<float, 4>*>(in + sample * launch.in_row_stride + i % quads * 4);
      }
      LOCKSTEP_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        const int i = begin + b * kBlockThreads;
        if (i >= total) break;
        LOCKSTEP_UNROLL
        for (int l = 0; l < 4; ++l) put(i / quads, i % quads * 4 + l, x[b].of[l]);
      }
    }
  } else {
    for_each_number<samples>(net.inputs, launch.in_column_stride == 1, [&](int feature, int sample) {
      float x = 0;
      if (sample < count) x = in[sample * launch.in_row_stride + feature * launch.in_column_stride];
      put(sample, feature, x);
    });
  }
  const int padding = input_tiles<Format>(net.inputs) * Format::kTile - net.inputs;
  LOCKSTEP_ROLLED
  for (int i = thread; i < padding * samples; i += kBlockThreads)
    put_value<Format>(launch.layout, space.values, i % samples, net.inputs + i / samples, 0.0f);
}

// One block's work: tiles block, block + blocks, ... `shared`: launch.layout.shared_bytes().
template <class Format, int samples>
__device__ void evaluate_tensor_tiles(const TensorLaunch& launch, unsigned char* shared) {
  const TensorSpace space = make_tensor_space(launch.layout, shared, launch.resident, launch.fragments);
  __syncthreads();
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * samples;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * samples; first < launch.samples; first += stride) {
    load_tensor_inputs<Format, samples>(launch, space, first);
    float* const outputs = evaluate_tensor_net<Format, samples>(launch.net, launch.layout, space);
    store_outputs<float, samples>(launch, space.resident, first, outputs);
    __syncthreads();  // nobody writes the next inputs while another still reads
  }
}

}  // namespace lockstep::cuda

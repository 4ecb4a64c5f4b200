// The kernel that evaluates a dense net for a batch in device memory on tensor cores: blocks take tiles in turn.
#pragma once

#include "lockstep/kernels/cuda/evaluate_kernel.cuh"
#include "lockstep/kernels/cuda/tensor_launch.h"
#include "lockstep/kernels/cuda/tensor_net.cuh"
#include "lockstep/kernels/cuda/tensor_warp_net.cuh"

namespace lockstep::cuda {

// A tile of inputs from a view: scaled, rounded, zeros for samples past the last and for inputs up to a whole tile.
template <class Format, int samples>
__device__ void load_tensor_inputs(const TensorLaunch& launch, const TensorSpace& space, std::int64_t first) {
  const BlockNet& net = launch.net;
  const int thread = static_cast<int>(threadIdx.x);
  const int count = static_cast<int>(launch.samples - first < samples ? launch.samples - first : samples);
  const float* const in = launch.in + first * launch.in_row_stride;
  const auto scaled = [&](int feature, float x) {
    return net.input_scale < 0 ? x
                               : scaled_input(x, space.resident[net.input_shift + feature],
                                              space.resident[net.input_scale + feature]);
  };
  const bool by_four = launch.in_column_stride == 1 && net.inputs % 4 == 0 && launch.in_row_stride % 4 == 0 &&
                       reinterpret_cast<std::uintptr_t>(launch.in) % 16 == 0;
  if (by_four) {
    // All of a thread's loads are under way before the first is waited for.
    constexpr int kBatch = 4;
    const int quads = net.inputs / 4, rows = kBlockThreads / quads, rest = kBlockThreads % quads;
    int next_sample = thread / quads, next_quad = thread % quads;
    LOCKSTEP_ROLLED
    while (next_sample < samples) {
      Numbers<float, 4> x[kBatch];
      int sample[kBatch], feature[kBatch];
      LOCKSTEP_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        sample[b] = next_sample;
        feature[b] = next_quad * 4;
        next_sample += rows;
        next_quad += rest;
        if (next_quad >= quads) {
          next_quad -= quads;
          ++next_sample;
        }
        x[b] = {};
        if (sample[b] < count)
          x[b] = *reinterpret_cast<const Numbers<float, 4>*>(in + sample[b] * launch.in_row_stride + feature[b]);
      }
      LOCKSTEP_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        if (sample[b] >= samples) break;
        if (net.input_scale >= 0) {
          LOCKSTEP_UNROLL
          for (int l = 0; l < 4; ++l) x[b].of[l] = scaled(feature[b] + l, x[b].of[l]);
        }
        put_four<Format>(launch.layout, space.values, sample[b], feature[b], x[b]);
      }
    }
  } else {
    for_each_number<samples>(net.inputs, launch.in_column_stride == 1, [&](int feature, int sample) {
      float x = 0;
      if (sample < count) x = in[sample * launch.in_row_stride + feature * launch.in_column_stride];
      put_value<Format>(launch.layout, space.values, sample, feature, scaled(feature, x));
    });
  }
  const int padding = input_tiles<Format>(net.inputs) * Format::kTile - net.inputs;
  LOCKSTEP_ROLLED
  for (int i = thread; i < padding * samples; i += kBlockThreads)
    put_value<Format>(launch.layout, space.values, i % samples, net.inputs + i / samples, 0.0f);
}

// One block's work: tiles block, block + blocks, ... `shared`: launch.layout.shared_bytes().
template <class Format, int samples, WeightPlace place>
__device__ void evaluate_tensor_tiles(const TensorLaunch& launch, unsigned char* shared) {
  if constexpr (samples <= kMostWarpSamples) {
    evaluate_warp_tiles<Format, samples, place>(launch, shared);
  } else {
    const TensorSpace space = make_tensor_space<place>(launch.layout, shared, launch.resident, launch.fragments);
    __syncthreads();
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * samples;
    for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * samples; first < launch.samples;
         first += stride) {
      load_tensor_inputs<Format, samples>(launch, space, first);
      float* const outputs = evaluate_tensor_net<Format, samples>(launch.net, launch.layout, space);
      store_outputs<float, samples>(launch, space.resident, first, outputs);
      __syncthreads();  // nobody writes the next inputs while another still reads
    }
  }
}

}  // namespace lockstep::cuda

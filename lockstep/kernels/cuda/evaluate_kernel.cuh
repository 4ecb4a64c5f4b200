// The kernel that evaluates a dense net for a batch in device memory: blocks take tiles of samples in turn.
#pragma once

#include "lockstep/kernels/cuda/block_net.cuh"
#include "lockstep/kernels/cuda/evaluate_launch.h"

namespace lockstep::cuda {

// put(feature, sample) for all of a tile, shared out among threads: those of a warp along features where these lie side
// by side in global memory, else along samples.
template <int samples, class Put>
__device__ void for_each_number(int features, bool side_by_side, const Put& put) {
  const int thread = static_cast<int>(threadIdx.x);
  if (side_by_side && features > 8) {
    LOCKSTEP_UNROLL_BY_4
    for (int sample = thread / 32; sample < samples; sample += kBlockThreads / 32)
      for (int feature = thread % 32; feature < features; feature += 32) put(feature, sample);
  } else {
    LOCKSTEP_UNROLL_BY_4
    for (int i = thread; i < features * samples; i += kBlockThreads) put(i / samples, i % samples);
  }
}

// values[input][sample] of a tile from a view, scaled; zeros for samples past the last.
template <class T, int samples>
__device__ void load_inputs(const EvaluateLaunch<T>& launch, const T* resident, std::int64_t first, T* values) {
  using L = ScalarLane<T>;
  constexpr int pitch = tile_pitch<T>(samples);
  const BlockNet& net = launch.net;
  const int count = static_cast<int>(launch.samples - first < samples ? launch.samples - first : samples);
  const T* const in = launch.in + first * launch.in_row_stride;
  for_each_number<samples>(net.inputs, launch.in_column_stride == 1, [&](int feature, int sample) {
    T x = 0;
    if (sample < count) x = in[sample * launch.in_row_stride + feature * launch.in_column_stride];
    values[feature * pitch + sample] = x;
  });
  if (net.input_scale < 0) return;
  __syncthreads();
  LOCKSTEP_ROLLED
  for (int i = static_cast<int>(threadIdx.x); i < net.inputs * samples; i += kBlockThreads) {
    const int feature = i / samples;
    T& x = values[feature * pitch + i % samples];
    x = L::div(L::sub(x, resident[net.input_shift + feature]), resident[net.input_scale + feature]);
  }
}

// The tile's values[output][sample] into a view, scaled.
template <class T, int samples>
__device__ void store_outputs(const EvaluateLaunch<T>& launch, const T* resident, std::int64_t first, T* values) {
  using L = ScalarLane<T>;
  constexpr int pitch = tile_pitch<T>(samples);
  const BlockNet& net = launch.net;
  if (net.output_scale >= 0) {
    LOCKSTEP_ROLLED
    for (int i = static_cast<int>(threadIdx.x); i < net.outputs * samples; i += kBlockThreads) {
      const int feature = i / samples;
      T& y = values[feature * pitch + i % samples];
      y = L::fma(y, resident[net.output_scale + feature], resident[net.output_shift + feature]);
    }
    __syncthreads();
  }
  const int count = static_cast<int>(launch.samples - first < samples ? launch.samples - first : samples);
  T* const out = launch.out + first * launch.out_row_stride;
  for_each_number<samples>(net.outputs, launch.out_column_stride == 1, [&](int feature, int sample) {
    if (sample < count)
      out[sample * launch.out_row_stride + feature * launch.out_column_stride] = values[feature * pitch + sample];
  });
}

// One block's work: tiles block, block + blocks, ... `shared`: evaluate_shared_bytes().
template <class T, int samples, int widest>
__device__ void evaluate_tiles(const EvaluateLaunch<T>& launch, unsigned char* shared) {
  T* const stages = reinterpret_cast<T*>(shared);
  T* const values = stages + kChunkStages * kChunkNumbers<T>;
  T* const resident = values + launch.net.widest * tile_pitch<T>(samples);
  for (int i = static_cast<int>(threadIdx.x); i < launch.resident_numbers; i += kBlockThreads)
    resident[i] = launch.resident[i];
  WeightStream<T> stream(launch.chunks, launch.net.chunks, stages);
  __syncthreads();
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * samples;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * samples; first < launch.samples; first += stride) {
    load_inputs<T, samples>(launch, resident, first, values);
    evaluate_block_net<T, samples, widest>(launch.net, resident, values, stream);
    store_outputs<T, samples>(launch, resident, first, values);
    __syncthreads();  // nobody writes the next inputs while another still reads
  }
  stream.close();
}

}  // namespace lockstep::cuda

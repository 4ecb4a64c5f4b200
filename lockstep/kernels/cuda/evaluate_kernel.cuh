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

// put(feature, first sample) for all of a tile in vectors of 16 bytes along samples: a warp's threads have neighbouring
// features, which lie side by side in global memory and, as vectors, in different banks of shared memory.
template <class T, int samples, class Put>
__device__ void for_each_vector(int features, const Put& put) {
  constexpr int kVector = 16 / static_cast<int>(sizeof(T));
  const int thread = static_cast<int>(threadIdx.x);
  LOCKSTEP_ROLLED
  for (int sample = thread / 32 * kVector; sample < samples; sample += kBlockThreads / 32 * kVector) {
    LOCKSTEP_ROLLED
    for (int feature = thread % 32; feature < features; feature += 32) put(feature, sample);
  }
}

// An array of samples in global memory.
template <class T>
struct SampleArray {
  T* first;  // of the tile
  std::int64_t sample_stride, feature_stride;
  int features, count;  // the tile's samples that there are
  __device__ T& at(int feature, int sample) const { return first[sample * sample_stride + feature * feature_stride]; }
  __device__ bool by_vectors() const { return feature_stride == 1 && features > 8; }
};

// values[feature][sample] of a tile, number by number; zeros for samples past the last.
template <int samples, class T>
__device__ void load_numbers(const SampleArray<const T>& in, T* values) {
  for_each_number<samples>(in.features, in.feature_stride == 1, [&](int feature, int sample) {
    T x = 0;
    if (sample < in.count) x = in.at(feature, sample);
    values[feature * tile_pitch<T>(samples) + sample] = x;
  });
}
template <int samples, class T>
__device__ void store_numbers(const SampleArray<T>& out, const T* values) {
  for_each_number<samples>(out.features, out.feature_stride == 1, [&](int feature, int sample) {
    if (sample < out.count) out.at(feature, sample) = values[feature * tile_pitch<T>(samples) + sample];
  });
}

// The same in vectors, where that serves. A call, as the next: inlined, they push what else the kernel holds out of
// registers.
template <int samples>
LOCKSTEP_DEVICE_CALL void load_floats(SampleArray<const float> in, float* values) {
  if (!in.by_vectors()) return load_numbers<samples>(in, values);
  for_each_vector<float, samples>(in.features, [&](int feature, int sample) {
    Numbers<float, 4> x;
    LOCKSTEP_UNROLL
    for (int l = 0; l < 4; ++l) x.of[l] = sample + l < in.count ? in.at(feature, sample + l) : 0.0f;
    *reinterpret_cast<Numbers<float, 4>*>(values + feature * tile_pitch<float>(samples) + sample) = x;
  });
}
template <int samples>
LOCKSTEP_DEVICE_CALL void store_floats(SampleArray<float> out, const float* values) {
  if (!out.by_vectors()) return store_numbers<samples>(out, values);
  for_each_vector<float, samples>(out.features, [&](int feature, int sample) {
    const auto x = *reinterpret_cast<const Numbers<float, 4>*>(values + feature * tile_pitch<float>(samples) + sample);
    LOCKSTEP_UNROLL
    for (int l = 0; l < 4; ++l) {
      if (sample + l < out.count) out.at(feature, sample + l) = x.of[l];
    }
  });
}

template <int samples, class T>
__device__ void load_tile(const SampleArray<const T>& in, T* values) {
  if constexpr (sizeof(T) == 4) {
    load_floats<samples>(in, values);
  } else {
    load_numbers<samples>(in, values);
  }
}
template <int samples, class T>
__device__ void store_tile(const SampleArray<T>& out, const T* values) {
  if constexpr (sizeof(T) == 4) {
    store_floats<samples>(out, values);
  } else {
    store_numbers<samples>(out, values);
  }
}

// values[input][sample] of a tile from a view, scaled; zeros for samples past the last.
template <class T, int samples>
__device__ void load_inputs(const EvaluateLaunch<T>& launch, const T* resident, std::int64_t first, T* values) {
  using L = ScalarLane<T>;
  constexpr int pitch = tile_pitch<T>(samples);
  const BlockNet& net = launch.net;
  const int count = static_cast<int>(launch.samples - first < samples ? launch.samples - first : samples);
  load_tile<samples>(SampleArray<const T>{launch.in + first * launch.in_row_stride, launch.in_row_stride,
                                          launch.in_column_stride, net.inputs, count},
                     values);
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
  store_tile<samples>(SampleArray<T>{launch.out + first * launch.out_row_stride, launch.out_row_stride,
                                     launch.out_column_stride, net.outputs, count},
                      values);
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

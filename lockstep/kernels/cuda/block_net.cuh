// A dense net evaluated by a block of kBlockThreads threads for a tile of samples, with the bits of every other kernel:
// each output is the bias, then one fma an input, inputs ascending.
//
// The tile's values lie in shared memory, [feature][sample], and each layer replaces them: threads hold all sums of a
// layer in registers (8 outputs x 8 samples each in the widest one), wait for each other, and write. Weights stream
// from global memory, which for all but the first tile is the L2 cache, through three chunks of shared memory, copied
// in the background. Eight loads of 16 bytes feed 128 fma of float32.
#pragma once

#include <type_traits>
#include <utility>

#include "lockstep/kernels/cuda/block_net.h"
#include "lockstep/kernels/cuda/device_words.cuh"
#include "lockstep/kernels/cuda/thread_net.h"

namespace lockstep::cuda {

template <class T, int n>
struct alignas(sizeof(T) * n) Numbers {
  T of[n];
};

// The chunks of one or more nets, over and over. All threads of the block make the same calls.
template <class T>
class WeightStream {
 public:
  // `stages`: kChunkStages chunks of shared memory.
  __device__ WeightStream(const T* chunks, int count, T* stages) : chunks_(chunks), stages_(stages), count_(count) {
    for (int i = 0; i + 1 < kChunkStages; ++i) request();
  }

  // The next chunk, valid until the next call. A barrier: what any thread wrote before is seen by all afterwards.
  __device__ const T* take() {
    wait_for_copies<kChunkStages - 2>();
    __syncthreads();
    request();  // into the stage that everybody has just left
    const T* const chunk = stages_ + taken_ * kChunkNumbers<T>;
    taken_ = taken_ + 1 == kChunkStages ? 0 : taken_ + 1;
    return chunk;
  }

  // Before the block ends: what was requested in vain has arrived.
  __device__ void close() { wait_for_copies<0>(); }

 private:
  __device__ void request() {
    constexpr int kPieces = kChunkBytes / 16;
    T* const to = stages_ + requested_ * kChunkNumbers<T>;
    const T* const from = chunks_ + static_cast<std::int64_t>(next_) * kChunkNumbers<T>;
    constexpr int kPiece = 16 / static_cast<int>(sizeof(T));
    LOCKSTEP_UNROLL
    for (int i = 0; i < kPieces / kBlockThreads; ++i) {
      const int piece = (i * kBlockThreads + static_cast<int>(threadIdx.x)) * kPiece;
      copy_16_bytes(to + piece, from + piece);
    }
    end_copy_group();
    requested_ = requested_ + 1 == kChunkStages ? 0 : requested_ + 1;
    next_ = next_ + 1 == count_ ? 0 : next_ + 1;
  }

  const T* chunks_;
  T* stages_;
  int count_;
  int next_ = 0, requested_ = 0, taken_ = 0;
};

// How threads share out a layer of `padded` outputs for `samples` samples: to each thread outputs x samples sums. A
// thread's numbers come in vectors of at most 16 bytes; the vectors of neighbouring threads are neighbours.
template <class T, int samples, int padded>
struct LayerShape {
  static constexpr int kSums = padded * samples / kBlockThreads;
  static constexpr int kOutputs = kSums >= 32 ? 8 : kSums >= 8 ? 4 : kSums >= 2 ? 2 : 1;
  static constexpr int kSamples = kSums / kOutputs;
  static constexpr int kOutputThreads = padded / kOutputs, kSampleThreads = samples / kSamples;
  static constexpr int kVector = 16 / static_cast<int>(sizeof(T));
  static constexpr int kOutputVector = kOutputs < kVector ? kOutputs : kVector;
  static constexpr int kSampleVector = kSamples < kVector ? kSamples : kVector;
  static constexpr int kInputs = kChunkNumbers<T> / padded;  // of a chunk
  static_assert(kSums >= 1 && kOutputThreads * kSampleThreads == kBlockThreads);
  static_assert(kOutputThreads % 4 == 0 && kSampleThreads % 8 == 0);

  // A warp covers 4 x 8 threads, and each 8 lanes of it 2 x 4: few addresses for each load, no two in one bank. Nor for
  // stores, where the two of outputs are four rows apart, which is half the banks (tile_pitch).
  static constexpr int kApart = kOutputVector >= 4 ? 1 : 2;
  static __device__ int output_thread() {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    return warp % (kOutputThreads / 4) * 4 + (lane >> 4) * (3 - kApart) + (lane & 1) * kApart;
  }
  static __device__ int sample_thread() {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    return warp / (kOutputThreads / 4) * 8 + (lane >> 1) % 8;
  }
  // A thread's i-th output, counted from where its first vector begins.
  static __device__ constexpr int output(int i) {
    return i / kOutputVector * (kOutputThreads * kOutputVector) + i % kOutputVector;
  }
  static __device__ constexpr int sample(int i) {
    return i / kSampleVector * (kSampleThreads * kSampleVector) + i % kSampleVector;
  }
};

// One input more into a thread's sums; w and x point at its first vectors.
template <class Shape, class T>
__device__ __forceinline__ void add_input(const T* w, const T* x, T (&sum)[Shape::kOutputs][Shape::kSamples]) {
  using Outputs = Numbers<T, Shape::kOutputVector>;
  using Samples = Numbers<T, Shape::kSampleVector>;
  Outputs weight[Shape::kOutputs / Shape::kOutputVector];
  Samples value[Shape::kSamples / Shape::kSampleVector];
  LOCKSTEP_UNROLL
  for (int i = 0; i < Shape::kOutputs / Shape::kOutputVector; ++i)
    weight[i] = *reinterpret_cast<const Outputs*>(w + Shape::output(i * Shape::kOutputVector));
  LOCKSTEP_UNROLL
  for (int i = 0; i < Shape::kSamples / Shape::kSampleVector; ++i)
    value[i] = *reinterpret_cast<const Samples*>(x + Shape::sample(i * Shape::kSampleVector));
  LOCKSTEP_UNROLL
  for (int i = 0; i < Shape::kOutputs; ++i) {
    LOCKSTEP_UNROLL
    for (int j = 0; j < Shape::kSamples; ++j) {
      sum[i][j] = ScalarLane<T>::fma(weight[i / Shape::kOutputVector].of[i % Shape::kOutputVector],
                                     value[j / Shape::kSampleVector].of[j % Shape::kSampleVector], sum[i][j]);
    }
  }
}

// values[output][sample] = relu or identity of the layer's sums, from values[input][sample]. No barrier at the end.
template <class T, int samples, int padded>
__device__ __forceinline__ void evaluate_layer_block(const BlockLayer& layer, const T* resident, T* values,
                                                     WeightStream<T>& stream) {
  using Shape = LayerShape<T, samples, padded>;
  constexpr int pitch = tile_pitch<T>(samples);
  constexpr int kUnroll = Shape::kSums * static_cast<int>(sizeof(T)) >= 256 ? 4 : 8;
  const int my_output = Shape::output_thread() * Shape::kOutputVector;
  const int my_sample = Shape::sample_thread() * Shape::kSampleVector;
  T sum[Shape::kOutputs][Shape::kSamples];
  LOCKSTEP_UNROLL
  for (int i = 0; i < Shape::kOutputs; ++i) {
    const T bias = resident[layer.bias + my_output + Shape::output(i)];
    LOCKSTEP_UNROLL
    for (int j = 0; j < Shape::kSamples; ++j) sum[i][j] = bias;
  }
  for (int first = 0; first < layer.inputs; first += Shape::kInputs) {
    const T* w = stream.take() + my_output;
    const T* x = values + first * pitch + my_sample;
    int left = layer.inputs - first < Shape::kInputs ? layer.inputs - first : Shape::kInputs;
    LOCKSTEP_ROLLED
    for (; left >= kUnroll; left -= kUnroll) {
      LOCKSTEP_UNROLL
      for (int k = 0; k < kUnroll; ++k) add_input<Shape>(w + k * padded, x + k * pitch, sum);
      w += kUnroll * padded;
      x += kUnroll * pitch;
    }
    LOCKSTEP_ROLLED
    for (; left > 0; --left) {
      add_input<Shape>(w, x, sum);
      w += padded;
      x += pitch;
    }
  }
  if (layer.activation == static_cast<int>(ActivationKind::relu)) {
    LOCKSTEP_UNROLL
    for (int i = 0; i < Shape::kOutputs; ++i) {
      LOCKSTEP_UNROLL
      for (int j = 0; j < Shape::kSamples; ++j)
        sum[i][j] = math::activate<ActivationKind::relu, ScalarLane<T>>(sum[i][j], T(0));
    }
  }
  __syncthreads();  // everybody has read the inputs
  LOCKSTEP_UNROLL
  for (int i = 0; i < Shape::kOutputs; ++i) {
    const int output = my_output + Shape::output(i);
    if (output >= layer.outputs) continue;
    LOCKSTEP_UNROLL
    for (int j = 0; j < Shape::kSamples; j += Shape::kSampleVector) {
      Numbers<T, Shape::kSampleVector> part;
      LOCKSTEP_UNROLL
      for (int l = 0; l < Shape::kSampleVector; ++l) part.of[l] = sum[i][j + l];
      *reinterpret_cast<Numbers<T, Shape::kSampleVector>*>(values + output * pitch + my_sample + Shape::sample(j)) =
          part;
    }
  }
}

// Puts `count` rows of values through an activation, 16 bytes at a time.
template <ActivationKind kind, int samples, class T>
__device__ void activate_rows(T* values, int count, T alpha) {
  constexpr int kVector = 16 / static_cast<int>(sizeof(T));
  constexpr int in_row = samples / kVector, pitch = tile_pitch<T>(samples);
  LOCKSTEP_ROLLED
  for (int i = static_cast<int>(threadIdx.x); i < count * in_row; i += kBlockThreads) {
    auto* const place = reinterpret_cast<Numbers<T, kVector>*>(values + i / in_row * pitch + i % in_row * kVector);
    Numbers<T, kVector> numbers = *place;
    LOCKSTEP_UNROLL
    for (int l = 0; l < kVector; ++l) numbers.of[l] = activate_unit<kind>(numbers.of[l], alpha);
    *place = numbers;
  }
}
#ifdef __CUDACC__
#define LOCKSTEP_DEVICE_CALL inline __device__ __noinline__
#else
#define LOCKSTEP_DEVICE_CALL inline
#endif
// One copy for all shapes of layers.
template <int samples, class T, int... kinds>
LOCKSTEP_DEVICE_CALL void activate_rows(std::integer_sequence<int, kinds...>, int kind, T* values, int count, T alpha) {
  (void)((kind == kinds && (activate_rows<static_cast<ActivationKind>(kinds), samples>(values, count, alpha), true)) ||
         ...);
}

// values[output][sample] = net(values[input][sample]) without scalings, for whatever inputs threads wrote before the
// call; `widest` bounds the layers (256 or 128). Ends with a barrier. All threads of the block.
template <class T, int samples, int widest>
__device__ void evaluate_block_net(const BlockNet& net, const T* resident, T* values, WeightStream<T>& stream) {
  LOCKSTEP_ROLLED
  for (int i = 0; i < net.layers; ++i) {
    const BlockLayer& layer = net.layer[i];
    switch (layer.padded) {
      case 8:
        evaluate_layer_block<T, samples, 8>(layer, resident, values, stream);
        break;
      case 32:
        evaluate_layer_block<T, samples, 32>(layer, resident, values, stream);
        break;
      case 64:
        evaluate_layer_block<T, samples, 64>(layer, resident, values, stream);
        break;
      case 128:
        evaluate_layer_block<T, samples, 128>(layer, resident, values, stream);
        break;
      default:
        if constexpr (widest > 128) evaluate_layer_block<T, samples, 256>(layer, resident, values, stream);
    }
    if (layer.activation == static_cast<int>(ActivationKind::identity) ||
        layer.activation == static_cast<int>(ActivationKind::relu))
      continue;
    __syncthreads();
    constexpr int kinds = static_cast<int>(ActivationKind::square) + 1;
    activate_rows<samples>(std::make_integer_sequence<int, kinds>(), layer.activation, values, layer.outputs,
                           static_cast<T>(layer.alpha));
  }
  __syncthreads();
}

}  // namespace lockstep::cuda

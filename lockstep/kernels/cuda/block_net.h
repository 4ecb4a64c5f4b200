// A dense net laid out for a block of GPU threads that evaluates a tile of samples together: weights pass through
// shared memory in chunks of one size, biases and scalings stay there. Plain data; the device's part is block_net.cuh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/kernels/cuda/net_image.h"
#include "lockstep/kernels/lane/scalar_lane.h"
#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::cuda {

inline constexpr int kBlockThreads = 256;
inline constexpr int kMostBlockWidth = 256;  // inputs and outputs of every layer
inline constexpr int kChunkBytes = 8192;
inline constexpr int kChunkStages = 3;  // chunks in shared memory: one in use, two under way

template <class T>
inline constexpr int kChunkNumbers = kChunkBytes / static_cast<int>(sizeof(T));

struct BlockLayer {
  std::int32_t inputs, outputs;
  std::int32_t padded;      // outputs rounded up to a width that threads can share out: 8, 32, 64, 128 or 256
  std::int32_t activation;  // an ActivationKind
  double alpha;
  std::int32_t bias;     // where in the resident numbers
  std::int32_t weights;  // of tensor_net.h alone
};

struct BlockNet {
  std::int32_t inputs, outputs, layers;
  std::int32_t widest;                                                // inputs or outputs of any layer
  std::int32_t chunks;                                                // in the order of use; each layer starts one
  std::int32_t input_shift, input_scale, output_scale, output_shift;  // in the resident numbers; -1: none
  BlockLayer layer[kMostLayers];
};

// Several nets that one kernel evaluates in turn, for ever: their chunks and their resident numbers one after another.
// A chunk holds weights[input][padded output] of as many whole inputs as fit; what is left over is zero.
template <class T>
struct BlockWeights {
  std::vector<T> chunks;    // [chunk][kChunkNumbers]
  std::vector<T> resident;  // a multiple of 16 bytes

  // Appends a net, rounded to T. Throws Error (model) when a number does not fit in T, (unsupported) for a net too wide
  // or too deep.
  BlockNet add(const Mlp& mlp);
};

extern template struct BlockWeights<float>;
extern template struct BlockWeights<double>;

// The least width of 8, 32, 64, 128, 256 that holds `outputs`.
LOCKSTEP_HOST_DEVICE constexpr int padded_width(int outputs) {
  return outputs <= 8 ? 8 : outputs <= 32 ? 32 : outputs <= 64 ? 64 : outputs <= 128 ? 128 : 256;
}

// Numbers from one row of a tile's values to the next in shared memory: 16 bytes more than its samples, so that rows
// and columns both spread over the banks.
template <class T>
LOCKSTEP_HOST_DEVICE constexpr int tile_pitch(int samples) {
  return samples + 16 / static_cast<int>(sizeof(T));
}

// Bytes of shared memory for `rows` rows of `samples`, the stages, and the resident numbers.
template <class T>
LOCKSTEP_HOST_DEVICE constexpr std::size_t block_shared_bytes(int samples, int rows, std::size_t resident) {
  return kChunkStages * kChunkBytes +
         (static_cast<std::size_t>(rows) * static_cast<std::size_t>(tile_pitch<T>(samples)) + resident) * sizeof(T);
}

// Where a block reads the weights of nets on tensor cores: known when it is compiled, or as the layout says.
enum class WeightPlace { global, shared, as_laid_out };

// How a block with nets on tensor cores (tensor_net.h) uses its shared memory: resident numbers, buffers of values,
// and, where they fit, all weights.
struct TensorLayout {
  std::int32_t resident_numbers;
  std::int32_t pitch;         // bytes of a sample's values
  std::int32_t buffer_bytes;  // a buffer also holds the net's outputs in float32, [output][sample]
  std::int32_t buffers;       // 1 or 2
  std::int32_t weight_bytes;  // 0: they are read from global memory

  LOCKSTEP_HOST_DEVICE std::size_t shared_bytes() const {
    return static_cast<std::size_t>(resident_numbers) * 4 + static_cast<std::size_t>(buffers) * buffer_bytes +
           weight_bytes;
  }
};

}  // namespace lockstep::cuda

// A dense net evaluated by a block of kBlockThreads threads on tensor cores: values between layers rounded to TF32,
// bfloat16 or float16; products exact; sums, biases, activations and scalings in float32.
//
// The tile's values lie in shared memory, [sample][feature]. A warp takes 16 or 32 samples, holds their inputs in
// registers, and 32 outputs at a time: weights, packed in the order in which lanes hold them, are loads of 16 bytes,
// from shared memory where all fit, else from global memory, which for all but the first tile is a cache. A sample's
// numbers depend on no other's. mma.sync is what compute capability 8.0 has; 9.0 has wgmma, too, and reaches about 5/8
// of its peak without it (Luo et al., "Benchmarking and dissecting the Nvidia Hopper GPU architecture", 2024, table of
// mma).
#pragma once

#include <type_traits>

#include "lockstep/kernels/cuda/block_net.cuh"
#include "lockstep/kernels/cuda/mma_words.cuh"
#include "lockstep/kernels/cuda/tensor_net.h"

namespace lockstep::cuda {

// How warps share out a layer for `samples` samples.
template <class Format, int samples>
struct TensorShape {
  static constexpr int kRowTiles = Format::kTile == 16 ? 2 : 1;  // of 16 samples each, to a warp
  static constexpr int kHeld = kMostHeldInputs / Format::kTile;  // tiles of inputs in registers
  static constexpr int kWarpSamples = 16 * kRowTiles;
  static constexpr int kSampleWarps = samples / kWarpSamples;
  static constexpr int kOutputWarps = kBlockThreads / 32 / kSampleWarps;
  static_assert(kSampleWarps * kOutputWarps * 32 == kBlockThreads);
};

// Where a block keeps what it works on: pieces of its shared memory.
struct TensorSpace {
  const float* resident;
  unsigned char* values;             // the first buffer
  const ColumnFragments* fragments;  // of all nets, in shared or global memory
};

// Copies what stays for the block's life from global memory; a barrier has to follow. Where the compiler knows in which
// memory the weights are, their addresses are a register and a number.
template <WeightPlace place>
__device__ inline TensorSpace make_tensor_space(const TensorLayout& layout, unsigned char* shared,
                                                const float* resident, const void* fragments) {
  const int thread = static_cast<int>(threadIdx.x);
  TensorSpace space;
  space.resident = reinterpret_cast<const float*>(shared);
  space.values = shared + layout.resident_numbers * 4;
  space.fragments = static_cast<const ColumnFragments*>(fragments);
  for (int i = thread; i < layout.resident_numbers / 4; i += kBlockThreads)
    reinterpret_cast<Numbers<float, 4>*>(shared)[i] = reinterpret_cast<const Numbers<float, 4>*>(resident)[i];
  if (place == WeightPlace::global || (place == WeightPlace::as_laid_out && layout.weight_bytes == 0)) return space;
  auto* const to = reinterpret_cast<ColumnFragments*>(space.values + layout.buffers * layout.buffer_bytes);
  LOCKSTEP_UNROLL_BY_4
  for (int i = thread; i < layout.weight_bytes / 16; i += kBlockThreads) copy_16_bytes(to + i, space.fragments + i);
  end_copy_group();
  wait_for_copies<0>();
  space.fragments = to;
  return space;
}

// value(sample, feature) as the nets' inputs are kept.
template <class Format>
__device__ void put_value(const TensorLayout& layout, unsigned char* values, int sample, int feature, float x) {
  using Stored = typename Format::Stored;
  const int byte = tensor_byte<Format>(sample, feature * static_cast<int>(sizeof(Stored)));
  auto* const place = reinterpret_cast<Stored*>(values + sample * layout.pitch + byte);
  if constexpr (Format::kTile == 8) {
    *place = to_format(Format(), x);
  } else {
    *place = static_cast<Stored>(to_format(Format(), x, 0.0f));
  }
}

// Values of four features side by side, the first a multiple of four.
template <class Format>
__device__ void put_four(const TensorLayout& layout, unsigned char* values, int sample, int feature,
                         const Numbers<float, 4>& x) {
  unsigned char* const place =
      values + sample * layout.pitch +
      tensor_byte<Format>(sample, feature * static_cast<int>(sizeof(typename Format::Stored)));
  if constexpr (Format::kTile == 8) {
    const Numbers<std::uint32_t, 4> all = {{to_format(Format(), x.of[0]), to_format(Format(), x.of[1]),
                                            to_format(Format(), x.of[2]), to_format(Format(), x.of[3])}};
    *reinterpret_cast<Numbers<std::uint32_t, 4>*>(place) = all;
  } else {
    const Numbers<std::uint32_t, 2> all = {
        {to_format(Format(), x.of[0], x.of[1]), to_format(Format(), x.of[2], x.of[3])}};
    *reinterpret_cast<Numbers<std::uint32_t, 2>*>(place) = all;
  }
}

// Four numbers through an activation, one copy for all shapes of layers: side by side for the most used, one after the
// other for the rest.
LOCKSTEP_DEVICE_CALL Numbers<float, 4> activate_four(int kind, Numbers<float, 4> x, float alpha) {
  const auto side_by_side = [&]<ActivationKind one>(std::integral_constant<ActivationKind, one>) {
    LOCKSTEP_UNROLL
    for (int i = 0; i < 4; ++i) x.of[i] = activate_unit<one>(x.of[i], alpha);
  };
  if (kind == static_cast<int>(ActivationKind::tanh)) {
    side_by_side(std::integral_constant<ActivationKind, ActivationKind::tanh>());
  } else if (kind == static_cast<int>(ActivationKind::silu)) {
    side_by_side(std::integral_constant<ActivationKind, ActivationKind::silu>());
  } else {
    LOCKSTEP_UNROLL
    for (int i = 0; i < 4; ++i) x.of[i] = activate_any(kind, x.of[i], alpha);
  }
  return x;
}

// What a warp works on in one layer.
template <class Format, int samples>
struct TensorLayer {
  using Shape = TensorShape<Format, samples>;
  const BlockLayer& layer;
  const TensorLayout& layout;
  const float* bias;
  int first_sample;           // of the warp's
  const unsigned char* from;  // values[sample][input]
  unsigned char* to;          // values[sample][output]; of the last layer float[output][sample]
  bool last;

  __device__ int tiles() const { return input_tiles<Format>(layer.inputs); }

  // Tiles of inputs from `first` on into registers, as many as there are and these hold.
  __device__ __forceinline__ void hold(int first, RowFragment (&a)[Shape::kRowTiles][Shape::kHeld]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int sample = first_sample + lane % 16;
    const unsigned char* const place =
        from + sample * layout.pitch + first * 32 + tensor_byte<Format>(sample, lane / 16 * 16);
    const int left = tiles() - first;
    LOCKSTEP_UNROLL
    for (int k = 0; k < Shape::kHeld; ++k) {
      if (k >= left) break;
      LOCKSTEP_UNROLL
      for (int m = 0; m < Shape::kRowTiles; ++m) load_rows(a[m][k], place + m * 16 * layout.pitch + k * 32);
    }
  }

  // Two pairs of 8 outputs, from `first_pair` on: their sums, the activation, and to where they belong. What is past
  // the layer's last pair is computed from other weights and goes nowhere.
  __device__ __forceinline__ void evaluate(int first_pair, const ColumnFragments* fragments,
                                           RowFragment (&a)[Shape::kRowTiles][Shape::kHeld]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, inputs = tiles();
    const int first_output = first_pair * kPairOutputs + lane % 4 * 2;
    Numbers<float, 4> sum[Shape::kRowTiles][4];
    LOCKSTEP_UNROLL
    for (int j = 0; j < 4; ++j) {
      LOCKSTEP_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int output = first_output + 8 * j + i;
        const float b = output < layer.outputs ? bias[output] : 0.0f;
        LOCKSTEP_UNROLL
        for (int m = 0; m < Shape::kRowTiles; ++m) sum[m][j].of[i] = sum[m][j].of[2 + i] = b;
      }
    }
    const ColumnFragments* at = fragments + layer.weights + first_pair * inputs * 32 + lane;
    const int to_second = (first_pair + 1) * kPairOutputs < layer.padded ? inputs * 32 : 0;
    for (int first = 0; first < inputs; first += Shape::kHeld) {
      if (inputs > Shape::kHeld) hold(first, a);
      LOCKSTEP_UNROLL
      for (int k = 0; k < Shape::kHeld; ++k) {
        if (first + k >= inputs) break;
        const ColumnFragments b[2] = {at[0], at[to_second]};
        LOCKSTEP_UNROLL
        for (int j = 0; j < 4; ++j) {
          LOCKSTEP_UNROLL
          for (int m = 0; m < Shape::kRowTiles; ++m)
            multiply_add(Format(), sum[m][j].of, a[m][k], b[j / 2].of[j % 2 * 2], b[j / 2].of[j % 2 * 2 + 1]);
        }
        at += 32;
      }
    }
    if (layer.activation == static_cast<int>(ActivationKind::identity) ||
        layer.activation == static_cast<int>(ActivationKind::relu)) {
      const bool relu = layer.activation == static_cast<int>(ActivationKind::relu);
      if constexpr (Format::kTile == 16) {
        if (!last && first_pair * kPairOutputs + 2 * kPairOutputs <= layer.outputs) {
          if (relu) {
            put_all<true>(first_output, sum);
          } else {
            put_all<false>(first_output, sum);
          }
          return;
        }
      }
      LOCKSTEP_UNROLL
      for (int m = 0; m < Shape::kRowTiles; ++m) {
        LOCKSTEP_UNROLL
        for (int j = 0; j < 4; ++j) {
          LOCKSTEP_UNROLL
          for (int i = 0; i < 4; ++i) {
            const float x = sum[m][j].of[i];
            sum[m][j].of[i] = relu ? math::activate<ActivationKind::relu, ScalarLane<float>>(x, 0.0f) : x;
          }
          put(m, first_output + 8 * j, sum[m][j]);
        }
      }
      return;
    }
    // One copy of every activation, in a loop: the sums pass through memory, since registers have no index.
    Numbers<float, 4> kept[Shape::kRowTiles * 4];
    LOCKSTEP_UNROLL
    for (int i = 0; i < Shape::kRowTiles * 4; ++i) kept[i] = sum[i / 4][i % 4];
    LOCKSTEP_ROLLED
    for (int i = 0; i < Shape::kRowTiles * 4; ++i) {
      put(i / 4, first_output + 8 * (i % 4), activate_four(layer.activation, kept[i], static_cast<float>(layer.alpha)));
    }
  }

 private:
  // put() for all of a lane's sums where none is past the layer's outputs or the last layer's: two instructions for two
  // numbers.
  template <bool relu>
  __device__ __forceinline__ void put_all(int first_output, const Numbers<float, 4> (&sum)[Shape::kRowTiles][4]) const {
    unsigned char* const place = to + (first_sample + static_cast<int>(threadIdx.x) % 32 / 4) * layout.pitch +
                                 first_output * static_cast<int>(sizeof(typename Format::Stored));
    LOCKSTEP_UNROLL
    for (int m = 0; m < Shape::kRowTiles; ++m) {
      LOCKSTEP_UNROLL
      for (int i = 0; i < 4; i += 2) {
        unsigned char* const row = place + (16 * m + 4 * i) * layout.pitch;
        LOCKSTEP_UNROLL
        for (int j = 0; j < 4; ++j) {
          const float x = sum[m][j].of[i], y = sum[m][j].of[i + 1];
          *reinterpret_cast<std::uint32_t*>(row + 8 * j * static_cast<int>(sizeof(typename Format::Stored))) =
              relu ? relu_to_format(Format(), x, y) : to_format(Format(), x, y);
        }
      }
    }
  }

  // Two outputs of two samples, 8 apart.
  __device__ __forceinline__ void put(int m, int output, const Numbers<float, 4>& sum) const {
    if (output >= layer.padded) return;
    const int sample = first_sample + 16 * m + static_cast<int>(threadIdx.x) % 32 / 4;
    LOCKSTEP_UNROLL
    for (int i = 0; i < 4; i += 2) {
      if (last) {
        float* const column = reinterpret_cast<float*>(to) + output * tile_pitch<float>(samples) + sample + 4 * i;
        if (output < layer.outputs) column[0] = sum.of[i];
        if (output + 1 < layer.outputs) column[tile_pitch<float>(samples)] = sum.of[i + 1];
        continue;
      }
      // Zeros where the next layer takes more inputs than there are: its weights are zero there, and zero times what an
      // activation may make of nothing need not be.
      const float x = output < layer.outputs ? sum.of[i] : 0.0f, y = output + 1 < layer.outputs ? sum.of[i + 1] : 0.0f;
      unsigned char* const place =
          to + (sample + 4 * i) * layout.pitch +
          tensor_byte<Format>(sample, output * static_cast<int>(sizeof(typename Format::Stored)));
      if constexpr (Format::kTile == 8) {
        const Numbers<std::uint32_t, 2> both = {{to_format(Format(), x), to_format(Format(), y)}};
        *reinterpret_cast<Numbers<std::uint32_t, 2>*>(place) = both;
      } else {
        *reinterpret_cast<std::uint32_t*>(place) = to_format(Format(), x, y);
      }
    }
  }
};

// Evaluates a net for the inputs that threads put into the first buffer, zeros up to a whole tile of inputs: returns
// outputs[output][sample], tile_pitch<float>(samples) apart, not yet scaled. Begins and ends with a barrier. All
// threads of the block.
template <class Format, int samples>
__device__ float* evaluate_tensor_net(const BlockNet& net, const TensorLayout& layout, const TensorSpace& space) {
  using Shape = TensorShape<Format, samples>;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int second = (layout.buffers - 1) * layout.buffer_bytes;
  int current = 0;  // where the values are, from the first buffer on
  __syncthreads();
  LOCKSTEP_ROLLED
  for (int i = 0; i < net.layers; ++i) {
    const BlockLayer& layer = net.layer[i];
    const bool last = i + 1 == net.layers;
    const TensorLayer<Format, samples> work{layer,
                                            layout,
                                            space.resident + layer.bias,
                                            warp % Shape::kSampleWarps * Shape::kWarpSamples,
                                            space.values + current,
                                            space.values + second - current,
                                            last};
    RowFragment a[Shape::kRowTiles][Shape::kHeld];
    if (work.tiles() <= Shape::kHeld) work.hold(0, a);
    // With one buffer, values are overwritten that others may still be reading; outputs are laid out in another way,
    // and overwrite those of other warps in either case.
    if (last || (layout.buffers == 1 && Shape::kOutputWarps > 1)) {
      __syncthreads();
    } else {
      __syncwarp();
    }
    const int pairs = layer.padded / kPairOutputs;
    LOCKSTEP_ROLLED
    for (int pair = warp / Shape::kSampleWarps * 2; pair < pairs; pair += 2 * Shape::kOutputWarps)
      work.evaluate(pair, space.fragments, a);
    if (last || Shape::kOutputWarps > 1) {
      __syncthreads();
    } else {
      __syncwarp();
    }
    current = second - current;
  }
  return reinterpret_cast<float*>(space.values + current);
}

}  // namespace lockstep::cuda

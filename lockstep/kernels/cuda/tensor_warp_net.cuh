// A dense net evaluated on tensor cores by warps that need nobody else, in the formats of 16 bits, for layers of up to
// kMostHeldInputs inputs and outputs: a warp takes 16 or 32 samples through the whole net, their values in registers.
//
// What a lane holds of a product's sums, two neighbouring outputs of two samples for each 8 outputs, is what the next
// product wants of its inputs: so each layer's outputs, rounded, become the next one's fragments where they are. Only
// the weights are in shared memory, and the net's outputs on their way to global memory; there is no barrier of the
// block. The products and their order are those of tensor_net.cuh, and so are the numbers.
#pragma once

#include "lockstep/kernels/cuda/evaluate_kernel.cuh"
#include "lockstep/kernels/cuda/tensor_launch.h"
#include "lockstep/kernels/cuda/tensor_net.cuh"

namespace lockstep::cuda {

LOCKSTEP_DEVICE_CALL float scaled_input(float x, float shift, float scale) { return (x - shift) / scale; }

// One warp's work on its samples.
template <class Format, int samples>
class TensorWarp {
 public:
  static constexpr int kRowTiles = samples / 16;
  static constexpr int kHeld = kMostHeldInputs / Format::kTile;  // tiles of inputs
  static constexpr int kChunk = 2 * kPairOutputs;                // outputs whose sums are under way together
  using Values = RowFragment[kRowTiles][kHeld];
  using Sums = Numbers<float, 4>[kRowTiles][4];

  // `outputs`: this warp's room in shared memory, kWarpOutputPitch numbers a sample.
  __device__ TensorWarp(const TensorLaunch& launch, const TensorSpace& space, float* outputs)
      : launch_(launch), space_(space), outputs_(outputs), lane_(static_cast<int>(threadIdx.x) % 32) {}

  // Samples `first` and on, as many as there are.
  __device__ void evaluate(std::int64_t first) const {
    const BlockNet& net = launch_.net;
    const int count = static_cast<int>(launch_.samples - first < samples ? launch_.samples - first : samples);
    Values values;
    load(first, count, values);
    LOCKSTEP_ROLLED
    for (int i = 0; i + 1 < net.layers; ++i) hidden(net.layer[i], values);
    const BlockLayer& last = net.layer[net.layers - 1];
    LOCKSTEP_ROLLED
    for (int chunk = 0; chunk * kChunk < last.outputs; ++chunk) {
      Sums sum;
      multiply(last, chunk, values, sum);
      activate(last, sum);
      store(first, count, chunk * kChunk, sum);
    }
  }

 private:
  // Inputs, scaled and rounded: zeros for samples and inputs that are not there.
  __device__ __forceinline__ void load(std::int64_t first, int count, Values& values) const {
    const bool by_two = launch_.in_column_stride == 1 && launch_.net.inputs % 2 == 0 &&
                        launch_.in_row_stride % 2 == 0 && reinterpret_cast<std::uintptr_t>(launch_.in) % 8 == 0;
    if (by_two) {
      load_by<2>(first, count, values);
    } else {
      load_by<1>(first, count, values);
    }
  }
  // In loads of `together` neighbouring inputs.
  template <int together>
  __device__ __forceinline__ void load_by(std::int64_t first, int count, Values& values) const {
    const BlockNet& net = launch_.net;
    const std::int64_t row_stride = launch_.in_row_stride, column_stride = launch_.in_column_stride;
    const int row = lane_ / 4, column = lane_ % 4 * 2, tiles = input_tiles<Format>(net.inputs);
    const float* const from = launch_.in + (first + row) * row_stride + column * column_stride;
    // Loads of so many tiles are under way before the first is waited for.
    constexpr int kBatch = 2;
    LOCKSTEP_UNROLL
    for (int k = 0; k < kHeld; k += kBatch) {
      if (k >= tiles) break;
      Numbers<float, 2> x[kBatch][kRowTiles][4];
      LOCKSTEP_UNROLL
      for (int i = 0; i < kBatch * kRowTiles * 4; ++i) {
        const int sample = 16 * (i / 4 % kRowTiles) + 8 * (i % 2);
        const int feature = (k + i / (4 * kRowTiles)) * Format::kTile + 8 * (i / 2 % 2);
        const float* const place = from + sample * row_stride + feature * column_stride;
        Numbers<float, 2>& two = x[i / (4 * kRowTiles)][i / 4 % kRowTiles][i % 4];
        two = {};
        const bool there = row + sample < count && column + feature < net.inputs;
        if constexpr (together == 2) {
          if (there) two = *reinterpret_cast<const Numbers<float, 2>*>(place);
        } else {
          if (there) two.of[0] = *place;
          if (there && column + feature + 1 < net.inputs) two.of[1] = place[column_stride];
        }
      }
      LOCKSTEP_UNROLL
      for (int i = 0; i < kBatch * kRowTiles * 4; ++i) {
        const int tile = i / (4 * kRowTiles), m = i / 4 % kRowTiles;
        Numbers<float, 2>& two = x[tile][m][i % 4];
        if (net.input_scale >= 0) scale(column + (k + tile) * Format::kTile + 8 * (i / 2 % 2), two);
        values[m][k + tile].of[i % 4] = to_format(Format(), two.of[0], two.of[1]);
      }
    }
  }
  __device__ __forceinline__ void scale(int feature, Numbers<float, 2>& x) const {
    const BlockNet& net = launch_.net;
    LOCKSTEP_UNROLL
    for (int l = 0; l < 2; ++l) {
      if (feature + l < net.inputs)
        x.of[l] = scaled_input(x.of[l], space_.resident[net.input_shift + feature + l],
                               space_.resident[net.input_scale + feature + l]);
    }
  }

  // A layer's outputs in place of its inputs.
  __device__ __forceinline__ void hidden(const BlockLayer& layer, Values& values) const {
    Values next;
    LOCKSTEP_UNROLL
    for (int chunk = 0; chunk < kHeld / 2; ++chunk) {
      if (chunk * kChunk >= layer.outputs) break;
      Sums sum;
      multiply(layer, chunk, values, sum);
      if (layer.activation == static_cast<int>(ActivationKind::relu) && (chunk + 1) * kChunk <= layer.outputs) {
        round<true>(sum, chunk, next);
        continue;
      }
      activate(layer, sum);
      // Zeros where the next layer takes more inputs than there are: its weights are zero there, and zero times what an
      // activation may make of nothing need not be.
      if ((chunk + 1) * kChunk > layer.outputs) {
        LOCKSTEP_UNROLL
        for (int j = 0; j < 4; ++j) {
          LOCKSTEP_UNROLL
          for (int i = 0; i < 4; ++i) {
            const bool there = chunk * kChunk + 8 * j + lane_ % 4 * 2 + i % 2 < layer.outputs;
            LOCKSTEP_UNROLL
            for (int m = 0; m < kRowTiles; ++m) sum[m][j].of[i] = there ? sum[m][j].of[i] : 0.0f;
          }
        }
      }
      round<false>(sum, chunk, next);
    }
    LOCKSTEP_UNROLL
    for (int m = 0; m < kRowTiles; ++m) {
      LOCKSTEP_UNROLL
      for (int k = 0; k < kHeld; ++k) values[m][k] = next[m][k];
    }
  }
  template <bool relu>
  __device__ __forceinline__ void round(const Sums& sum, int chunk, Values& next) const {
    LOCKSTEP_UNROLL
    for (int m = 0; m < kRowTiles; ++m) {
      LOCKSTEP_UNROLL
      for (int i = 0; i < 8; ++i) {
        const Numbers<float, 4>& from = sum[m][i / 2];
        const float x = from.of[i % 2 * 2], y = from.of[i % 2 * 2 + 1];
        next[m][2 * chunk + i / 4].of[i % 4] = relu ? relu_to_format(Format(), x, y) : to_format(Format(), x, y);
      }
    }
  }

  // The sums of outputs chunk * kChunk and on, biases first. Those past the layer's last pair are computed from other
  // weights and go nowhere.
  __device__ __forceinline__ void multiply(const BlockLayer& layer, int chunk, const Values& values, Sums& sum) const {
    const int first = chunk * kChunk + lane_ % 4 * 2, tiles = input_tiles<Format>(layer.inputs);
    const float* const bias = space_.resident + layer.bias + first;
    LOCKSTEP_UNROLL
    for (int j = 0; j < 4; ++j) {
      Numbers<float, 2> b = {};
      if (8 * j + first < layer.outputs) b = *reinterpret_cast<const Numbers<float, 2>*>(bias + 8 * j);
      LOCKSTEP_UNROLL
      for (int m = 0; m < kRowTiles; ++m) sum[m][j] = {{b.of[0], b.of[1], b.of[0], b.of[1]}};
    }
    const ColumnFragments* const at = space_.fragments + layer.weights + 2 * chunk * tiles * 32 + lane_;
    const int to_second = (2 * chunk + 1) * kPairOutputs < layer.padded ? tiles * 32 : 0;
    multiply_by<kHeld>(tiles, at, to_second, values, sum);
  }
  // As many tiles of inputs as there are: a loop of known length for each number.
  template <int most>
  __device__ __forceinline__ void multiply_by(int tiles, const ColumnFragments* at, int to_second, const Values& values,
                                              Sums& sum) const {
    if constexpr (most > 1) {
      if (tiles < most) return multiply_by<most - 1>(tiles, at, to_second, values, sum);
    }
    ColumnFragments ahead[2] = {at[0], at[to_second]};
    LOCKSTEP_UNROLL
    for (int k = 0; k < most; ++k) {
      const ColumnFragments b[2] = {ahead[0], ahead[1]};
      if (k + 1 < most) {
        ahead[0] = at[(k + 1) * 32];
        ahead[1] = at[(k + 1) * 32 + to_second];
      }
      LOCKSTEP_UNROLL
      for (int j = 0; j < 4; ++j) {
        LOCKSTEP_UNROLL
        for (int m = 0; m < kRowTiles; ++m)
          multiply_add(Format(), sum[m][j].of, values[m][k], b[j / 2].of[j % 2 * 2], b[j / 2].of[j % 2 * 2 + 1]);
      }
    }
  }

  __device__ __forceinline__ void activate(const BlockLayer& layer, Sums& sum) const {
    if (layer.activation == static_cast<int>(ActivationKind::identity)) return;
    if (layer.activation == static_cast<int>(ActivationKind::relu)) {
      LOCKSTEP_UNROLL
      for (int i = 0; i < kRowTiles * 16; ++i) {
        float& x = sum[i / 16][i / 4 % 4].of[i % 4];
        x = math::activate<ActivationKind::relu, ScalarLane<float>>(x, 0.0f);
      }
      return;
    }
    // One copy of every activation, in a loop: the sums pass through memory, since registers have no index.
    Numbers<float, 4> kept[kRowTiles * 4];
    LOCKSTEP_UNROLL
    for (int i = 0; i < kRowTiles * 4; ++i) kept[i] = sum[i / 4][i % 4];
    LOCKSTEP_ROLLED
    for (int i = 0; i < kRowTiles * 4; ++i)
      kept[i] = activate_four(layer.activation, kept[i], static_cast<float>(layer.alpha));
    LOCKSTEP_UNROLL
    for (int i = 0; i < kRowTiles * 4; ++i) sum[i / 4][i % 4] = kept[i];
  }

  // Outputs first_output and on, scaled, by way of shared memory: a warp writes numbers that lie side by side.
  __device__ __forceinline__ void store(std::int64_t first, int count, int first_output, const Sums& sum) const {
    const BlockNet& net = launch_.net;
    __syncwarp();  // what was there before is read
    float* const to = outputs_ + lane_ / 4 * kWarpOutputPitch + lane_ % 4 * 2;
    LOCKSTEP_UNROLL
    for (int i = 0; i < kRowTiles * 8; ++i) {
      const int row = 16 * (i / 8) + 8 * (i % 2), j = i / 2 % 4;
      const Numbers<float, 4>& from = sum[i / 8][j];
      const Numbers<float, 2> two = {{from.of[i % 2 * 2], from.of[i % 2 * 2 + 1]}};
      *reinterpret_cast<Numbers<float, 2>*>(to + row * kWarpOutputPitch + 8 * j) = two;
    }
    __syncwarp();
    const int here = net.outputs - first_output < kChunk ? net.outputs - first_output : kChunk;
    float* const out = launch_.out + first * launch_.out_row_stride + first_output * launch_.out_column_stride;
    const auto scaled = [&](int output, float y) {
      if (net.output_scale < 0) return y;
      return ScalarLane<float>::fma(y, space_.resident[net.output_scale + first_output + output],
                                    space_.resident[net.output_shift + first_output + output]);
    };
    if (launch_.out_column_stride == 1) {
      if (lane_ >= here) return;
      LOCKSTEP_UNROLL_BY_4
      for (int row = 0; row < count; ++row)
        out[row * launch_.out_row_stride + lane_] = scaled(lane_, outputs_[row * kWarpOutputPitch + lane_]);
    } else {
      LOCKSTEP_UNROLL_BY_4
      for (int i = lane_; i < here * samples; i += 32) {
        const int row = i % samples, output = i / samples;
        if (row < count)
          out[row * launch_.out_row_stride + output * launch_.out_column_stride] =
              scaled(output, outputs_[row * kWarpOutputPitch + output]);
      }
    }
  }

  const TensorLaunch& launch_;
  const TensorSpace& space_;
  float* outputs_;
  int lane_;
};

// One block's work: a warp takes a tile of samples, and every so many tiles another. `shared`:
// launch.layout.shared_bytes(). Small batches are spread over the blocks first.
template <class Format, int samples, WeightPlace place>
__device__ void evaluate_warp_tiles(const TensorLaunch& launch, unsigned char* shared) {
  const TensorSpace space = make_tensor_space<place>(launch.layout, shared, launch.resident, launch.fragments);
  __syncthreads();
  const std::int64_t warp = threadIdx.x / 32;
  const TensorWarp<Format, samples> work(launch, space,
                                         reinterpret_cast<float*>(space.values) + warp * samples * kWarpOutputPitch);
  const std::int64_t blocks = gridDim.x;
  for (std::int64_t first = (warp * blocks + blockIdx.x) * samples; first < launch.samples;
       first += blocks * (kBlockThreads / 32) * samples)
    work.evaluate(first);
}

}  // namespace lockstep::cuda

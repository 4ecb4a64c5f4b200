// A tile's nets on tensor cores, for blocks that advance trajectories of float32 (block_advance.cuh): the state, the
// steps and the nets' outputs are float32, what passes between layers is not.
#pragma once

#include "lockstep/kernels/cuda/tensor_net.cuh"
#include "lockstep/ode/cuda/block_launch.h"

namespace lockstep::ode::cuda {

template <class Format>
class TensorTile {
 public:
  using T = float;
  static constexpr int kSamples = kBlockTile<float>;

  __device__ TensorTile(const BlockLaunch<float>& launch, unsigned char* shared)
      : layout_(launch.tensor),
        space_(lockstep::cuda::make_tensor_space<lockstep::cuda::WeightPlace::as_laid_out>(
            launch.tensor, shared,
            launch.weights + launch.first_chunk +
                static_cast<std::int64_t>(launch.chunks) * lockstep::cuda::kChunkNumbers<float>,
            launch.weights + launch.first_chunk)) {}

  __device__ const float* resident() const { return space_.resident; }
  // Inputs and outputs lie in the same memory, in another order: a second net waits until all have read the first
  // one's.
  __device__ void begin(int part) {
    if (part > 0) __syncthreads();
    even_ = 0;  // nothing to keep in registers meanwhile
    words_ = {};
  }
  // Features ascend up to a whole tile of inputs.
  __device__ void put(int feature, float x) {
    if constexpr (Format::kTile == 8) {
      put_word(feature, lockstep::cuda::to_format(Format(), x));
    } else if (feature % 2 == 0) {
      even_ = x;
    } else {
      put_word(feature / 2, lockstep::cuda::to_format(Format(), even_, x));
    }
  }
  __device__ void end_inputs(const lockstep::cuda::BlockNet& net) {
    LOCKSTEP_ROLLED
    for (int i = net.inputs; i < lockstep::cuda::input_tiles<Format>(net.inputs) * Format::kTile; ++i) put(i, 0.0f);
  }
  __device__ void evaluate(const lockstep::cuda::BlockNet& net) {
    outputs_ = lockstep::cuda::evaluate_tensor_net<Format, kSamples>(net, layout_, space_);
  }
  __device__ float output(int c) const {
    return outputs_[c * lockstep::cuda::tile_pitch<float>(kSamples) + static_cast<int>(threadIdx.x)];
  }
  __device__ void close() {}

 private:
  using Words = lockstep::cuda::Numbers<std::uint32_t, 4>;

  // Four words at once: eight threads' rows, 16 bytes each, meet no bank twice.
  __device__ void put_word(int word, std::uint32_t bits) {
    words_ = {{words_.of[1], words_.of[2], words_.of[3], bits}};
    if (word % 4 != 3) return;
    const int sample = static_cast<int>(threadIdx.x);
    unsigned char* const row = space_.values + sample * layout_.pitch;
    *reinterpret_cast<Words*>(row + lockstep::cuda::tensor_byte<Format>(sample, word / 4 * 16)) = words_;
  }

  const lockstep::cuda::TensorLayout& layout_;
  lockstep::cuda::TensorSpace space_;
  float even_;   // the last feature of an even number,
  Words words_;  // and the last words put down
  const float* outputs_ = nullptr;
};

}  // namespace lockstep::ode::cuda

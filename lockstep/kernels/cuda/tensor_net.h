// A dense net laid out for the tensor cores of a GPU: weights rounded to TF32, bfloat16 or float16 once and packed in
// the order in which lanes of a warp hold them, biases and scalings in float32. Plain data; the device's part is
// tensor_net.cuh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/kernels/cuda/block_net.h"
#include "lockstep/kernels/cuda/tensor_number.h"

namespace lockstep::cuda {

inline constexpr int kPairOutputs = 16;  // a lane's 16 bytes of weights serve two matrices of 8 outputs
inline constexpr int kPairWords = 128;   // 4-byte words of such a pair for one tile of inputs: 16 bytes a lane

// The most inputs of a layer that a thread's registers hold; wider layers are read again for every 32 outputs, and need
// a second buffer of values.
inline constexpr int kMostHeldInputs = 128;

// Where a warp takes samples through a net alone (tensor_warp_net.cuh): the most of them, and numbers from one to the
// next of the net's outputs on their way through shared memory, 32 at a time, so that what half a warp writes lies in
// different banks.
inline constexpr int kMostWarpSamples = 32;
inline constexpr int kWarpOutputPitch = 40;

// Whether warps can: the sums of a product are the fragments of the next one in formats of 16 bits alone.
template <class Format>
bool fits_warps(const BlockNet& net) {
  return Format::kTile == 16 && net.widest <= kMostHeldInputs;
}

// Nets that one kernel evaluates in turn. The format is a net's for ever: the same arrays mean nothing to another.
template <class Format>
struct TensorWeights {
  // [layer][pair of 8 outputs][tile of inputs][lane][4 words]: fragments b[0], b[1] of the first and of the second 8.
  std::vector<std::uint32_t> words;
  std::vector<float> resident;  // a multiple of 16 bytes

  // Appends a net. In its layers `padded` is the outputs rounded up to kPairOutputs, `weights` where its fragments
  // begin, in units of 16 bytes; `chunks` stays 0. Throws Error as BlockWeights::add does; a weight must fit in the
  // format.
  BlockNet add(const Mlp& mlp);
};

extern template struct TensorWeights<Tf32>;
extern template struct TensorWeights<Bf16>;
extern template struct TensorWeights<Fp16>;

// Tiles of inputs of a layer.
template <class Format>
LOCKSTEP_HOST_DEVICE constexpr int input_tiles(int inputs) {
  return (inputs + Format::kTile - 1) / Format::kTile;
}

// Bytes from one sample's values to the next in shared memory. In formats of 16 bits an odd number of 16 bytes, so that
// eight neighbours' 16 bytes lie in different banks. In TF32 an odd number of 32 bytes, and in every second four
// samples the 16 bytes of each pair change places (tensor_byte): so do eight neighbours' 16 bytes, and four neighbours'
// 32, which is how a warp reads values and how it writes them.
template <class Format>
LOCKSTEP_HOST_DEVICE constexpr int tensor_pitch(int widest) {
  return (widest + kPairOutputs - 1) / kPairOutputs * kPairOutputs * static_cast<int>(sizeof(typename Format::Stored)) +
         (Format::kTile == 8 ? 32 : 16);
}
// Where byte `byte` of a sample's values lies among them.
template <class Format>
LOCKSTEP_HOST_DEVICE constexpr int tensor_byte(int sample, int byte) {
  return Format::kTile == 8 ? byte ^ (sample & 4) * 4 : byte;
}

// For one net or several; weights stay outside.
template <class Format>
TensorLayout tensor_layout(const BlockNet* nets, int count, int samples, std::size_t resident_numbers);

extern template TensorLayout tensor_layout<Tf32>(const BlockNet*, int, int, std::size_t);
extern template TensorLayout tensor_layout<Bf16>(const BlockNet*, int, int, std::size_t);
extern template TensorLayout tensor_layout<Fp16>(const BlockNet*, int, int, std::size_t);

}  // namespace lockstep::cuda

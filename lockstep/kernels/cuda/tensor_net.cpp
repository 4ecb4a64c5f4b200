#include "lockstep/kernels/cuda/tensor_net.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"

namespace lockstep::cuda {
namespace {

template <class Format>
typename Format::Stored rounded_weight(double weight) {
  const typename Format::Stored stored = Format::round(static_cast<float>(weight));
  if (std::isfinite(Format::widen(stored))) return stored;
  throw Error(ErrorKind::model, {.field = "a weight of the net",
                                 .found = number_text(weight),
                                 .expected = "a number that fits in " + std::string(Format::kName),
                                 .remedy = "evaluate the net in float32 or, where it fits there, in bf16"});
}

// The 4 bytes that a lane holds of one column: numbers of the left or right half of a tile of inputs.
template <class Format>
std::uint32_t column_word(const DenseLayer& layer, std::size_t output, std::size_t first_input) {
  constexpr std::size_t numbers = 4 / sizeof(typename Format::Stored);
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < numbers; ++i) {
    const std::size_t input = first_input + i;
    if (output >= layer.outputs || input >= layer.inputs) continue;
    word |= static_cast<std::uint32_t>(rounded_weight<Format>(layer.weights[output * layer.inputs + input]))
            << (16 * i);
  }
  return word;
}

template <class Format>
void append_layer(const DenseLayer& layer, std::vector<std::uint32_t>& words) {
  constexpr std::size_t tile = Format::kTile, quarter = 4 / sizeof(typename Format::Stored);
  for (std::size_t first = 0; first < layer.outputs; first += kPairOutputs)
    for (std::size_t k = 0; k < layer.inputs; k += tile)
      for (std::size_t lane = 0; lane < 32; ++lane)
        for (std::size_t i = 0; i < 4; ++i)
          words.push_back(
              column_word<Format>(layer, first + i / 2 * 8 + lane / 4, k + i % 2 * (tile / 2) + lane % 4 * quarter));
}

}  // namespace

template <class Format>
BlockNet TensorWeights<Format>::add(const Mlp& mlp) {
  // Limits, biases and scalings as for float32; its chunks are not kept.
  BlockWeights<float> plain;
  plain.resident = std::move(resident);
  BlockNet net = plain.add(mlp);
  resident = std::move(plain.resident);
  net.chunks = 0;
  for (int i = 0; i < net.layers; ++i) {
    BlockLayer& layer = net.layer[i];
    layer.padded = (layer.outputs + kPairOutputs - 1) / kPairOutputs * kPairOutputs;
    layer.weights = static_cast<std::int32_t>(words.size() / 4);
    append_layer<Format>(mlp.layers[static_cast<std::size_t>(i)], words);
  }
  return net;
}

template <class Format>
TensorLayout tensor_layout(const BlockNet* nets, int count, int samples, std::size_t resident_numbers) {
  TensorLayout layout{};
  layout.resident_numbers = static_cast<std::int32_t>(resident_numbers);
  layout.buffers = 1;
  int widest = 0, outputs = 0;
  for (int i = 0; i < count; ++i) {
    widest = std::max(widest, nets[i].widest);
    outputs = std::max(outputs, nets[i].outputs);
    for (int l = 0; l < nets[i].layers; ++l)
      if (nets[i].layer[l].inputs > kMostHeldInputs) layout.buffers = 2;
  }
  if (samples <= kMostWarpSamples) {
    layout.pitch = kWarpOutputPitch * static_cast<int>(sizeof(float));
    layout.buffer_bytes = kBlockThreads / 32 * samples * layout.pitch;
    return layout;
  }
  layout.pitch = tensor_pitch<Format>(widest);
  layout.buffer_bytes =
      std::max(layout.pitch * samples, outputs * tile_pitch<float>(samples) * static_cast<int>(sizeof(float)));
  return layout;
}

template struct TensorWeights<Tf32>;
template struct TensorWeights<Bf16>;
template struct TensorWeights<Fp16>;
template TensorLayout tensor_layout<Tf32>(const BlockNet*, int, int, std::size_t);
template TensorLayout tensor_layout<Bf16>(const BlockNet*, int, int, std::size_t);
template TensorLayout tensor_layout<Fp16>(const BlockNet*, int, int, std::size_t);

}  // namespace lockstep::cuda

// Lowering: rounds an Mlp's numbers to T and lays them out for one instruction set.
#include <algorithm>
#include <cmath>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/kernels/mlp/detail/packed.h"

namespace lockstep::mlp {
namespace {

template <class T>
T rounded(const std::string& field, double number) {
  const T value = static_cast<T>(number);
  if (std::isfinite(value)) return value;
  throw Error(ErrorKind::model, {.field = field,
                                 .found = std::to_string(number),
                                 .expected = "a number that fits in float32",
                                 .remedy = "evaluate the net in float64"});
}

template <class T>
AlignedBuffer<T> rounded(const std::string& field, const std::vector<double>& numbers) {
  AlignedBuffer<T> buffer(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    buffer[i] = rounded<T>(field + "[" + std::to_string(i) + "]", numbers[i]);
  }
  return buffer;
}

// Where only one of a scaling's two vectors is given, the other is filled with what changes nothing.
std::vector<double> filled(const std::vector<double>& numbers, const std::vector<double>& other, double neutral) {
  return numbers.empty() ? std::vector<double>(other.size(), neutral) : numbers;
}

// Writes blocks of `unit` outputs times the partition's sizes; returns the end.
template <class T>
T* pack_blocks(const DenseLayer& layer, const Partition& partition, std::size_t unit, T* to) {
  std::size_t first = 0;
  for (std::size_t block = 0; block < partition.blocks; ++block) {
    const std::size_t size = partition[block] * unit;
    for (std::size_t k = 0; k <= layer.inputs; ++k) {
      for (std::size_t j = first; j < first + size; ++j) {
        const bool padding = j >= layer.outputs;
        *to++ = padding ? T(0) : static_cast<T>(k == 0 ? layer.bias[j] : layer.weights[j * layer.inputs + k - 1]);
      }
    }
    first += size;
  }
  return to;
}

// Cycles of `rows` samples through the row kernels against one register of lanes through the tile kernels, counting a
// fused multiply-add or eight cycles of an activation a register as the unit; three rows share a load of weights.
template <class T>
std::size_t break_even_rows(const std::vector<PackedLayer<T>>& layers, std::size_t lanes) {
  double tile = 0, row = 0;
  for (const PackedLayer<T>& layer : layers) {
    const double registers = static_cast<double>((layer.outputs + lanes - 1) / lanes);
    const double activation =
        layer.activation == ActivationKind::identity || layer.activation == ActivationKind::relu ? 1 : 12;
    tile += static_cast<double>(layer.outputs) * (static_cast<double>(layer.inputs) + activation);
    row += registers * (static_cast<double>(layer.inputs) + activation);
  }
  return std::min(lanes - 1, static_cast<std::size_t>(tile / row));
}

template <class T>
std::size_t round_up(std::size_t count) {
  constexpr std::size_t line = kAlignment / sizeof(T);
  return (count + line - 1) / line * line;
}

}  // namespace

template <class T>
Packed<T> pack(const Mlp& mlp, CpuTarget target) {
  mlp.validate();
  require_cpu_target(target);
  Packed<T> packed;
  const Kernels<T>& kernels = kernels_for<T>(target);
  packed.kernels = &kernels;
  packed.target = target;
  packed.widest = mlp.inputs();
  std::size_t size = 0;
  for (std::size_t i = 0; i < mlp.layers.size(); ++i) {
    const DenseLayer& layer = mlp.layers[i];
    const std::string name = "layers[" + std::to_string(i) + "]";
    if (!kernels.has_activation(layer.activation.kind)) {
      throw Error(ErrorKind::unsupported, {.field = name + ".activation",
                                           .found = "kind " + std::to_string(static_cast<int>(layer.activation.kind)),
                                           .expected = "an activation the kernels know",
                                           .remedy = "choose another"});
    }
    for (const double weight : layer.weights) rounded<T>(name + ".weights", weight);
    for (const double bias : layer.bias) rounded<T>(name + ".bias", bias);
    const std::size_t registers = (layer.outputs + kernels.lanes - 1) / kernels.lanes;
    packed.layers.push_back({.inputs = layer.inputs,
                             .outputs = layer.outputs,
                             .tile_blocks = Partition(layer.outputs, kernels.tile_outputs),
                             .row_blocks = Partition(registers, kernels.row_registers),
                             .activation = layer.activation.kind,
                             .alpha = static_cast<T>(layer.activation.alpha),
                             .tile_weights = nullptr,
                             .row_weights = nullptr});
    packed.widest = std::max(packed.widest, layer.outputs);
    size +=
        round_up<T>((1 + layer.inputs) * layer.outputs) + round_up<T>((1 + layer.inputs) * registers * kernels.lanes);
  }
  packed.weights = AlignedBuffer<T>(size);
  T* to = packed.weights.data();
  for (std::size_t i = 0; i < mlp.layers.size(); ++i) {
    PackedLayer<T>& layer = packed.layers[i];
    layer.tile_weights = to;
    to += round_up<T>(static_cast<std::size_t>(pack_blocks(mlp.layers[i], layer.tile_blocks, 1, to) - to));
    layer.row_weights = to;
    to += round_up<T>(static_cast<std::size_t>(pack_blocks(mlp.layers[i], layer.row_blocks, kernels.lanes, to) - to));
  }
  const InputScaling& input = mlp.input_scaling;
  const OutputScaling& output = mlp.output_scaling;
  packed.input_shift = rounded<T>("input_scaling.shift", filled(input.shift, input.scale, 0));
  packed.input_scale = rounded<T>("input_scaling.scale", filled(input.scale, input.shift, 1));
  packed.output_scale = rounded<T>("output_scaling.scale", filled(output.scale, output.shift, 1));
  packed.output_shift = rounded<T>("output_scaling.shift", filled(output.shift, output.scale, 0));
  packed.most_rows = break_even_rows(packed.layers, kernels.lanes);
  return packed;
}

template Packed<float> pack<float>(const Mlp&, CpuTarget);
template Packed<double> pack<double>(const Mlp&, CpuTarget);

}  // namespace lockstep::mlp

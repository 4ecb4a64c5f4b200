// Lowering: rounds an Mlp's numbers to T and lays them out for one instruction set.
#include <algorithm>
#include <cmath>
#include <string>

#include "lockstep/core/all_finite.h"
#include "lockstep/core/error.h"
#include "lockstep/core/text.h"
#include "lockstep/kernels/mlp/detail/packed.h"

namespace lockstep::mlp {
namespace {

template <class T>
void require_in_range(const std::string& field, const std::vector<double>& numbers) {
  if (all_finite<T>(numbers)) return;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isfinite(static_cast<T>(numbers[i]))) continue;
    throw Error(ErrorKind::model, {.field = field + "[" + std::to_string(i) + "]",
                                   .found = number_text(numbers[i]),
                                   .expected = "a number that fits in float32",
                                   .remedy = "evaluate the net in float64"});
  }
}

template <class T>
AlignedBuffer<T> rounded(const std::string& field, const std::vector<double>& numbers) {
  require_in_range<T>(field, numbers);
  AlignedBuffer<T> buffer(numbers.size());
  std::transform(numbers.begin(), numbers.end(), buffer.data(), [](double number) { return static_cast<T>(number); });
  return buffer;
}

// Where only one of a scaling's two vectors is given, the other is filled with what changes nothing.
std::vector<double> filled(const std::vector<double>& numbers, const std::vector<double>& other, double neutral) {
  return numbers.empty() ? std::vector<double>(other.size(), neutral) : numbers;
}

// Where blocks of `unit` outputs each end that begin at `to`: [bias, then inputs][output].
template <class T>
T* end_of_blocks(const DenseLayer& layer, const Partition& partition, std::size_t unit, T* to) {
  for (std::size_t block = 0; block < partition.blocks; ++block) to += (1 + layer.inputs) * partition[block] * unit;
  return to;
}

// Writes the partition's blocks of `unit` outputs each. Outputs past the layer's stay as they are, zeros.
template <class T>
void pack_blocks(const DenseLayer& layer, const Partition& partition, std::size_t unit, T* to) {
  // A cache line of an output's weights at a time: what one input alone has of them lies in as many lines, which of
  // wide layers are gone when the next input's are wanted.
  constexpr std::size_t kTogether = kAlignment / sizeof(double);
  std::size_t first = 0;
  for (std::size_t block = 0; block < partition.blocks; ++block) {
    const std::size_t size = partition[block] * unit, used = std::min(size, layer.outputs - first);
    for (std::size_t j = 0; j < used; ++j) to[j] = static_cast<T>(layer.bias[first + j]);
    T* rows = to + size;
    for (std::size_t k = 0; k < layer.inputs; k += kTogether) {
      const std::size_t count = std::min(kTogether, layer.inputs - k);
      for (std::size_t j = 0; j < used; ++j) {
        const double* const from = layer.weights.data() + (first + j) * layer.inputs + k;
        for (std::size_t i = 0; i < count; ++i) rows[i * size + j] = static_cast<T>(from[i]);
      }
      rows += count * size;
    }
    first += size;
    to = rows;
  }
}

// A layer that takes the tanh of the one before it begins with a block that leaves registers to tanh, if it needs more
// than one block anyway or hardly fits into one.
template <class T>
void make_room_for_tanh(const Kernels<T>& kernels, const PackedLayer<T>& before, PackedLayer<T>& layer) {
  if (!kernels.defers_tanh(before, layer) || layer.outputs <= kernels.tanh_outputs + 2) return;
  layer.tile_blocks = Partition(kernels.tanh_outputs, layer.outputs, kernels.tile_outputs);
}

template <class T>
std::size_t round_up(std::size_t count) {
  constexpr std::size_t line = kAlignment / sizeof(T);
  return (count + line - 1) / line * line;
}

}  // namespace

template <class T>
Packed<T> pack(const Mlp& mlp, CpuTarget target, PackedNumbers numbers, const PackedLayer<T>* before) {
  mlp.validate();
  require_cpu_target(target);
  Packed<T> packed;
  const Kernels<T>& kernels = kernels_for<T>(target);
  packed.kernels = &kernels;
  packed.target = target;
  packed.widest = mlp.inputs();
  std::size_t size = 0, weights = 0;
  for (std::size_t i = 0; i < mlp.layers.size(); ++i) {
    const DenseLayer& layer = mlp.layers[i];
    const std::string name = "layers[" + std::to_string(i) + "]";
    require_in_range<T>(name + ".weights", layer.weights);
    require_in_range<T>(name + ".bias", layer.bias);
    const std::size_t registers = (layer.outputs + kernels.lanes - 1) / kernels.lanes;
    const std::size_t row_numbers = (1 + layer.inputs) * registers * kernels.lanes;
    packed.layers.push_back({.inputs = layer.inputs,
                             .outputs = layer.outputs,
                             .tile_blocks = Partition(layer.outputs, kernels.tile_outputs),
                             .activation = layer.activation.kind,
                             .alpha = static_cast<T>(layer.activation.alpha),
                             .tile_weights = nullptr,
                             .row_weights = nullptr,
                             .row_panel = row_panel<T>(kernels, layer.inputs, layer.outputs)});
    const PackedLayer<T>* const previous = i > 0 ? &packed.layers[i - 1] : before;
    if (previous != nullptr) make_room_for_tanh(kernels, *previous, packed.layers[i]);
    packed.widest = std::max(packed.widest, layer.outputs);
    size += round_up<T>((1 + layer.inputs) * layer.outputs) + round_up<T>(row_numbers);
    weights += layer.inputs * layer.outputs;
  }
  std::vector<bool> thin(mlp.layers.size());
  for (std::size_t i = 0; i + 1 < mlp.layers.size(); ++i) {
    const PackedLayer<T>&layer = packed.layers[i], &next = packed.layers[i + 1];
    thin[i] = (i == 0 || !thin[i - 1]) && kernels.is_thin(layer, next);
    if (thin[i]) size += round_up<T>(thin_size(layer, next));
  }
  const auto few = [&](std::size_t i) {
    const bool in_two = thin[i] || (i > 0 && thin[i - 1]);
    return numbers == PackedNumbers::own && !in_two && kernels.has_few_inputs(packed.layers[i]);
  };
  for (std::size_t i = 0; i < mlp.layers.size(); ++i) {
    if (few(i)) size += round_up<T>((1 + mlp.layers[i].inputs) * mlp.layers[i].outputs);
  }
  packed.is_far = weights * sizeof(T) > Packed<T>::kFarBytes;
  packed.weights = AlignedBuffer<T>(size);
  T* to = packed.weights.data();
  // Where they then begin.
  const auto pack_layer = [&to, numbers](const DenseLayer& dense, const Partition& partition, std::size_t unit) {
    T* const begin = to;
    to += round_up<T>(static_cast<std::size_t>(end_of_blocks(dense, partition, unit, begin) - begin));
    if (numbers == PackedNumbers::own) pack_blocks(dense, partition, unit, begin);
    return begin;
  };
  for (std::size_t i = 0; i < mlp.layers.size(); ++i) {
    PackedLayer<T>& layer = packed.layers[i];
    layer.tile_weights = pack_layer(mlp.layers[i], layer.tile_blocks, 1);
    const Partition panels((layer.outputs + kernels.lanes - 1) / kernels.lanes, layer.row_panel);
    layer.row_weights = pack_layer(mlp.layers[i], panels, kernels.lanes);
    if (few(i)) layer.few_weights = pack_layer(mlp.layers[i], Partition(layer.outputs, 1), 1);
    if (!thin[i]) continue;
    const DenseLayer &first = mlp.layers[i], &second = mlp.layers[i + 1];
    if (numbers == PackedNumbers::own) {
      pack_thin<T, double>(layer, {first.weights.data(), first.bias.data()}, packed.layers[i + 1],
                           {second.weights.data(), second.bias.data()}, to);
    }
    layer.thin_weights = to;
    to += round_up<T>(thin_size(layer, packed.layers[i + 1]));
  }
  const InputScaling& input = mlp.input_scaling;
  const OutputScaling& output = mlp.output_scaling;
  packed.input_shift = rounded<T>("input_scaling.shift", filled(input.shift, input.scale, 0));
  packed.input_scale = rounded<T>("input_scaling.scale", filled(input.scale, input.shift, 1));
  packed.output_scale = rounded<T>("output_scaling.scale", filled(output.scale, output.shift, 1));
  packed.output_shift = rounded<T>("output_scaling.shift", filled(output.shift, output.scale, 0));
  packed.most_rows = schedule_rests(packed, wide_pipes(target));
  kernels.make_steps(packed);
  return packed;
}

template Packed<float> pack<float>(const Mlp&, CpuTarget, PackedNumbers, const PackedLayer<float>*);
template Packed<double> pack<double>(const Mlp&, CpuTarget, PackedNumbers, const PackedLayer<double>*);

}  // namespace lockstep::mlp

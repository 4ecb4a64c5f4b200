// A dense layer as a step: through the MLP kernels, over lanes or, where only few samples are left, sample by sample.
#pragma once

#include <algorithm>
#include <cstddef>

#include "lockstep/kernels/graph/detail/program.h"

namespace lockstep::graph {

inline std::size_t round_up(std::size_t count, std::size_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

// Numbers of scratch a layer needs: the samples it takes one by one, before and after it.
template <class T>
std::size_t dense_scratch(const mlp::Packed<T>& layer) {
  const std::size_t lanes = layer.kernels->lanes, after = round_up(layer.outputs(), lanes);
  return std::max(layer.most_rows * (round_up(layer.inputs(), lanes) + after), after);
}

template <class T>
void dense_step(const Step<T>& step, const Tile<T>& tile) {
  const mlp::Packed<T>& net = *step.layer;
  const mlp::Kernels<T>& kernels = *net.kernels;
  const mlp::PackedLayer<T>& layer = net.layers.front();
  const T* x = rows_at(tile, step.a.base, step.a.row);
  T* y = rows_at(tile, step.out_base, step.out);
  const std::size_t samples = tile.samples;
  if (samples >= kernels.strip() && (step.takes_tanh || step.leaves_tanh)) {
    T* const pending = step.takes_tanh ? rows_at(tile, step.a.base, step.a.row) : nullptr;
    kernels.layer_lanes_beside_tanh(layer, x, pending, tile.stride, y, tile.stride, step.leaves_tanh);
    return;
  }
  // By rows the samples are moved number by number: worth it for half a register of them.
  if (2 * samples > kernels.lanes || net.rest[samples].registers > 0) {
    kernels.layer_lanes(layer, x, tile.stride, y, tile.stride, static_cast<int>(tile.registers));
    return;
  }
  const std::size_t in = round_up(layer.inputs, kernels.lanes), out = round_up(layer.outputs, kernels.lanes);
  T* const before = tile.scratch;
  T* const after = before + samples * in;
  for (std::size_t k = 0; k < layer.inputs; ++k, x += tile.stride) {
    for (std::size_t sample = 0; sample < samples; ++sample) before[sample * in + k] = x[sample];
  }
  kernels.layer_rows(layer, before, static_cast<std::ptrdiff_t>(in), after, out, samples);
  // The lanes without a sample repeat the last one: no number that some sample does not have anyway.
  const std::size_t used = tile.registers * kernels.lanes;
  for (std::size_t j = 0; j < layer.outputs; ++j, y += tile.stride) {
    for (std::size_t sample = 0; sample < samples; ++sample) y[sample] = after[sample * out + j];
    std::fill(y + samples, y + used, y[samples - 1]);
  }
}

// Numbers of scratch that dense_by_sample takes for each sample.
template <class T>
std::size_t dense_sample_scratch(const mlp::Packed<T>& layer) {
  return round_up(layer.outputs(), layer.kernels->lanes);
}

// Rows' kernels write whole registers, past a sample's outputs.
template <class T>
void dense_by_sample(const Step<T>& step, const Tile<T>& tile) {
  const mlp::PackedLayer<T>& layer = step.layer->layers.front();
  const std::size_t made = dense_sample_scratch(*step.layer);
  step.layer->kernels->layer_rows(layer, rows_at(tile, step.a.base, step.a.row),
                                  static_cast<std::ptrdiff_t>(tile.between_samples), tile.scratch, made, tile.samples);
  T* y = rows_at(tile, step.out_base, step.out);
  const T* from = tile.scratch;
  for (std::size_t sample = 0; sample < tile.samples; ++sample, from += made, y += tile.between_samples) {
    std::copy_n(from, layer.outputs, y);
  }
}

}  // namespace lockstep::graph

// Lays out a net for reverse mode, and replaces its weights.
#include <algorithm>

#include "lockstep/kernels/mlp/detail/reverse_packed.h"
#include "lockstep/kernels/mlp/parameters.h"

namespace lockstep::mlp {
namespace {

// Gives each array its place and counts them up.
template <class T>
class Layout {
 public:
  explicit Layout(bool pad) : pad_(pad) {}
  std::size_t take(std::size_t rows) {
    const std::size_t first = size_;
    size_ += pad_ ? padded<T>(rows) : rows;
    return first;
  }
  std::size_t size() const { return size_; }

 private:
  bool pad_;
  std::size_t size_ = 0;
};

template <class T>
void place(ReverseNet<T>& net, Places ReverseLayer<T>::*places, bool pad, std::size_t& activations,
           std::size_t& cotangents) {
  Layout<T> record(pad), bars(pad);
  std::size_t x = record.take(net.packed.inputs());
  for (ReverseLayer<T>& layer : net.layers) {
    Places& to = layer.*places;
    const bool last = &layer == &net.layers.back();
    const bool from_value = derivative_from_value(layer.forward.activation);
    const bool linear = layer.forward.activation == ActivationKind::identity;
    to.x = x;
    if (!last || (from_value && !linear)) to.y = record.take(layer.forward.outputs);
    if (!from_value) to.z = record.take(layer.forward.outputs);
    to.cotangent = bars.take(layer.forward.outputs);
    x = to.y;
  }
  activations = record.size();
  cotangents = bars.size();
}

// Blocks of [1 + input][output of the block], the bias first; see pack.cpp.
template <class T, class Weight, class Bias>
void fill_blocks(const Partition& partition, std::size_t inputs, std::size_t outputs, T* to, Weight weight, Bias bias) {
  std::size_t first = 0;
  for (std::size_t block = 0; block < partition.blocks; ++block) {
    const std::size_t size = partition[block];
    const std::size_t wanted = std::min(size, outputs - first);
    for (std::size_t j = 0; j < wanted; ++j) to[j] = bias(first + j);
    to += size;
    for (std::size_t k = 0; k < inputs; ++k, to += size) {
      for (std::size_t j = 0; j < wanted; ++j) to[j] = weight(first + j, k);
    }
    first += size;
  }
}

}  // namespace

template <class T>
ReverseNet<T> prepare_reverse(const Mlp& mlp, CpuTarget target) {
  ReverseNet<T> net;
  net.packed = pack<T>(mlp, target);
  net.kernels = &reverse_kernels_for<T>(target);
  const std::size_t lanes = net.packed.kernels->lanes;
  const auto registers = [lanes](std::size_t count) { return (count + lanes - 1) / lanes * lanes; };
  std::size_t size = 0;
  for (const PackedLayer<T>& layer : net.packed.layers) {
    size += padded<T>((1 + layer.outputs) * layer.inputs) + padded<T>((1 + layer.outputs) * registers(layer.inputs)) +
            kNarrow * padded<T>(layer.outputs);
  }
  net.weights = AlignedBuffer<T>(size);
  T* to = net.weights.data();
  Layout<T> sums(true);
  for (const PackedLayer<T>& forward : net.packed.layers) {
    ReverseLayer<T> layer{.forward = forward, .linear = forward, .back = forward};
    layer.linear.activation = ActivationKind::identity;
    layer.back.activation = ActivationKind::identity;
    std::swap(layer.back.inputs, layer.back.outputs);
    layer.back.tile_blocks = Partition(forward.inputs, net.packed.kernels->tile_outputs);
    T* const first = net.packed.weights.data();
    layer.tile_weights = first + (forward.tile_weights - first);
    layer.row_weights = first + (forward.row_weights - first);
    layer.back_tile_weights = to;
    to += padded<T>((1 + forward.outputs) * forward.inputs);
    layer.back_row_weights = to;
    to += padded<T>((1 + forward.outputs) * registers(forward.inputs));
    layer.columns = to;
    to += kNarrow * padded<T>(forward.outputs);
    layer.back.tile_weights = layer.back_tile_weights;
    layer.back.row_weights = layer.back_row_weights;
    layer.parameters = net.parameters;
    net.parameters += forward.outputs * (forward.inputs + 1);
    layer.sum = layer.sum_by_input()
                    ? sums.take((1 + forward.inputs) * padded<T>(forward.outputs))
                    : sums.take(forward.outputs * padded<T>(forward.inputs) + padded<T>(forward.outputs));
    net.layers.push_back(layer);
  }
  net.sample_sum = sums.size();
  place(net, &ReverseLayer<T>::tile, false, net.tile_activations, net.tile_cotangents);
  place(net, &ReverseLayer<T>::sample, true, net.sample_activations, net.sample_cotangents);
  Layout<T> chunk(false);
  for (ReverseLayer<T>& layer : net.layers) {
    const bool last = &layer == &net.layers.back();
    const ActivationKind kind = layer.forward.activation;
    layer.chunk_y = chunk.take(layer.forward.outputs);
    if (!derivative_from_value(kind) || (last && kind != ActivationKind::identity)) {
      layer.chunk_z = chunk.take(layer.forward.outputs);
    }
  }
  net.chunk_rows = chunk.size();
  repack(net, gather_parameters<T>(mlp).data());
  return net;
}

template <class T>
void repack(ReverseNet<T>& net, const T* parameters) {
  const std::size_t lanes = net.packed.kernels->lanes;
  const auto whole = [lanes](std::size_t count) {
    return Partition((count + lanes - 1) / lanes * lanes, ~std::size_t(0));
  };
  for (ReverseLayer<T>& layer : net.layers) {
    const std::size_t inputs = layer.forward.inputs, outputs = layer.forward.outputs;
    const T* const w = parameters + layer.parameters;
    const T* const b = w + inputs * outputs;
    const auto weight = [=](std::size_t j, std::size_t k) { return w[j * inputs + k]; };
    const auto transposed = [=](std::size_t k, std::size_t j) { return w[j * inputs + k]; };
    const auto bias = [=](std::size_t j) { return b[j]; };
    const auto none = [](std::size_t) { return T(0); };
    fill_blocks(layer.forward.tile_blocks, inputs, outputs, layer.tile_weights, weight, bias);
    fill_blocks(whole(outputs), inputs, outputs, layer.row_weights, weight, bias);
    fill_blocks(layer.back.tile_blocks, outputs, inputs, layer.back_tile_weights, transposed, none);
    if (layer.narrow()) {
      for (std::size_t k = 0; k < inputs; ++k) {
        for (std::size_t j = 0; j < outputs; ++j) layer.columns[k * padded<T>(outputs) + j] = weight(j, k);
      }
    } else {
      fill_blocks(whole(inputs), outputs, inputs, layer.back_row_weights, transposed, none);
    }
  }
}

template ReverseNet<float> prepare_reverse<float>(const Mlp&, CpuTarget);
template ReverseNet<double> prepare_reverse<double>(const Mlp&, CpuTarget);
template void repack<float>(ReverseNet<float>&, const float*);
template void repack<double>(ReverseNet<double>&, const double*);

}  // namespace lockstep::mlp

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

}  // namespace

template <class T>
ReverseNet<T> prepare_reverse(const Mlp& mlp, CpuTarget target) {
  ReverseNet<T> net;
  net.packed = pack<T>(mlp, target, PackedNumbers::later);
  net.kernels = &reverse_kernels_for<T>(target);
  const std::size_t lanes = net.packed.kernels->lanes;
  const auto registers = [lanes](std::size_t count) { return (count + lanes - 1) / lanes * lanes; };
  std::size_t size = 0;
  for (const PackedLayer<T>& layer : net.packed.layers) {
    size += padded<T>((1 + layer.outputs) * registers(layer.inputs)) + kNarrow * padded<T>(layer.outputs);
  }
  net.weights = AlignedBuffer<T>(size);
  T* to = net.weights.data();
  Layout<T> sums(true);
  for (const PackedLayer<T>& forward : net.packed.layers) {
    ReverseLayer<T> layer{.forward = forward,
                          .linear = forward,
                          .back = forward,
                          .back_blocks = Partition(forward.inputs, net.packed.kernels->tile_outputs)};
    layer.linear.activation = ActivationKind::identity;
    layer.back.activation = ActivationKind::identity;
    std::swap(layer.back.inputs, layer.back.outputs);
    layer.back.row_panel = row_panel(*net.packed.kernels, layer.back.inputs, layer.back.outputs);
    layer.back.tile_weights = nullptr;
    T* const first = net.packed.weights.data();
    layer.tile_weights = first + (forward.tile_weights - first);
    layer.thin_weights = forward.thin_weights == nullptr ? nullptr : first + (forward.thin_weights - first);
    layer.row_weights = first + (forward.row_weights - first);
    layer.back_row_weights = to;
    to += padded<T>((1 + forward.outputs) * registers(forward.inputs));
    layer.columns = to;
    to += kNarrow * padded<T>(forward.outputs);
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
  net.flat = AlignedBuffer<T>(net.parameters);
  for (ReverseLayer<T>& layer : net.layers) layer.weights = net.flat.data() + layer.parameters;
  gather_parameters(mlp, net.flat.data());
  repack_tiles(net, net.flat.data());
  repack_samples(net, net.flat.data());
  return net;
}

template <class T>
void repack_tiles(ReverseNet<T>& net, const T* parameters) {
  const auto dense = [parameters](const ReverseLayer<T>& layer) {
    const T* const weights = parameters + layer.parameters;
    return DenseWeights<T>{weights, weights + layer.forward.inputs * layer.forward.outputs};
  };
  for (std::size_t i = 0; i < net.layers.size(); ++i) {
    ReverseLayer<T>& layer = net.layers[i];
    if (layer.thin_weights != nullptr) {
      const ReverseLayer<T>& next = net.layers[i + 1];
      pack_thin<T, T>(layer.forward, dense(layer), next.forward, dense(next), layer.thin_weights);
    }
    const std::size_t inputs = layer.forward.inputs;
    const T* row = parameters + layer.parameters;
    const T* bias = row + inputs * layer.forward.outputs;
    T* to = layer.tile_weights;
    for (std::size_t block = 0; block < layer.forward.tile_blocks.blocks; ++block) {
      const std::size_t size = layer.forward.tile_blocks[block];
      std::copy_n(bias, size, to);
      net.kernels->transpose(row, size, inputs, to + size, size);
      bias += size;
      row += size * inputs;
      to += (1 + inputs) * size;
    }
  }
  if (parameters != net.flat.data()) std::copy_n(parameters, net.parameters, net.flat.data());
}

template <class T>
void repack_layer(Packed<T>& net, std::span<const LayerPart<T>> parts, std::vector<T>& scratch) {
  const PackedLayer<T>& layer = net.layers.front();
  const std::size_t inputs = layer.inputs, outputs = layer.outputs;
  T* const first = net.weights.data();
  T* to = first + (layer.tile_weights - first);
  const auto transpose = reverse_kernels_for<T>(net.target).transpose;
  const bool back = parts.size() == 1 && parts[0].bias == nullptr;
  const T* weights = parts[0].weights;
  const T* bias = parts[0].bias;
  if (parts.size() > 1) {  // as one layer's
    scratch.resize(outputs * (inputs + 1));
    T* part_weights = scratch.data();
    T* part_bias = part_weights + outputs * inputs;
    weights = part_weights;
    bias = part_bias;
    for (const LayerPart<T>& part : parts) {
      if (part.bias == nullptr) {
        transpose(part.weights, inputs, part.outputs, part_weights, inputs);
        std::fill_n(part_bias, part.outputs, T(0));
      } else {
        std::copy_n(part.weights, part.outputs * inputs, part_weights);
        std::copy_n(part.bias, part.outputs, part_bias);
      }
      part_weights += part.outputs * inputs;
      part_bias += part.outputs;
    }
  }
  for (std::size_t block = 0, j = 0; block < layer.tile_blocks.blocks; j += layer.tile_blocks[block++]) {
    const std::size_t size = layer.tile_blocks[block];
    if (back) {
      std::fill_n(to, size, T(0));
      for (std::size_t k = 0; k < inputs; ++k) std::copy_n(weights + k * outputs + j, size, to + (1 + k) * size);
    } else {
      std::copy_n(bias + j, size, to);
      transpose(weights + j * inputs, size, inputs, to + size, size);
    }
    to += (1 + inputs) * size;
  }
}

namespace {
// pack(first, count, to, width) for each panel of a layer's row weights: of outputs first .. first + count, at `to`, in
// rows of `width`.
template <class T, class Pack>
void each_panel(const ReverseNet<T>& net, const PackedLayer<T>& layer, T* to, const Pack& pack) {
  const std::size_t lanes = net.packed.kernels->lanes;
  const Partition panels((layer.outputs + lanes - 1) / lanes, layer.row_panel);
  std::size_t first = 0;
  for (std::size_t panel = 0; panel < panels.blocks; ++panel) {
    const std::size_t width = panels[panel] * lanes;
    pack(first, std::min(width, layer.outputs - first), to, width);
    first += width;
    to += (1 + layer.inputs) * width;
  }
}
// `w` [output][input].
template <class T>
void pack_back_rows(const ReverseNet<T>& net, ReverseLayer<T>& layer, const T* w) {
  const std::size_t inputs = layer.forward.inputs, outputs = layer.forward.outputs;
  each_panel(net, layer.back, layer.back_row_weights,
             [&](std::size_t first, std::size_t count, T* to, std::size_t width) {
               for (std::size_t j = 0; j < outputs; ++j)
                 std::copy_n(w + j * inputs + first, count, to + (1 + j) * width);
             });
}
}  // namespace

template <class T>
void repack_samples(ReverseNet<T>& net, const T* parameters) {
  for (ReverseLayer<T>& layer : net.layers) {
    const std::size_t inputs = layer.forward.inputs, outputs = layer.forward.outputs;
    const T* const w = parameters + layer.parameters;
    each_panel(net, layer.forward, layer.row_weights,
               [&](std::size_t first, std::size_t count, T* to, std::size_t width) {
                 std::copy_n(w + inputs * outputs + first, count, to);
                 net.kernels->transpose(w + first * inputs, count, inputs, to + width, width);
                 if (!layer.narrow()) return;
                 for (std::size_t k = 0; k < inputs; ++k) {
                   std::copy_n(to + (1 + k) * width, count, layer.columns + k * padded<T>(outputs) + first);
                 }
               });
    if (!layer.narrow()) pack_back_rows(net, layer, w);
  }
}

template <class T>
void pack_narrow_back_rows(ReverseNet<T>& net) {
  for (ReverseLayer<T>& layer : net.layers) {
    if (layer.narrow()) pack_back_rows(net, layer, layer.weights);
  }
}

template <class T>
void copy(const MatrixBatchView<const T>& from, const MatrixBatchView<T>& to) {
  for (std::size_t sample = 0; sample < from.samples; ++sample) {
    for (std::size_t row = 0; row < from.rows; ++row) {
      const T* x = &from(sample, row, 0);
      T* y = &to(sample, row, 0);
      for (std::size_t c = 0; c < from.columns; ++c, x += from.column_stride, y += to.column_stride) *y = *x;
    }
  }
}

template <class T>
void scale_rows(T* rows, std::size_t count, std::size_t stride, const AlignedBuffer<T>& by, Scaled scaled) {
  for (std::size_t row = 0; row < count; ++row, rows += stride) {
    for (std::size_t c = 0; c < by.size(); ++c) rows[c] = scaled == Scaled::divided ? rows[c] / by[c] : rows[c] * by[c];
  }
}

template ReverseNet<float> prepare_reverse<float>(const Mlp&, CpuTarget);
template ReverseNet<double> prepare_reverse<double>(const Mlp&, CpuTarget);
template void repack_tiles<float>(ReverseNet<float>&, const float*);
template void repack_tiles<double>(ReverseNet<double>&, const double*);
template void repack_samples<float>(ReverseNet<float>&, const float*);
template void repack_samples<double>(ReverseNet<double>&, const double*);
template void pack_narrow_back_rows<float>(ReverseNet<float>&);
template void pack_narrow_back_rows<double>(ReverseNet<double>&);
template void repack_layer<float>(Packed<float>&, std::span<const LayerPart<float>>, std::vector<float>&);
template void repack_layer<double>(Packed<double>&, std::span<const LayerPart<double>>, std::vector<double>&);
template void copy<float>(const MatrixBatchView<const float>&, const MatrixBatchView<float>&);
template void copy<double>(const MatrixBatchView<const double>&, const MatrixBatchView<double>&);
template void scale_rows<float>(float*, std::size_t, std::size_t, const AlignedBuffer<float>&, Scaled);
template void scale_rows<double>(double*, std::size_t, std::size_t, const AlignedBuffer<double>&, Scaled);

}  // namespace lockstep::mlp

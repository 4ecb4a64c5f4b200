// A net laid out in the order in which the kernels read it, and the table of kernels that read it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/kernels/tile.h"

namespace lockstep::mlp {

template <class T>
struct Packed;

template <class T>
struct PackedLayer;

// Applies an activation to `registers` registers of each of `rows` rows, `stride` numbers apart.
template <class T>
using ActivationPass = void (*)(T* values, std::size_t rows, std::size_t stride, std::size_t registers, T alpha);

// y[j][lane] = finish(bias[j] + sum over k of w[j][k] x[k][lane]) for some outputs and one or two registers of lanes;
// strides count numbers between components.
template <class T>
using TileBlock = void (*)(const T* __restrict x, std::size_t x_stride, std::size_t inputs, const T* __restrict w,
                           T* __restrict y, std::size_t y_stride);
// The same for two registers beside tanh of `count` rows, in place, at most as many as inputs: first of `lead` rows,
// less than count, then of one before the products of each input. They may be rows of x.
template <class T>
using TanhBlock = void (*)(const T* x, std::size_t x_stride, std::size_t inputs, const T* __restrict w, T* __restrict y,
                           std::size_t y_stride, T* rows, std::size_t rows_stride, std::size_t count, std::size_t lead);

// Two layers at once: two registers of lanes, as rows of numbers.
template <class T>
struct ThinRows {
  const T* x;  // inputs of the first layer
  std::size_t x_stride;
  T* values;  // of the neurons; relu leaves none
  std::size_t values_stride;
  T* y;  // of the second layer
  std::size_t y_stride;
  const T* next_values = nullptr;  // brought closer where the block prefetches
};
// The sums of the second layer, or where it is relu their relu.
template <class T>
using ThinBlock = void (*)(const PackedLayer<T>& layer, const ThinRows<T>& rows, bool relu);

// Where the numbers of a strip lie between layers: a half of the workspace, or the inputs or outputs of the net.
enum class Place : std::uint8_t { half0, half1, outside };

// One thing that is done to a strip of two registers on its way through the net.
template <class T>
struct StripStep {
  // One of these.
  TileBlock<T> products = nullptr;
  TanhBlock<T> products_beside_tanh = nullptr;  // of some rows of `values`
  ActivationPass<T> activation = nullptr;       // of `to`, in place
  ThinBlock<T> two_layers = nullptr;            // with the neurons between them in `values`

  Place from = Place::outside, values = Place::outside, to = Place::outside;
  bool relu = false;            // of two layers' sums
  T alpha = 0;                  // of the activation
  std::size_t row = 0;          // the first of `to`
  std::size_t rows = 0;         // of `from` for products, of `to` for the activation
  std::size_t first_value = 0;  // of the rows of `values`
  std::size_t value_count = 0;
  std::size_t lead = 0;
  std::size_t fetches = 1;     // how often what comes next is brought closer
  const T* weights = nullptr;  // of products
  std::size_t layer = 0;       // the first of two
};

// What one instruction set offers for one precision.
template <class T>
struct Kernels {
  std::size_t lanes;                   // numbers in a register
  std::size_t tile_outputs;            // most outputs of a tile block: each takes two registers of lanes
  std::span<const int> row_registers;  // most registers of outputs in a row block of 1, 2... samples
  void (*evaluate)(const Packed<T>&, MatrixView<const T> in, MatrixView<T> out, T* workspace);
  void (*evaluate_tile)(const Packed<T>&, const TileView<T>&, T* workspace);
  // The pieces, for plans of graphs (kernels/graph): one layer over one or two registers of lanes [feature][lane], or
  // over samples [sample][feature], y having room for whole registers; samples of a view into lanes and back.
  void (*layer_lanes)(const PackedLayer<T>&, const T* x, std::size_t x_stride, T* y, std::size_t y_stride,
                      int registers);
  // layer_lanes over two registers beside a layer that leaves its tanh to the next one, where defers_tanh says it may:
  // `pending` is x, holding sums and after the call tanh, or null; `defers`: y is left holding sums.
  bool (*defers_tanh)(const PackedLayer<T>& layer, const PackedLayer<T>& next);
  // Whether the two layers are evaluated in one pass: the first then needs its thin_weights.
  bool (*is_thin)(const PackedLayer<T>& layer, const PackedLayer<T>& next);
  // Whether the layer has so few inputs that all stay in registers: it then needs few_weights.
  bool (*has_few_inputs)(const PackedLayer<T>& layer);
  // The steps of a packed net, whose weights then stay where they are.
  void (*make_steps)(Packed<T>&);
  std::size_t tanh_outputs;  // the first block of a layer that takes another's tanh had best hold as many
  void (*layer_lanes_beside_tanh)(const PackedLayer<T>&, const T* x, T* pending, std::size_t x_stride, T* y,
                                  std::size_t y_stride, bool defers);
  void (*layer_rows)(const PackedLayer<T>&, const T* x, std::ptrdiff_t x_stride, T* y, std::size_t y_stride,
                     std::size_t rows);
  void (*load)(const MatrixView<const T>&, std::size_t first, std::size_t count, int registers, T* to,
               std::size_t to_stride);
  void (*store)(const T* from, std::size_t from_stride, int registers, const MatrixView<T>&, std::size_t first,
                std::size_t count);
  // In place; null for identity and relu.
  ActivationPass<T> (*activation)(ActivationKind);

  // Lanes that go through the whole net together: two registers.
  std::size_t strip() const { return 2 * lanes; }
};

// Defined in kernels_f32.cpp and kernels_f64.cpp.
template <class T>
const Kernels<T>& kernels_for(CpuTarget target);

// `total` outputs (or registers of outputs) in as few blocks of at most `most` as will hold them, sizes differing by
// one at most: a small last block could not hide the latency of its additions.
struct Partition {
  std::size_t blocks;
  std::size_t first;  // outputs of block 0
  std::size_t size;   // of each later block
  std::size_t wide;   // but one more before this one

  Partition(std::size_t total, std::size_t most) : blocks(1), first(total), size(total), wide(0) {
    if (total <= most) return;  // spares the small nets' calls three divisions
    blocks = (total - 1) / most + 1;
    size = total / blocks;
    wide = total % blocks;
    first = size + (wide > 0 ? 1 : 0);
  }
  // A first block of `head` outputs, less than `total`, and the others so.
  Partition(std::size_t head, std::size_t total, std::size_t most) : Partition(total - head, most) {
    first = head;
    ++blocks;
    ++wide;
  }
  std::size_t operator[](std::size_t block) const { return block == 0 ? first : size + (block < wide ? 1 : 0); }
};

template <class T>
struct PackedLayer {
  std::size_t inputs;
  std::size_t outputs;
  Partition tile_blocks;  // of outputs
  ActivationKind activation;
  T alpha;
  // Block after block, each the bias, then for every input its weights: [1 + input][output of the block].
  const T* tile_weights;
  // The same in panels of registers of outputs, the last register padded by zeros: [panel][1 + input][output of it].
  const T* row_weights;
  std::size_t row_panel;  // most registers of a panel
  // Null, or of this layer and the next one together: that one's biases, then for every output of this layer its bias,
  // the weights of its inputs, and its weights to the next layer's outputs.
  const T* thin_weights = nullptr;
  // Null, or for every output its bias and the weights of its inputs: of nets that are only evaluated.
  const T* few_weights = nullptr;
};

// How the samples that do not fill a strip are evaluated: as many registers of lanes (0, 1 or 2), the others by rows.
struct Rest {
  std::uint8_t registers = 0;
  std::uint8_t rows = 0;
};

// The largest strip of any instruction set, in lanes.
inline constexpr std::size_t kMostLanes = 32;

template <class T>
struct Packed {
  const Kernels<T>* kernels;
  CpuTarget target;
  std::vector<PackedLayer<T>> layers;
  std::vector<StripStep<T>> steps;
  AlignedBuffer<T> weights;      // what the layers point into
  AlignedBuffer<T> input_shift;  // these four are empty or hold one number a feature
  AlignedBuffer<T> input_scale;
  AlignedBuffer<T> output_scale;
  AlignedBuffer<T> output_shift;
  std::size_t widest;                 // largest number of components between layers, inputs and outputs included
  std::array<Rest, kMostLanes> rest;  // [samples], less than a strip
  std::size_t most_rows;              // of any rest

  std::size_t inputs() const { return layers.front().inputs; }
  std::size_t outputs() const { return layers.back().outputs; }
  // Numbers in one of the two halves of the workspace.
  std::size_t half() const {
    const std::size_t lanes = kernels->lanes;
    const std::size_t padded = (widest + lanes - 1) / lanes * lanes;
    const std::size_t size = std::max(widest * kernels->strip(), padded * std::max<std::size_t>(most_rows, 1));
    return (size + kAlignment / sizeof(T) - 1) / (kAlignment / sizeof(T)) * (kAlignment / sizeof(T));
  }
  // Whether two strips, evaluated together, stay in the first-level cache beside the weights.
  bool pairs_strips() const { return half() * sizeof(T) <= 4096; }
  // Strips that go through the net side by side where its weights come from memory: each then comes once for all of
  // them. 2048-2048-2048 takes 0.5 to 0.6 of the time from 256 samples on (a Zen 5, whose third-level cache still
  // brings 18 MB in time).
  static constexpr std::size_t kFarStrips = 8;
  static constexpr std::size_t kFarBytes = std::size_t{24} << 20;
  bool is_far = false;
  // Numbers in the workspace: the halves, then inputs and outputs of two strips each, or the halves of other strips.
  std::size_t workspace() const {
    const std::size_t more = is_far ? kFarStrips - 1 : pairs_strips() ? 1 : 0;
    return 2 * half() + std::max(2 * (inputs() + outputs()) * kernels->strip(), more * 2 * half());
  }
};

// A layer's weights [output][input] and biases, as they come.
template <class Number>
struct DenseWeights {
  const Number* weights;
  const Number* bias;
};

// Numbers in thin_weights.
template <class T>
std::size_t thin_size(const PackedLayer<T>& layer, const PackedLayer<T>& next) {
  return next.outputs * (1 + layer.outputs) + layer.outputs * (1 + layer.inputs);
}

template <class T, class Number>
void pack_thin(const PackedLayer<T>& layer, DenseWeights<Number> first, const PackedLayer<T>& next,
               DenseWeights<Number> second, T* to) {
  const auto copy = [&to](Number number) { *to++ = static_cast<T>(number); };
  for (std::size_t o = 0; o < next.outputs; ++o) copy(second.bias[o]);
  for (std::size_t j = 0; j < layer.outputs; ++j) {
    copy(first.bias[j]);
    for (std::size_t k = 0; k < layer.inputs; ++k) copy(first.weights[j * layer.inputs + k]);
    for (std::size_t o = 0; o < next.outputs; ++o) copy(second.weights[o * layer.outputs + j]);
  }
}

// How many 512-bit multiply-adds a core begins in a cycle: beside two of them loads take time, and what comes from
// beyond the second-level cache more, most of it where that lies far away (a Xeon's mesh, 31 GB/s a core; a Zen 5 reads
// 119).
enum class WidePipes { one, two, two_far };
// Measured for AVX-512, once in a process, but for the way, which is the vendor's; `one` for other instruction sets.
WidePipes wide_pipes(CpuTarget target);

// What a layer takes over one or two registers of lanes, and for some samples by rows, in fused multiply-adds of one
// register; `bytes` of weights there are for the whole net by rows.
template <class T>
std::size_t layer_tile_cost(const PackedLayer<T>& layer, std::size_t registers, WidePipes pipes);
template <class T>
std::size_t layer_row_cost(const PackedLayer<T>& layer, const Kernels<T>& kernels, std::size_t rows, std::size_t bytes,
                           WidePipes pipes);

// Chooses the cheapest way for every number of samples; also returns the largest number of rows among them.
template <class T>
std::size_t schedule_rests(Packed<T>& net, WidePipes pipes);

// Row weights of large layers lie in panels as wide as one sample's blocks, which then read them from end to end: rows
// of thousands of numbers, of which a block reads some hundred, are no stream that the processor reads ahead of. So
// many registers, of a layer or of its transpose; more than any has of those that lie in one block, as they do where
// there are few inputs, whose rows fused_sample-inl.h reads as a whole.
template <class T>
std::size_t row_panel(const Kernels<T>& kernels, std::size_t inputs, std::size_t outputs) {
  constexpr std::size_t kMostBlockBytes = 131072, kFewInputs = 16;
  const std::size_t registers = (outputs + kernels.lanes - 1) / kernels.lanes;
  const bool panels = inputs > kFewInputs && (1 + inputs) * registers * kernels.lanes * sizeof(T) > kMostBlockBytes;
  return panels ? static_cast<std::size_t>(kernels.row_registers[0]) : ~std::size_t(0);
}

// Whether weights are written, or left zeros for who replaces them anyway: then they are only looked at, and there are
// no few_weights.
enum class PackedNumbers { own, later };

// `before`: of a layer by itself the one whose outputs it multiplies, where that may leave its tanh to it; else null.
template <class T>
Packed<T> pack(const Mlp& mlp, CpuTarget target, PackedNumbers numbers = PackedNumbers::own,
               const PackedLayer<T>* before = nullptr);

}  // namespace lockstep::mlp

namespace lockstep {
template <class T>
struct Plan<T>::Packed : mlp::Packed<T> {};
}  // namespace lockstep

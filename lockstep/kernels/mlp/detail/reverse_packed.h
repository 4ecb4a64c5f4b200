// A net laid out for evaluation and for its transpose, with weights that can be replaced.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/core/matrix_batch_view.h"
#include "lockstep/kernels/mlp/derivative_plan.h"
#include "lockstep/kernels/mlp/detail/packed.h"
#include "lockstep/kernels/mlp/regression.h"
#include "lockstep/kernels/mlp/reverse.h"

namespace lockstep::mlp {

// Where a layer's numbers lie in the records, counted in rows: a row is kTileLanes numbers of a tile's record and one
// of a sample's, where each array is padded to whole kSlots.
struct Places {
  std::size_t x = 0;          // inputs of the layer
  std::size_t y = kNone;      // outputs after the activation
  std::size_t z = kNone;      // sums before the activation
  std::size_t cotangent = 0;  // of the sums, in the record of cotangents

  static constexpr std::size_t kNone = ~std::size_t(0);
};

// Sums of weight gradients run in this many interleaved parts, on every instruction set.
template <class T>
inline constexpr std::size_t kSlots = 64 / sizeof(T);

// Layers with at most this many inputs send their cotangents back by sums over slots, not over inputs side by side.
inline constexpr std::size_t kNarrow = 8;

// Whether the derivative is cheaply and exactly enough known from the activation's value: then the sums before it are
// not recorded.
constexpr bool derivative_from_value(ActivationKind kind) {
  return kind == ActivationKind::identity || kind == ActivationKind::relu || kind == ActivationKind::tanh ||
         kind == ActivationKind::sigmoid;
}

template <class T>
struct ReverseLayer {
  PackedLayer<T> forward;
  PackedLayer<T> linear;  // the same without its activation
  PackedLayer<T> back;    // transposed, no bias, no activation; by rows only
  Partition back_blocks;  // of inputs, for the tile path
  const T* weights;       // [output][input]
  T* tile_weights;        // what forward and back read, for repack
  T* thin_weights;        // null where forward has none
  T* row_weights;
  T* back_row_weights;
  T* columns;              // [input][output, padded to kSlots] of a narrow layer
  std::size_t parameters;  // offset of the weights in the flat vector; the bias follows them
  Places tile, sample;
  std::size_t sum;  // offset in the sample path's sum of gradients
  // Rows of a tile in the workspace of regression: values, which cotangents replace on the way back; sums before the
  // activation, or a copy of the values, where the derivative needs them.
  std::size_t chunk_y, chunk_z = Places::kNone;

  bool narrow() const { return forward.inputs <= kNarrow; }
  // The sample path's sums are [1 + input][output] with the bias first, or [output][input] followed by the bias; the
  // inner index is padded to kSlots.
  bool sum_by_input() const { return forward.outputs >= forward.inputs; }
};

template <class T>
struct ReverseNet;

template <class T>
struct RegressionCost {
  Residual residual;
  const T* deltas;       // [output] of huber
  const T* weights;      // [output] of the loss
  const T* bar_weights;  // [output] of its derivative: weights times the batch's scale
};

// Neighbouring tiles of TiledSamples.
template <class T>
struct RegressionChunk {
  const T* inputs;
  const T* targets;
  std::size_t tiles;
  std::size_t samples;
  const T* factors;  // null: 1
};

template <class T>
struct ReverseKernels {
  void (*evaluate_tile)(const ReverseNet<T>&, const TileView<T>&, T* activations, T* workspace);
  void (*reverse_tile)(const ReverseNet<T>&, const T* activations, const T* out_bar, T* in_bar, T* cotangents,
                       int lanes, T* workspace, const T* next_activations, InBar in_bar_is);
  void (*accumulate_tiles)(const ReverseNet<T>&, std::span<const RecordedTile<T>>, T* gradient);
  void (*evaluate_sample)(const ReverseNet<T>&, const T* in, T* out, T* activations, T* workspace);
  void (*reverse_sample)(const ReverseNet<T>&, const T* activations, const T* out_bar, T* in_bar, T* cotangents,
                         T* workspace);
  void (*accumulate_samples)(const ReverseNet<T>&, std::span<const RecordedSample<T>>, T* sum);
  // The chunk's weighted cost; adds its derivative to the gradient unless that is null.
  double (*regression)(const ReverseNet<T>&, const RegressionCost<T>&, const RegressionChunk<T>&, T* gradient,
                       T* workspace);
  // Products with the Jacobian, and with its transpose; `tangent` is the net without biases, activations and scaling.
  // Of several vectors, the views are the first one's; each sample is evaluated once.
  void (*jvp)(const ReverseNet<T>&, const Packed<T>& tangent, MatrixView<const T> in, MatrixView<const T> in_dot,
              MatrixView<T> out, MatrixView<T> out_dot, const Vectors& vectors, T* workspace);
  void (*vjp)(const ReverseNet<T>&, MatrixView<const T> in, MatrixView<const T> out_bar, MatrixView<T> out,
              MatrixView<T> in_bar, const Vectors& vectors, T* workspace);
  // to[column][row] of from[row][column], rows as wide as `columns`; those of `to` are `to_stride` apart, at least
  // `rows`.
  void (*transpose)(const T* from, std::size_t rows, std::size_t columns, T* to, std::size_t to_stride);
};

// Defined in reverse_f32.cpp and reverse_f64.cpp.
template <class T>
const ReverseKernels<T>& reverse_kernels_for(CpuTarget target);

template <class T>
struct ReverseNet {
  Packed<T> packed;  // evaluates without a record; its weights are replaced too
  const ReverseKernels<T>* kernels;
  std::vector<ReverseLayer<T>> layers;
  AlignedBuffer<T> flat;     // the parameters as they came
  AlignedBuffer<T> weights;  // of the transposes
  std::size_t parameters = 0;
  std::size_t tile_activations = 0, tile_cotangents = 0;  // rows
  std::size_t sample_activations = 0, sample_cotangents = 0, sample_sum = 0;
  std::size_t chunk_rows = 0;
};

template <class T>
constexpr std::size_t padded(std::size_t count) {
  return (count + kSlots<T> - 1) / kSlots<T> * kSlots<T>;
}

// Rows of one tile in the workspace of regression.
template <class T>
std::size_t regression_rows(const ReverseNet<T>& net) {
  return net.chunk_rows;
}
// Up to so many samples a tile's gradient is summed a register of weights at a time: float64's slots are fewer, which
// cost less to add up.
template <class T>
inline constexpr std::size_t kFewSamples = sizeof(T) == 4 ? 32 : 16;
// From one row of a layer's inputs to the next: whole registers, and not a power of two, at which all rows would share
// a few places of the cache.
template <class T>
std::size_t few_samples_stride(std::size_t inputs) {
  return (padded<T>(inputs) / kSlots<T> | 1) * kSlots<T>;
}
// Numbers of the workspace: so many tiles, and behind the first one, if it is the only one, a layer's inputs once more
// [sample][input].
template <class T>
std::size_t regression_workspace(const ReverseNet<T>& net, std::size_t tiles) {
  std::size_t widest = 0;
  for (const ReverseLayer<T>& layer : net.layers) widest = std::max(widest, layer.forward.inputs);
  return std::max(tiles * net.chunk_rows * kTileLanes,
                  net.chunk_rows * kTileLanes + kFewSamples<T> * few_samples_stride<T>(widest));
}

template <class T>
ReverseNet<T> prepare_reverse(const Mlp& mlp, CpuTarget target);

// What products of few samples do with a number at a time, once for all instruction sets.
template <class T>
void copy(const MatrixBatchView<const T>& from, const MatrixBatchView<T>& to);
enum class Scaled { divided, multiplied };
// rows[row * stride + c] by by[c].
template <class T>
void scale_rows(T* rows, std::size_t count, std::size_t stride, const AlignedBuffer<T>& by, Scaled scaled);

// Replaces the weights: the packed copies of the tile path, those of the sample path and of evaluation by rows, or
// both.
template <class T>
void repack_tiles(ReverseNet<T>& net, const T* parameters);
template <class T>
void repack_samples(ReverseNet<T>& net, const T* parameters);
// The rows of narrow layers' transposes, which the sample path has no use for. Not repacked.
template <class T>
void pack_narrow_back_rows(ReverseNet<T>& net);

// Neighbouring outputs of a layer: a dense layer's weights [output][input] and biases, or the transpose of such weights
// without a bias.
template <class T>
struct LayerPart {
  const T* weights;
  const T* bias;  // null: of the transpose
  std::size_t outputs;
};
// Replaces the tile path's copy of a net of one layer, whose outputs are the parts' one after another. `scratch` grows.
template <class T>
void repack_layer(Packed<T>& net, std::span<const LayerPart<T>> parts, std::vector<T>& scratch);

}  // namespace lockstep::mlp

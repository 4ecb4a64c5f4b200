// What the kernel that evaluates a graph is given: the steps of its schedule as plain numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/kernels/cuda/block_net.h"

namespace lockstep::cuda {

enum class GraphCode : std::int32_t {
  dense,
  activate,
  standardise,
  rescale,
  fill,
  copy,
  columns,
  unary,
  clip,
  dead_zone,
  binary,
  choose,
  select,
  chain,
  softmax,
  reduce,
  layer_normalise,
  interpolate
};

// Rows of the tile's values, or numbers that are the same for all samples.
struct GraphOperand {
  std::int64_t constants = -1;  // where in the numbers; -1: rows
  std::int64_t row = 0;
  std::int64_t step = 1;  // 0 where one feature meets every one of the other operand
};

struct GraphStep {
  GraphCode code;
  std::int32_t kind;    // a UnaryKind, BinaryKind, SoftmaxKind, ReduceKind or ActivationKind
  std::int32_t width;   // features read, or made where they are more
  std::int32_t inputs;  // of a dense layer
  std::int64_t out;     // row of the first feature made
  GraphOperand a, b, c;
  // Lists in the numbers: scale and shift, in the operation's own order; of a table knots and coefficients.
  std::int64_t first, second;
  std::int64_t weights;  // of a dense layer, in the numbers, as in LayerImage
  std::int64_t indices;  // columns; masks; of a table how many knots, with those of the padding, and powers
  double numbers[3];     // bounds and the like, rounded to T
};

struct GraphPortLayout {
  std::int64_t row;  // -1: nothing reads it
  std::int32_t width;
};

// The view of one port, in numbers.
template <class T>
struct GraphPort {
  T* data;  // null: not stored; inputs are only read
  std::int64_t sample_stride, feature_stride;
  std::int32_t row, width;
};

inline constexpr int kMostGraphPorts = 96;  // all of them travel with the launch, which may have 4 KB

// Pointers are the device's. Passed by value, so that it lies in constant memory.
template <class T>
struct GraphLaunch {
  const GraphStep* steps;
  const T* numbers;
  const std::int32_t* indices;
  std::int32_t step_count, input_ports, output_ports;
  std::int32_t slots;         // of the workspace, each for one block at a time
  std::int64_t rows;          // of a tile's values
  std::int64_t slot_numbers;  // from one slot to the next
  std::int64_t samples;
  T* workspace;                        // null: values lie in shared memory
  unsigned* taken;                     // [slot]: 1 while a block works there
  GraphPort<T> port[kMostGraphPorts];  // inputs, then outputs
};
static_assert(sizeof(GraphLaunch<double>) <= 4096);

// visitor.template operator()<samples of a tile>() for every size that is compiled, largest first.
template <class T, class Visitor>
void for_each_graph_tile(const Visitor& visitor) {
  visitor.template operator()<512 / static_cast<int>(sizeof(T))>();
  visitor.template operator()<32>();
}

inline constexpr std::size_t kGraphSharedHead = 16;  // bytes before the values: which slot the block has

template <class T>
std::size_t graph_tile_bytes(std::int64_t rows, int samples) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(tile_pitch<T>(samples)) * sizeof(T);
}

}  // namespace lockstep::cuda

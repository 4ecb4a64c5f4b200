// What is left of a graph to compute, step by step, and where each value lies: the part of lowering that knows neither
// a precision nor a machine.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"
#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::graph {

// What a step reads: rows, or numbers that are the same for all samples.
struct ScheduledOperand {
  const Constant* constants = nullptr;  // null: rows
  std::string name;                     // of the constants' node
  std::size_t row = 0;
  std::size_t step = 1;   // 0 where one feature meets every one of the other operand
  std::uint8_t base = 0;  // of the row: kTileBase, kOutputBase, kInputBase and on
};

struct ScheduledStep {
  const Node* node = nullptr;  // whose operation it carries out, of the graph that was scheduled
  std::size_t width = 0;       // features read, or made where they are more
  std::size_t out = 0;         // row of the first feature made
  std::uint8_t out_base = 0;   // and its base
  ScheduledOperand a, b, c;
  bool read_once = false;           // its value is read by one step, and is no output
  bool copies = false;              // no operation: rows of `a`, a part of a concatenation
  std::vector<const Node*> layers;  // of a dense step: the nodes that are one layer here, node among them
  Activation activation;            // of a dense step: what it ends in
};

struct PortRows {
  std::size_t port;
  std::size_t row;
  std::uint8_t base = 0;
};

struct Schedule {
  std::vector<PortRows> loads;   // input ports that something reads, in the tile
  std::vector<PortRows> stores;  // output ports in the tile
  std::vector<ScheduledStep> steps;
  std::size_t rows = 0;  // of all values that live at one time
  // [row]: the number of the last step that reads it; that of all steps where an output port does, kNeverRead where
  // nothing does.
  static constexpr std::size_t kNeverRead = ~std::size_t(0);
  std::vector<std::size_t> last_read;
  double cost = 0;       // of one sample in numbers of fused multiply-adds, roughly
  std::string summary;   // what was fused, merged and dropped, for people
};

// Where ports' rows lie: in the tile, into which they are loaded and from which they are stored; or with the caller,
// who hands over [feature][lane] rows of the tile's stride, an array for each base. Then there is one output port.
enum class PortRowsLie { in_the_tile, with_the_caller };
inline constexpr std::uint8_t kTileBase = 0, kOutputBase = 1, kInputBase = 2;

// Drops what no output needs, fuses activations into the layers before them, merges layers that read one value, lets
// columns and concatenations be places instead of copies. Points into `graph`. Throws Error (model) when that is
// invalid.
Schedule schedule(const Graph& graph, PortRowsLie lie = PortRowsLie::in_the_tile);

// The one layer that a dense step is.
DenseLayer merged_layer(const ScheduledStep& step);

// T is float or double. Throws Error (model) naming the field when a finite number does not fit into T.
template <class T>
T round_to(double value, const std::string& field) {
  const T result = static_cast<T>(value);
  if (std::isfinite(value) && !std::isfinite(result)) {
    throw Error(ErrorKind::model,
                {field, number_text(value), "a number that fits in float32", "compute in float64: precision f64"});
  }
  return result;
}

// Of a number in a list, which is named, field[index], where it does not fit.
template <class T>
T round_to(double value, const std::string& field, std::size_t index) {
  const T result = static_cast<T>(value);
  if (std::isfinite(result) || !std::isfinite(value)) return result;
  return round_to<T>(value, field + "[" + std::to_string(index) + "]");
}

}  // namespace lockstep::graph

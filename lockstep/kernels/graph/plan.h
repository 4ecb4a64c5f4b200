// A graph lowered for one precision and instruction set: evaluated over tiles of samples without allocation.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/tile.h"

namespace lockstep {

// Immutable; copies share what was packed; any number of threads may evaluate one plan at once. T is float or double.
// Results have the same bits for every instruction set, batch size, batch split and layout.
template <class T>
class GraphPlan {
 public:
  // Numbers are rounded to T. Throws Error (model) naming the node when the graph is invalid or a number does not fit
  // into T, (unsupported) for an unavailable target.
  static GraphPlan compile(const graph::Graph& graph, CpuTarget target = best_cpu_target());

  std::span<const graph::Port> inputs() const;
  std::span<const graph::Port> outputs() const;
  CpuTarget cpu_target() const;

  // Bytes of scratch one evaluating thread needs, 64-byte aligned; independent of the batch.
  std::size_t workspace_bytes() const;

  // One view [sample][feature] for each port, in the order of the graph, any strides, all of the same number of
  // samples; on the calling thread, without allocation. The workspace must hold workspace_bytes() and belong to this
  // call alone, apart from all views. Outputs may overlap neither each other nor an input, unless an output is the same
  // view as an input; one with a null pointer is not stored, where another is.
  // Throws Error (invalid_argument) naming the port when shapes do not fit or arrays overlap.
  void evaluate(std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out,
                std::span<std::byte> workspace) const;

  // The same with a workspace of its own (thread-local, kept), on `threads` threads (0: all).
  void evaluate(std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out, int threads = 1) const;

  // One tile, for integrators: the input ports' features one after another in tile.in, the outputs' in tile.out;
  // tile.t and tile.parameters are not read.
  void evaluate_tile(const TileView<T>& tile, std::byte* workspace) const;

  // What lowering did: what was merged, fused and dropped, and the kernels; for `explain`.
  std::string description() const;

  struct Packed;

 private:
  explicit GraphPlan(std::shared_ptr<const Packed> packed) : packed_(std::move(packed)) {}
  std::shared_ptr<const Packed> packed_;
};

extern template class GraphPlan<float>;
extern template class GraphPlan<double>;

}  // namespace lockstep

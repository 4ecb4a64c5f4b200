// A graph lowered for one GPU and precision: uploaded once, then evaluated on arrays that lie on the device, in order
// on the caller's stream. The counterpart of GraphPlan; the CUDA component is opened when the first one is compiled.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/graph/graph.h"

namespace lockstep::cuda {

// Immutable; copies share what lies on the device, which must outlive the work queued from them; any number of threads
// and streams may use one plan at once. T is float or double. Results have the bits of GraphPlan<T>, for every batch,
// split and layout. Layers may have any width.
template <class T>
class DeviceGraphPlan {
 public:
  // Numbers are rounded to T. `device` counts as nvidia-smi does. Throws Error (model) naming the node when the graph
  // is invalid or a number does not fit into T, (unsupported) for more than 96 ports, and where there is no CUDA
  // component, driver, device or memory, saying which.
  static DeviceGraphPlan compile(const graph::Graph& graph, int device = 0);

  std::span<const graph::Port> inputs() const;
  std::span<const graph::Port> outputs() const;
  int device() const;

  // Queues the evaluation on `stream`, a cudaStream_t of the device (null: its default stream), and returns at once.
  // One view [sample][feature] of device memory for each port, in the order of the graph, any strides, all of the same
  // number of samples. Outputs may overlap neither each other nor an input, unless an output is the same view as an
  // input; one with a null pointer is not stored. Allocates nothing, waits for nothing, may be captured in a CUDA
  // graph. Throws Error (invalid_argument) naming the port when shapes do not fit or arrays overlap that may not,
  // (unsupported) when the launch is refused. What goes wrong while it runs is reported by the stream.
  void enqueue(void* stream, std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out) const;

  // Device, what lowering did, tile sizes and bytes, for people.
  std::string description() const;

 private:
  struct Lowered;
  explicit DeviceGraphPlan(std::shared_ptr<const Lowered> lowered) : lowered_(std::move(lowered)) {}
  std::shared_ptr<const Lowered> lowered_;
};

extern template class DeviceGraphPlan<float>;
extern template class DeviceGraphPlan<double>;

}  // namespace lockstep::cuda

// Any model as something that evaluates it on a GPU, on arrays that lie there: the counterpart of NetPlan.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "lockstep/core/matrix_precision.h"
#include "lockstep/core/matrix_view.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/net_plan.h"

namespace lockstep::nn {

// Immutable; copies share what lies on the device, which must outlive the work queued from them; any number of threads
// and streams may use one plan at once. T is float or double. Results have the bits of NetPlan<T>, but for modes of
// tensor cores. A plain stack of layers up to 256 wide is evaluated by cuda::DevicePlan<T>, every other net by
// cuda::DeviceGraphPlan<T>.
template <class T>
class DeviceNetPlan {
 public:
  using Port = typename NetPlan<T>::Port;

  // Numbers are rounded to T. `device` counts as nvidia-smi does; `matrices`: how DevicePlan multiplies. Throws Error
  // (model) naming the node when the model is invalid or a number does not fit into T, (unsupported) for a mode of
  // tensor cores where the net is no such stack, and where there is no CUDA component, driver, device or memory, saying
  // which.
  static DeviceNetPlan compile(const Model& model, int device = 0, MatrixPrecision matrices = MatrixPrecision::f32);

  std::span<const Port> inputs() const;
  std::span<const Port> outputs() const;
  int device() const;

  // Queues the evaluation on `stream`, a cudaStream_t of the device (null: its default stream), and returns at once.
  // One view [sample][feature] of device memory for each port, in the order of inputs() and outputs(), any strides, all
  // of the same number of samples. Outputs may overlap neither each other nor an input, unless an output is the same
  // view as an input. Allocates nothing, waits for nothing, may be captured in a CUDA graph. Throws Error
  // (invalid_argument) naming the port when shapes do not fit, (unsupported) when the launch is refused. What goes
  // wrong while it runs is reported by the stream.
  void enqueue(void* stream, std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out) const;

  // For nets of one input port and one output port.
  void enqueue(void* stream, MatrixView<const T> in, MatrixView<T> out) const;

  // Device, kernel, tile sizes and bytes, for people.
  std::string description() const;

 private:
  struct Lowered;
  explicit DeviceNetPlan(std::shared_ptr<const Lowered> lowered) : lowered_(std::move(lowered)) {}
  std::shared_ptr<const Lowered> lowered_;
};

extern template class DeviceNetPlan<float>;
extern template class DeviceNetPlan<double>;

}  // namespace lockstep::nn

// An Mlp lowered for one GPU and precision: uploaded once, then evaluated on arrays that lie on the device, in order on
// the caller's stream. The counterpart of Plan; the CUDA component is opened when the first one is compiled.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "lockstep/core/matrix_precision.h"
#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::cuda {

// Immutable; copies share the weights on the device, which must outlive the work queued from them; any number of
// threads may use one plan at once. T is float or double. Results have the bits of Plan<T>, for every batch, split and
// layout; but not those of a mode of tensor cores, where they are near Plan<float>'s (docs/cuda.md).
template <class T>
class DevicePlan {
 public:
  // Weights are rounded to T, and then to the format of `matrices`, in which layers are multiplied; what layers add and
  // what passes through activations is float32 still. `device` counts as nvidia-smi does. Throws Error (model) when the
  // mlp is invalid or a weight does not fit in T or that format, (invalid_argument) for a mode of tensor cores with
  // double, (unsupported) for a layer wider than 256, more than 16 layers, and where there is no CUDA component,
  // driver, device or memory, saying which.
  static DevicePlan compile(const Mlp& mlp, int device = 0, MatrixPrecision matrices = MatrixPrecision::f32);

  std::size_t inputs() const;
  std::size_t outputs() const;
  int device() const;
  MatrixPrecision matrices() const;

  // Queues out[sample][output] = net(in[sample][input]) on `stream`, a cudaStream_t of the device (null: its default
  // stream), and returns at once. `in` and `out` are views of device memory with any strides; they may not overlap
  // unless they are the same view. Allocates nothing, waits for nothing, may be captured in a CUDA graph. Throws Error
  // (invalid_argument) when shapes do not fit or views overlap, (unsupported) when the launch is refused. What goes
  // wrong while it runs is reported by the stream, as for any kernel.
  void enqueue(void* stream, MatrixView<const T> in, MatrixView<T> out) const;

  // Device, tile sizes and bytes, for people.
  std::string description() const;

 private:
  struct Lowered;
  explicit DevicePlan(std::shared_ptr<const Lowered> lowered) : lowered_(std::move(lowered)) {}
  std::shared_ptr<const Lowered> lowered_;
};

extern template class DevicePlan<float>;
extern template class DevicePlan<double>;

}  // namespace lockstep::cuda

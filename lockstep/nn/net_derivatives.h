// Any model as something that multiplies with its Jacobian, or gives it whole: for implicit solvers, Newton's method
// and adjoint models around the net.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "lockstep/core/matrix_batch_view.h"
#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/net_plan.h"

namespace lockstep::nn {

// Immutable; copies share what was packed; any number of threads may use one at once. T is float or double. Values have
// the bits of NetPlan; derivatives are those of the net in exact arithmetic at the rounded values, at kinks as
// kernels/graph/derivative.h says; their bits depend neither on the instruction set, nor on the batch and its strides.
// A plain stack of layers goes through DerivativePlan at no further cost.
//
// One view [sample][feature] for each port, in the order of inputs() and outputs(), any strides, all of one call with
// as many rows. Those that are written may overlap neither each other nor one that is read, unless those two are the
// same view. An empty span of `out`, or a view of it with a null pointer, is not wanted. Nothing allocates but compile,
// a thread's first call without a workspace, and calls for nets of more than 64 ports on a side. A workspace lies apart
// from all views. Throws Error (invalid_argument) naming the port when shapes do not fit, memory overlaps or the
// workspace is too small.
template <class T>
class NetDerivatives {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "T is float or double");

 public:
  using Port = typename NetPlan<T>::Port;
  using In = std::span<const MatrixView<const T>>;
  using Out = std::span<const MatrixView<T>>;

  // Throws Error as NetPlan::compile, and (unsupported) for a model that holds derivatives itself.
  static NetDerivatives compile(const Model& model, CpuTarget target = best_cpu_target());

  std::span<const Port> inputs() const;
  std::span<const Port> outputs() const;
  CpuTarget cpu_target() const;
  // Bytes of scratch one calling thread needs, 64-byte aligned; independent of the batch.
  std::size_t workspace_bytes() const;

  // out_dot[sample] = J in_dot[sample], J the Jacobian of all outputs by all inputs at in[sample].
  void jvp(In in, In in_dot, Out out, Out out_dot, std::span<std::byte> workspace) const;
  // in_bar[sample] = J^T out_bar[sample].
  void vjp(In in, In out_bar, Out out, Out in_bar, std::span<std::byte> workspace) const;
  // The same with a workspace of the thread's own, kept from call to call.
  void jvp(In in, In in_dot, Out out, Out out_dot) const;
  void vjp(In in, In out_bar, Out out, Out in_bar) const;

  // jacobian[sample] = J at in[sample], [output][input]: of nets of several ports, their features one port after
  // another. Made along unit vectors: column by column with the bits of jvp where inputs are not more than outputs,
  // else row by row with those of vjp. It may overlap nothing; `out` may be `in` as above.
  void jacobian(In in, Out out, MatrixBatchView<T> jacobian, std::span<std::byte> workspace) const;
  void jacobian(In in, Out out, MatrixBatchView<T> jacobian) const;

  // For nets of one input port and one output port.
  void jvp(MatrixView<const T> in, MatrixView<const T> in_dot, MatrixView<T> out, MatrixView<T> out_dot) const;
  void vjp(MatrixView<const T> in, MatrixView<const T> out_bar, MatrixView<T> out, MatrixView<T> in_bar) const;
  void jacobian(MatrixView<const T> in, MatrixView<T> out, MatrixBatchView<T> jacobian) const;

 private:
  struct Lowered;
  explicit NetDerivatives(std::shared_ptr<const Lowered> lowered) : lowered_(std::move(lowered)) {}
  std::shared_ptr<const Lowered> lowered_;
};

extern template class NetDerivatives<float>;
extern template class NetDerivatives<double>;

}  // namespace lockstep::nn

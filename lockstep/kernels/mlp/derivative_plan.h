// An Mlp lowered for evaluation with derivatives by its inputs: Jacobian-vector and vector-Jacobian products, as
// implicit solvers and adjoint models around the net need them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep {
namespace mlp {
// How many vectors each sample is multiplied with, its evaluation being shared, and how many numbers those of one, and
// the results, lie after those of the one before.
struct Vectors {
  std::size_t count = 1;
  std::ptrdiff_t step = 0, result_step = 0;
};
}  // namespace mlp

// Immutable; copies share the weights; any number of threads may use one at once. T is float or double.
//
// `out` has the bits of Plan's evaluate. Derivatives are of the net as it is, scaling included; that of relu at 0 is 0.
// Their bits depend neither on the instruction set, nor on the batch and its strides. They are not the rounded sums of
// a Jacobian's entries: each product is its own sum through the layers, in the order of docs/numerics.md.
//
// Views may have any strides. All of one call must have as many rows. Those that are written may overlap neither each
// other nor one that is read, unless the two are the same view. `out` with a null pointer is not wanted. Nothing
// allocates but compile, and a thread's first call without a workspace.
template <class T>
class DerivativePlan {
 public:
  // Throws Error as Plan::compile.
  static DerivativePlan compile(const Mlp& mlp, CpuTarget target = best_cpu_target());

  std::size_t inputs() const;
  std::size_t outputs() const;
  CpuTarget cpu_target() const;
  // Bytes of scratch one calling thread needs, 64-byte aligned; independent of the batch.
  std::size_t workspace_bytes() const;

  // out_dot[sample] = J in_dot[sample], J [output][input] the Jacobian at in[sample]; about the time of two
  // evaluations. Of several vectors, the views are those of the first, of which alone is asked how they lie: results
  // must be apart from each other and from all that is read. Throws Error (invalid_argument) when shapes do not fit or
  // the workspace is too small.
  void jvp(MatrixView<const T> in, MatrixView<const T> in_dot, MatrixView<T> out, MatrixView<T> out_dot,
           std::span<std::byte> workspace, const mlp::Vectors& vectors = {}) const;
  // in_bar[sample] = J^T out_bar[sample].
  void vjp(MatrixView<const T> in, MatrixView<const T> out_bar, MatrixView<T> out, MatrixView<T> in_bar,
           std::span<std::byte> workspace, const mlp::Vectors& vectors = {}) const;
  // The same with a workspace of the thread's own, kept from call to call.
  void jvp(MatrixView<const T> in, MatrixView<const T> in_dot, MatrixView<T> out, MatrixView<T> out_dot) const;
  void vjp(MatrixView<const T> in, MatrixView<const T> out_bar, MatrixView<T> out, MatrixView<T> in_bar) const;

 private:
  struct Nets;
  explicit DerivativePlan(std::shared_ptr<const Nets> nets) : nets_(std::move(nets)) {}
  std::shared_ptr<const Nets> nets_;
};

extern template class DerivativePlan<float>;
extern template class DerivativePlan<double>;

}  // namespace lockstep

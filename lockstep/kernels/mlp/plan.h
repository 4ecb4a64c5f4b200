// An Mlp lowered for one precision and instruction set: packed once, then evaluated without allocation.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/kernels/tile.h"

namespace lockstep {

// Immutable; copies share the packed weights; any number of threads may evaluate one plan at once.
// T is float or double. Results have the same bits for every instruction set, batch size, batch split and layout.
template <class T>
class Plan {
 public:
  // Weights are rounded to T. Throws Error (model) when the mlp is invalid, (unsupported) for an unavailable target.
  static Plan compile(const Mlp& mlp, CpuTarget target = best_cpu_target());

  std::size_t inputs() const;
  std::size_t outputs() const;
  CpuTarget cpu_target() const;

  // Bytes of scratch one evaluating thread needs, 64-byte aligned; independent of the batch.
  std::size_t workspace_bytes() const;

  // out[sample][output] = net(in[sample][input]) for any strides, on the calling thread, without allocation.
  // The workspace must hold workspace_bytes() and belong to this call alone, apart from `in` and `out`. These may not
  // overlap unless they are the same view (one may have fewer columns); each element of `out` has a place of its own.
  // Throws Error (invalid_argument) when shapes do not fit, memory overlaps or results share a place.
  void evaluate(MatrixView<const T> in, MatrixView<T> out, std::span<std::byte> workspace) const;

  // The same with a workspace of its own (thread-local, kept), on `threads` threads (0: all).
  void evaluate(MatrixView<const T> in, MatrixView<T> out, int threads = 1) const;

  // One tile, [component][lane], for integrators; tile.t and tile.parameters are not read.
  void evaluate_tile(const TileView<T>& tile, std::byte* workspace) const;

  // What lowering did: kernel, blocking, bytes packed; for `explain`.
  std::string description() const;

  struct Packed;

 private:
  explicit Plan(std::shared_ptr<const Packed> packed) : packed_(std::move(packed)) {}
  std::shared_ptr<const Packed> packed_;
};

extern template class Plan<float>;
extern template class Plan<double>;

}  // namespace lockstep

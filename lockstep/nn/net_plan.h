// Any model as something that evaluates it: several named ports, any of the operations.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn {

// Immutable; copies share what was packed; any number of threads may evaluate one plan at once. T is float or double.
// Results have the same bits for every instruction set, batch size, batch split and layout. A plain stack of layers is
// evaluated by Plan<T> at no further cost.
template <class T>
class NetPlan {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "T is float or double");

 public:
  struct Port {
    std::string name;
    std::size_t width;  // features
  };

  // Weights are rounded to T. Throws Error (model) naming the node when the model is invalid or a number does not fit
  // into T, (unsupported) for an unavailable target.
  static NetPlan compile(const Model& model, CpuTarget target = best_cpu_target());

  std::span<const Port> inputs() const;
  std::span<const Port> outputs() const;
  CpuTarget cpu_target() const;

  // Bytes of scratch one evaluating thread needs, 64-byte aligned; independent of the batch.
  std::size_t workspace_bytes() const;

  // One view [sample][feature] for each port, in the order of inputs() and outputs(), any strides, all of the same
  // number of samples; on the calling thread, without allocation. The workspace must hold workspace_bytes() and belong
  // to this call alone, apart from all views. Outputs may overlap neither each other nor an input, unless an output is
  // the same view as an input. Of several output ports those with a null pointer are not wanted: they are computed and
  // not stored. Throws Error (invalid_argument) naming the port when shapes do not fit, arrays overlap or no output is
  // wanted.
  void evaluate(std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out,
                std::span<std::byte> workspace) const;

  // The same with a workspace of its own (thread-local, kept), on `threads` threads (0: all).
  void evaluate(std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out, int threads = 1) const;

  // For nets of one input port and one output port.
  void evaluate(MatrixView<const T> in, MatrixView<T> out, int threads = 1) const;

  // The plan of a plain stack, null for other models.
  const Plan<T>* stack() const;

  // What lowering did: what was merged, fused and dropped, and the kernels; for `explain`.
  std::string description() const;

 private:
  struct Lowered;
  explicit NetPlan(std::shared_ptr<const Lowered> lowered) : lowered_(std::move(lowered)) {}
  std::shared_ptr<const Lowered> lowered_;
};

namespace detail {
std::size_t port_index(std::span<const std::string_view> names, std::string_view name);
}

// Where the port of that name stands among `ports`, the inputs() or outputs() of a plan or those of a model: views are
// given in that order, which another export of the same net may change. Throws Error (invalid_argument) that lists the
// names there are.
//
//   out[port_index(plan.outputs(), "flux")] = flux;
template <class Ports>
std::size_t port_index(const Ports& ports, std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& port : ports) names.push_back(port.name);
  return detail::port_index(names, name);
}

extern template class NetPlan<float>;
extern template class NetPlan<double>;

}  // namespace lockstep::nn

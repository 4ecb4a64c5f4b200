#include "lockstep/nn/net_plan.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/names.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/kernels/graph/plan.h"

namespace lockstep::nn {

std::size_t detail::port_index(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw unknown_name("port", name, names);
  return static_cast<std::size_t>(found - names.begin());
}

template <class T>
struct NetPlan<T>::Lowered {
  std::optional<Plan<T>> stack;  // one of the two
  std::optional<GraphPlan<T>> graph;
  std::vector<Port> inputs;
  std::vector<Port> outputs;

  void require_one_port_each(std::size_t in, std::size_t out) const {
    const auto require = [](const char* field, std::size_t found, std::size_t expected) {
      if (found == expected) return;
      throw Error(ErrorKind::invalid_argument,
                  {field, std::to_string(found) + (found == 1 ? " view" : " views"),
                   std::to_string(expected) + ", one for each port", "give views in the order of the plan's ports"});
    };
    require("in", in, inputs.size());
    require("out", out, outputs.size());
  }
};

template <class T>
NetPlan<T> NetPlan<T>::compile(const Model& model, CpuTarget target) {
  const StandardArithmetic arithmetic;
  auto lowered = std::make_shared<Lowered>();
  if (is_stack(model)) {
    lowered->stack = Plan<T>::compile(to_mlp(model), target);
  } else {
    lowered->graph = GraphPlan<T>::compile(to_graph(model), target);
  }
  for (const nn::Port& port : model.inputs) lowered->inputs.push_back({port.name, port.features.size()});
  for (const nn::Port& port : model.outputs) lowered->outputs.push_back({port.name, port.features.size()});
  return NetPlan(std::move(lowered));
}

template <class T>
std::span<const typename NetPlan<T>::Port> NetPlan<T>::inputs() const {
  return lowered_->inputs;
}

template <class T>
std::span<const typename NetPlan<T>::Port> NetPlan<T>::outputs() const {
  return lowered_->outputs;
}

template <class T>
CpuTarget NetPlan<T>::cpu_target() const {
  return lowered_->stack ? lowered_->stack->cpu_target() : lowered_->graph->cpu_target();
}

template <class T>
std::size_t NetPlan<T>::workspace_bytes() const {
  return lowered_->stack ? lowered_->stack->workspace_bytes() : lowered_->graph->workspace_bytes();
}

template <class T>
void NetPlan<T>::evaluate(std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out,
                          std::span<std::byte> workspace) const {
  if (!lowered_->stack) return lowered_->graph->evaluate(in, out, workspace);
  lowered_->require_one_port_each(in.size(), out.size());
  lowered_->stack->evaluate(in[0], out[0], workspace);
}

template <class T>
void NetPlan<T>::evaluate(std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out,
                          int threads) const {
  if (!lowered_->stack) return lowered_->graph->evaluate(in, out, threads);
  lowered_->require_one_port_each(in.size(), out.size());
  lowered_->stack->evaluate(in[0], out[0], threads);
}

template <class T>
void NetPlan<T>::evaluate(MatrixView<const T> in, MatrixView<T> out, int threads) const {
  if (lowered_->stack) return lowered_->stack->evaluate(in, out, threads);
  lowered_->graph->evaluate(std::span(&in, 1), std::span(&out, 1), threads);
}

template <class T>
const Plan<T>* NetPlan<T>::stack() const {
  return lowered_->stack ? &*lowered_->stack : nullptr;
}

template <class T>
std::string NetPlan<T>::description() const {
  return lowered_->stack ? lowered_->stack->description() : lowered_->graph->description();
}

template class NetPlan<float>;
template class NetPlan<double>;

}  // namespace lockstep::nn

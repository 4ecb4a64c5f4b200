#include "lockstep/nn/net_derivatives.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/short_list.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/plan.h"
#include "lockstep/kernels/mlp/derivative_plan.h"

namespace lockstep::nn {
namespace {

// Kept by each thread from call to call.
std::span<std::byte> kept_workspace(std::size_t bytes) {
  thread_local AlignedBuffer<std::byte> buffer;
  if (buffer.size() < bytes) buffer = AlignedBuffer<std::byte>(bytes);
  return {buffer.data(), bytes};
}

// Of both sides of a plan of derivatives; nets of more ports have the views allocated by each call.
constexpr std::size_t kFewPorts = 128;

void require_views(const char* field, std::size_t found, std::size_t expected) {
  if (found == expected) return;
  throw Error(ErrorKind::invalid_argument,
              {field, std::to_string(found) + (found == 1 ? " view" : " views"),
               std::to_string(expected) + ", one for each port", "give views in the order of the net's ports"});
}

}  // namespace

template <class T>
struct NetDerivatives<T>::Lowered {
  std::optional<DerivativePlan<T>> stack;        // this,
  std::optional<GraphPlan<T>> forward, reverse;  // or these
  std::vector<Port> inputs, outputs;

  // Through the plan of derivatives, which reads `in` and `vector` and makes `out` and `result`.
  void run(const GraphPlan<T>& plan, In in, In vector, Out out, Out result, std::span<std::byte> workspace) const {
    const std::size_t rows = in.empty() ? 0 : in[0].rows;
    ShortList<MatrixView<const T>, kFewPorts> read;
    read.append(in);
    read.append(vector);
    ShortList<MatrixView<T>, kFewPorts> made;
    for (std::size_t i = 0; i < outputs.size(); ++i) {  // not wanted: shapes that fit, and nowhere to go
      const bool wanted = !out.empty() && out[i].data != nullptr;
      made.push_back(wanted ? out[i] : MatrixView<T>{nullptr, rows, outputs[i].width, 0, 0});
    }
    made.append(result);
    plan.evaluate(read.span(), made.span(), workspace);
  }

  void require(In in, In vector, std::size_t vectors, const char* vector_name, Out out, Out result, std::size_t results,
               const char* result_name) const {
    require_views("in", in.size(), inputs.size());
    require_views(vector_name, vector.size(), vectors);
    if (!out.empty()) require_views("out", out.size(), outputs.size());
    require_views(result_name, result.size(), results);
  }
};

template <class T>
NetDerivatives<T> NetDerivatives<T>::compile(const Model& model, CpuTarget target) {
  const StandardArithmetic arithmetic;
  auto lowered = std::make_shared<Lowered>();
  if (is_stack(model)) {
    lowered->stack = DerivativePlan<T>::compile(to_mlp(model), target);
  } else {
    const graph::Graph graph = to_graph(model);
    lowered->forward = GraphPlan<T>::compile(graph::jvp_graph(graph), target);
    lowered->reverse = GraphPlan<T>::compile(graph::vjp_graph(graph), target);
  }
  for (const nn::Port& port : model.inputs) lowered->inputs.push_back({port.name, port.features.size()});
  for (const nn::Port& port : model.outputs) lowered->outputs.push_back({port.name, port.features.size()});
  return NetDerivatives(std::move(lowered));
}

template <class T>
std::span<const typename NetDerivatives<T>::Port> NetDerivatives<T>::inputs() const {
  return lowered_->inputs;
}

template <class T>
std::span<const typename NetDerivatives<T>::Port> NetDerivatives<T>::outputs() const {
  return lowered_->outputs;
}

template <class T>
CpuTarget NetDerivatives<T>::cpu_target() const {
  return lowered_->stack ? lowered_->stack->cpu_target() : lowered_->forward->cpu_target();
}

template <class T>
std::size_t NetDerivatives<T>::workspace_bytes() const {
  if (lowered_->stack) return lowered_->stack->workspace_bytes();
  return std::max(lowered_->forward->workspace_bytes(), lowered_->reverse->workspace_bytes());
}

template <class T>
void NetDerivatives<T>::jvp(In in, In in_dot, Out out, Out out_dot, std::span<std::byte> workspace) const {
  const std::size_t ins = lowered_->inputs.size(), outs = lowered_->outputs.size();
  lowered_->require(in, in_dot, ins, "in_dot", out, out_dot, outs, "out_dot");
  if (!lowered_->stack) return lowered_->run(*lowered_->forward, in, in_dot, out, out_dot, workspace);
  lowered_->stack->jvp(in[0], in_dot[0], out.empty() ? MatrixView<T>{} : out[0], out_dot[0], workspace);
}

template <class T>
void NetDerivatives<T>::vjp(In in, In out_bar, Out out, Out in_bar, std::span<std::byte> workspace) const {
  const std::size_t ins = lowered_->inputs.size(), outs = lowered_->outputs.size();
  lowered_->require(in, out_bar, outs, "out_bar", out, in_bar, ins, "in_bar");
  if (!lowered_->stack) return lowered_->run(*lowered_->reverse, in, out_bar, out, in_bar, workspace);
  lowered_->stack->vjp(in[0], out_bar[0], out.empty() ? MatrixView<T>{} : out[0], in_bar[0], workspace);
}

template <class T>
void NetDerivatives<T>::jvp(In in, In in_dot, Out out, Out out_dot) const {
  jvp(in, in_dot, out, out_dot, kept_workspace(workspace_bytes()));
}

template <class T>
void NetDerivatives<T>::vjp(In in, In out_bar, Out out, Out in_bar) const {
  vjp(in, out_bar, out, in_bar, kept_workspace(workspace_bytes()));
}

template <class T>
void NetDerivatives<T>::jvp(MatrixView<const T> in, MatrixView<const T> in_dot, MatrixView<T> out,
                            MatrixView<T> out_dot) const {
  jvp(In(&in, 1), In(&in_dot, 1), Out(&out, 1), Out(&out_dot, 1));
}

template <class T>
void NetDerivatives<T>::vjp(MatrixView<const T> in, MatrixView<const T> out_bar, MatrixView<T> out,
                            MatrixView<T> in_bar) const {
  vjp(In(&in, 1), In(&out_bar, 1), Out(&out, 1), Out(&in_bar, 1));
}

template class NetDerivatives<float>;
template class NetDerivatives<double>;

}  // namespace lockstep::nn

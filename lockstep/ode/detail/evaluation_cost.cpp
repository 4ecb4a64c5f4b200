#include "lockstep/ode/detail/evaluation_cost.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <variant>
#include <vector>

namespace lockstep::ode::detail {
namespace {

// In fused multiply-adds: what takes as long. An activation such as tanh is about 20 instructions and a division.
constexpr double kActivation = 30;
constexpr double kDivision = 8;         // a square root too
constexpr double kElement = 2;          // of a value beside layers: more loads and stores than arithmetic
constexpr double kSystemComponent = 6;  // the derivative of one component of a built-in system,
constexpr double kOwnComponent = 30;    // and of a user's own function: who knows

double activation_cost(ActivationKind kind) {
  return kind == ActivationKind::identity || kind == ActivationKind::relu ? 1 : kActivation;
}

double unary_cost(graph::UnaryKind kind) {
  using enum graph::UnaryKind;
  if (kind == exp || kind == log || kind == erf || kind == cosine || kind == arctangent) return kActivation;
  return kind == square_root || kind == reciprocal ? kDivision : kElement;
}

double binary_cost(graph::BinaryKind kind) {
  using enum graph::BinaryKind;
  if (kind == power) return 2 * kActivation;  // a logarithm and an exponential
  return kind == divide ? kDivision : kind == modulo ? 2 * kDivision : kElement;
}

// Of one node, whose value has `width` elements and which reads `read` of them.
EvaluationCost node_cost(const graph::Operation& operation, double width, double read) {
  return std::visit(
      [&]<class O>(const O& what) -> EvaluationCost {
        if constexpr (std::is_same_v<O, graph::Dense>) {
          // No `layers`: cuda_gemm takes a graph as text, not as matrix products.
          return {.nets = static_cast<double>(what.outputs) * (static_cast<double>(what.inputs) + 1)};
        } else if constexpr (std::is_same_v<O, graph::Activate>) {
          return {.nets = width * activation_cost(what.activation.kind)};
        } else if constexpr (std::is_same_v<O, graph::Softmax>) {
          return {.nets = width * (kActivation + kElement) + kDivision};
        } else if constexpr (std::is_same_v<O, graph::LayerNormalise>) {
          return {.nets = 3 * width * kElement + 2 * kDivision};
        } else if constexpr (std::is_same_v<O, graph::Unary>) {
          return {.rest = width * unary_cost(what.kind)};
        } else if constexpr (std::is_same_v<O, graph::Binary>) {
          return {.rest = width * binary_cost(what.kind)};
        } else if constexpr (std::is_same_v<O, graph::Standardise>) {
          return {.rest = width * kDivision};
        } else if constexpr (std::is_same_v<O, graph::Reduce>) {
          return {.rest = read};
        } else if constexpr (std::is_same_v<O, graph::Chain>) {
          return {.rest = width * (graph::chain_reads_value(what.activation.kind) ? kElement : kActivation)};
        } else if constexpr (std::is_same_v<O, graph::Constant> || std::is_same_v<O, graph::Concatenate> ||
                             std::is_same_v<O, graph::Columns>) {
          return {};  // lowering joins and selects without a copy, for the most part
        } else {
          return {.rest = width * kElement};
        }
      },
      operation);
}

}  // namespace

EvaluationCost cost_of(const graph::Graph& graph) {
  const std::vector<std::size_t> widths = graph.widths();
  EvaluationCost sum;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    double read = 0;
    for (const std::size_t value : graph.nodes[i].inputs) read += static_cast<double>(widths[value]);
    sum += node_cost(graph.nodes[i].operation, static_cast<double>(widths[graph.inputs.size() + i]), read);
  }
  return sum;
}

EvaluationCost cost_of(const StateFunction& function) {
  if (const auto known = function.evaluation_cost()) return *known;
  const double components = static_cast<double>(function.components());
  EvaluationCost sum;
  for (const FunctionPart& part : function.parts()) {
    if (const auto* net = std::get_if<NetPart>(&part.what)) {
      for (const DenseLayer& layer : net->mlp->layers) {
        const double outputs = static_cast<double>(layer.outputs);
        sum.nets += outputs * (static_cast<double>(layer.inputs) + activation_cost(layer.activation.kind));
        sum.neurons += outputs;
      }
      sum.layers += static_cast<double>(net->mlp->layers.size());
    } else {
      const bool own = std::holds_alternative<SourcePart>(part.what);
      sum.rest += (own ? kOwnComponent : kSystemComponent) * components;
    }
  }
  if (sum.nets + sum.rest == 0) sum.rest = kOwnComponent * components;
  return sum;
}

}  // namespace lockstep::ode::detail

#include "lockstep/ode/detail/continuous_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/kernels/graph/plan.h"

namespace lockstep::ode::detail {
namespace {

const graph::Node* node_of(const graph::Graph& graph, std::size_t value) {
  return value < graph.inputs.size() ? nullptr : &graph.nodes[value - graph.inputs.size()];
}

const graph::Constant* constant_of(const graph::Graph& graph, std::size_t value) {
  const graph::Node* node = node_of(graph, value);
  return node == nullptr ? nullptr : std::get_if<graph::Constant>(&node->operation);
}

// The two values as a graph of its own, whose only input is `from`; nothing where they are made of another input, or
// where a number is asked whether it equals another, of which its value at one point tells nothing.
std::optional<graph::Graph> both_of(const graph::Graph& graph, std::size_t from, std::size_t width, std::size_t first,
                                    std::size_t second) {
  std::vector<bool> needed(graph.inputs.size() + graph.nodes.size());
  needed[first] = needed[second] = true;
  for (std::size_t value = needed.size(); value-- > 0;) {
    if (!needed[value] || value == from) continue;
    const graph::Node* node = node_of(graph, value);
    if (node == nullptr) return std::nullopt;
    const auto* binary = std::get_if<graph::Binary>(&node->operation);
    if (binary != nullptr && binary->kind == graph::BinaryKind::equal) return std::nullopt;
    for (const std::size_t input : node->inputs) needed[input] = true;
  }
  graph::Graph made;
  made.inputs = {{"x", 0, width}};
  std::vector<std::size_t> number(needed.size());
  for (std::size_t value = graph.inputs.size(); value < needed.size(); ++value) {
    if (!needed[value] || value == from) continue;
    graph::Node node = *node_of(graph, value);
    for (std::size_t& input : node.inputs) input = number[input];
    made.nodes.push_back(std::move(node));
    number[value] = made.nodes.size();
  }
  made.outputs = {{"first", number[first], 0}, {"second", number[second], 0}};
  return made;
}

bool agree(double a, double b) {
  constexpr double kRoundings = 16 * std::numeric_limits<double>::epsilon();
  return std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= kRoundings * std::max(std::fabs(a), std::fabs(b));
}

bool agree_at(graph::Graph both, const std::vector<double>& x) {
  graph::Graph bare = both;
  bare.outputs.clear();
  const std::vector<std::size_t> widths = bare.widths();
  std::vector<std::vector<double>> made;
  std::vector<MatrixView<double>> out;
  for (graph::Port& port : both.outputs) port.width = widths[port.value];
  for (const graph::Port& port : both.outputs) {
    made.emplace_back(port.width);
    out.push_back(MatrixView<double>::row_major(made.back().data(), 1, port.width));
  }
  const MatrixView<const double> in[] = {MatrixView<const double>::row_major(x.data(), 1, x.size())};
  GraphPlan<double>::compile(both).evaluate(in, out);
  const std::size_t count = std::max(made[0].size(), made[1].size());
  for (std::size_t i = 0; i < count; ++i) {
    if (!agree(made[0][made[0].size() == 1 ? 0 : i], made[1][made[1].size() == 1 ? 0 : i])) return false;
  }
  return true;
}

bool chooses_without_jump(const graph::Graph& graph, const std::vector<std::size_t>& widths, std::size_t comparison) {
  const graph::Node& node = *node_of(graph, comparison);
  const graph::Constant *left = constant_of(graph, node.inputs[0]), *right = constant_of(graph, node.inputs[1]);
  if ((left == nullptr) == (right == nullptr)) return false;
  const std::size_t compared = node.inputs[left != nullptr ? 1 : 0], width = widths[compared];
  std::vector<double> x = (left != nullptr ? left : right)->values;
  if (x.size() == 1) x.resize(width, x[0]);
  if (x.size() != width) return false;
  if (std::ranges::any_of(graph.outputs, [&](const graph::Port& port) { return port.value == comparison; })) {
    return false;
  }
  for (const graph::Node& reader : graph.nodes) {
    if (std::ranges::count(reader.inputs, comparison) == 0) continue;
    if (!std::holds_alternative<graph::Select>(reader.operation) || reader.inputs[0] != comparison ||
        std::ranges::count(reader.inputs, comparison) > 1) {
      return false;
    }
    auto both = both_of(graph, compared, width, reader.inputs[1], reader.inputs[2]);
    if (!both || !agree_at(std::move(*both), x)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::size_t> continuous_choices(const graph::Graph& graph) {
  std::vector<std::size_t> found;
  const std::vector<std::size_t> widths = graph.widths();
  for (std::size_t value = graph.inputs.size(); value < widths.size(); ++value) {
    const auto* binary = std::get_if<graph::Binary>(&node_of(graph, value)->operation);
    if (binary == nullptr) continue;
    if (binary->kind != graph::BinaryKind::less && binary->kind != graph::BinaryKind::less_or_equal) continue;
    if (chooses_without_jump(graph, widths, value)) found.push_back(value);
  }
  return found;
}

}  // namespace lockstep::ode::detail

#include "lockstep/nn/detail/equation_graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "lockstep/core/text.h"
#include "lockstep/kernels/graph/detail/lane_operations.h"
#include "lockstep/nn/guarded_calls.h"

namespace lockstep::nn::detail {
namespace {

using Lane = ScalarLane<double>;
namespace on_numbers = math::on_numbers;

template <std::size_t... kKind>
double folded(UnaryKind kind, double x, std::index_sequence<kKind...>) {
  double result = 0;
  ((static_cast<std::size_t>(kind) == kKind ? void(result = on_numbers::unary_of<UnaryKind(kKind), Lane>(x)) : void()),
   ...);
  return result;
}

template <std::size_t... kKind>
double folded(BinaryKind kind, double a, double b, std::index_sequence<kKind...>) {
  double result = 0;
  ((static_cast<std::size_t>(kind) == kKind ? void(result = on_numbers::binary_of<BinaryKind(kKind), Lane>(a, b))
                                            : void()),
   ...);
  return result;
}

constexpr auto kUnaryIndices = std::make_index_sequence<graph::kUnaryKinds>();
constexpr auto kBinaryIndices = std::make_index_sequence<graph::kBinaryKinds>();

std::string bits_text(double number) { return std::to_string(std::bit_cast<std::uint64_t>(number)); }

}  // namespace

using Value = EquationGraph::Value;

Value EquationGraph::feature(const std::string& of, std::size_t width, std::size_t index) {
  if (width == 1) return {0, of};
  const std::string node = add("column " + std::to_string(index), Columns{{index}}, {of});
  columns_[node] = {of, width, index};
  return {0, node};
}

Value EquationGraph::unary(UnaryKind kind, const Value& x) {
  if (x.is_number()) return number(folded(kind, x.number, kUnaryIndices));
  return {0, add(std::string(graph::to_string(kind)), Unary{kind}, {x.node})};
}

Value EquationGraph::activate(const Activation& activation, const Value& x) {
  if (x.is_number()) return number(lockstep::activate(activation, x.number));
  return {0, add(to_string(activation), Activate{activation}, {x.node})};
}

Value EquationGraph::binary(BinaryKind kind, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return number(folded(kind, a.number, b.number, kBinaryIndices));
  return {0, add(std::string(graph::to_string(kind)), Binary{kind}, {node_of(a), node_of(b)})};
}

Value EquationGraph::select(const Value& condition, const Value& yes, const Value& no) {
  if (condition.is_number()) return condition.number != 0 ? yes : no;
  return {0, add("select", Select{}, {node_of(condition), node_of(yes), node_of(no)})};
}

Value EquationGraph::clip(const Value& x, double minimum, double maximum) {
  if (x.is_number()) return number(std::fmin(std::fmax(x.number, minimum), maximum));
  return {0, add("clip " + bits_text(minimum) + " " + bits_text(maximum), Clip{minimum, maximum}, {x.node})};
}

std::vector<Value> EquationGraph::call(const std::string& name, const Model& net, std::span<const Value> inputs,
                                       std::span<const std::string> texts) {
  std::string key = name;
  for (const Value& value : inputs) key += " " + (value.is_number() ? bits_text(value.number) : value.node);
  if (const auto known = called_.find(key); known != called_.end()) return known->second;
  const std::size_t number = ++calls_[name];
  const std::string prefix = name + (number == 1 ? "" : "#" + std::to_string(number)) + ".";
  Names here;
  const bool unknown = std::ranges::any_of(inputs, [&](const Value& value) { return is_unknown(value); });
  for (const Port& port : net.inputs) {
    here[port.name] = vector_of(inputs.first(port.features.size()));
    inputs = inputs.subspan(port.features.size());
  }
  if (knows_range(net)) guard(name, prefix, net, here, texts);
  for (const Node& node : net.nodes) {
    std::vector<std::string> read;
    for (const std::string& input : node.inputs) read.push_back(here.at(input));
    nodes_.push_back({prefix + node.name, node.operation, std::move(read)});
    here[node.name] = prefix + node.name;
    if (unknown) unknown_.insert(prefix + node.name);
  }
  guard_inner(name, prefix, net, here);
  std::vector<Value> outputs;
  for (const Port& port : net.outputs) {
    for (std::size_t i = 0; i < port.features.size(); ++i) {
      outputs.push_back(feature(here.at(port.value), port.features.size(), i));
    }
  }
  return called_[key] = outputs;
}

// Whoever clamps the inputs tells by name what each port reads: one that reads what another does, or that the net hands
// out as it is, gets a node of its own.
void EquationGraph::guard(const std::string& name, const std::string& prefix, const Model& net, Names& here,
                          std::span<const std::string> texts) {
  const Names read = here;
  GuardedCall call{name, prefix.substr(0, prefix.size() - 1), {}};
  for (const Port& port : net.inputs) {
    const std::string& value = read.at(port.name);
    const bool shared = std::ranges::count(read, value, &Names::value_type::second) > 1;
    if (shared || std::ranges::find(net.outputs, port.name, &Port::value) != net.outputs.end()) {
      Columns all;
      for (std::size_t i = 0; i < port.features.size(); ++i) all.indices.push_back(i);
      here[port.name] = prefix + port.name;
      nodes_.push_back({prefix + port.name, std::move(all), {value}});
      if (unknown_.contains(value)) unknown_.insert(prefix + port.name);
    }
    Port& made = call.inputs.emplace_back(Port{port.name, here[port.name], port.features});
    for (nn::Feature& feature : made.features) {
      feature.name = texts.front();
      texts = texts.subspan(1);
    }
  }
  if (std::ranges::any_of(net.inputs, [](const Port& port) { return is_bounded(port); })) {
    guarded_.push_back(std::move(call));
  }
}

// The calls of a net that was equations itself.
void EquationGraph::guard_inner(const std::string& name, const std::string& prefix, const Model& net,
                                const Names& here) {
  for (GuardedCall call : net.calls) {
    call.net = name + "." + call.net;
    call.name = prefix + call.name;
    for (Port& port : call.inputs) port.value = here.at(port.value);
    guarded_.push_back(std::move(call));
  }
}

Value EquationGraph::unknown() {
  const std::string node = add("unknown", Constant{{0}}, {});
  unknown_.insert(node);
  return {0, node};
}

std::string EquationGraph::vector_of(std::span<const Value> values) {
  std::vector<std::string> nodes;
  bool whole = !values.empty();  // all features of one value, in order: that value itself
  for (const Value& value : values) {
    const auto column = columns_.find(value.node);
    whole = whole && column != columns_.end() && column->second.index == nodes.size() &&
            column->second.width == values.size() && column->second.of == columns_.at(values[0].node).of;
    nodes.push_back(node_of(value));
  }
  if (whole) return columns_.at(values[0].node).of;
  return nodes.size() == 1 ? nodes[0] : add("concatenate", Concatenate{}, std::move(nodes));
}

std::string EquationGraph::node_of(const Value& value) {
  if (!value.is_number()) return value.node;
  // The refusal of a plan in float32 names the node.
  const bool large = std::fabs(value.number) > static_cast<double>(std::numeric_limits<float>::max());
  return add("constant " + bits_text(value.number), Constant{{value.number}}, {},
             large && std::isfinite(value.number) ? "number " + number_text(value.number) : "");
}

std::string EquationGraph::add(const std::string& key, Operation operation, std::vector<std::string> inputs,
                               std::string name) {
  std::string full = key;
  for (const std::string& input : inputs) full += " " + input;
  const auto [place, fresh] =
      made_.try_emplace(std::move(full), name.empty() ? "v" + std::to_string(nodes_.size() + 1) : std::move(name));
  if (std::ranges::any_of(inputs, [&](const std::string& input) { return unknown_.contains(input); })) {
    unknown_.insert(place->second);
  }
  if (fresh) nodes_.push_back({place->second, std::move(operation), std::move(inputs)});
  return place->second;
}

}  // namespace lockstep::nn::detail

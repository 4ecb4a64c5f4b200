#include "lockstep/nn/detail/hdf5_graph.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/nn/detail/activation_list.h"
#include "lockstep/nn/detail/hdf5_parts.h"
#include "lockstep/nn/detail/refuse.h"
#include "lockstep/nn/shared_weights.h"

namespace lockstep::nn::detail {
namespace {

using hdf5::Dataset;
using hdf5::File;
using hdf5::Group;
using hdf5::Shape;

// ---- reading

std::vector<double> read_list(const Group& group, const char* name) {
  const Dataset dataset = group.dataset(name);
  if (dataset.shape().size() != 1) refuse(dataset.name(), "shape " + shape_text(dataset.shape()), "one dimension");
  return dataset.read<double>();
}

std::vector<std::int64_t> read_integers(const Group& group, const char* name) {
  const Dataset dataset = group.dataset(name);
  if (dataset.shape().size() != 1) refuse(dataset.name(), "shape " + shape_text(dataset.shape()), "one dimension");
  std::vector<std::int64_t> values = dataset.read<std::int64_t>();
  for (const std::int64_t value : values) {
    if (value < 0) refuse(dataset.name(), std::to_string(value), "0 or more");
  }
  return values;
}

template <class Kind>
Kind read_kind(const Group& group, std::size_t count) {
  const std::string text = group.string_attribute("kind");
  for (std::size_t i = 0; i < count; ++i) {
    if (graph::to_string(static_cast<Kind>(i)) == text) return static_cast<Kind>(i);
  }
  refuse(group.name() + "@kind", '"' + text + '"', "a kind of this operation that docs/model_format.md lists");
}

Dense read_dense(const Group& group) {
  const Dataset weight = group.dataset("weight");
  const Shape shape = weight.shape();
  if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0) {
    refuse(weight.name(), "shape " + shape_text(shape), "[outputs, inputs], both above 0");
  }
  Dense dense{shape[1], shape[0], weight.read<double>(), {}, group.has("bias")};
  dense.bias =
      group.has("bias") ? read_vector(group, "bias", dense.outputs, "output") : std::vector<double>(dense.outputs);
  return dense;
}

Interpolate read_table(const Group& group) {
  Interpolate table{read_list(group, "knots"), 0, {}};
  const std::int64_t outputs = group.integer_attribute("outputs");
  if (outputs < 1 || outputs > 1 << 20) refuse(group.name() + "@outputs", std::to_string(outputs), "1 to 2^20");
  table.outputs = static_cast<std::size_t>(outputs);
  table.coefficients = read_list(group, "coefficients");
  return table;
}

// What an operation keeps beside its attributes.
struct Known {
  std::string_view operation;
  std::array<std::string_view, 2> lists;
};
constexpr std::array<Known, 18> kKnown = {{{"dense", {"weight", "bias"}},
                                           {"activate", {}},
                                           {"standardise", {"shift", "scale"}},
                                           {"rescale", {"scale", "shift"}},
                                           {"constant", {"values", ""}},
                                           {"concatenate", {}},
                                           {"columns", {"indices", ""}},
                                           {"unary", {}},
                                           {"clip", {}},
                                           {"dead_zone", {}},
                                           {"binary", {}},
                                           {"choose", {"mask", ""}},
                                           {"softmax", {}},
                                           {"reduce", {}},
                                           {"layer_normalise", {"scale", "shift"}},
                                           {"select", {}},
                                           {"chain", {}},
                                           {"interpolate", {"knots", "coefficients"}}}};
static_assert(kKnown.size() == std::variant_size_v<Operation>);

Operation read_operation(const Group& group) {
  const std::string name = group.string_attribute("operation");
  const auto known = std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& k) { return k.operation == name; });
  if (known == kKnown.end()) {
    refuse(group.name() + "@operation", '"' + name + '"', "an operation that docs/model_format.md lists",
           "read it with a newer Lockstep, if it was written by one");
  }
  std::vector<std::string_view> lists = {"inputs"};
  for (const std::string_view list : known->lists) {
    if (!list.empty()) lists.push_back(list);
  }
  check_members(group, lists, {});
  if (name == "dense") return read_dense(group);
  if (name == "activate" || name == "chain") {
    const Activation activation = known_activation(group.string_attribute("activation"), group.name() + "@activation");
    return name == "chain" ? Operation(Chain{activation}) : Operation(Activate{activation});
  }
  if (name == "standardise") return Standardise{read_list(group, "shift"), read_list(group, "scale")};
  if (name == "rescale") return Rescale{read_list(group, "scale"), read_list(group, "shift")};
  if (name == "constant") return Constant{read_list(group, "values")};
  if (name == "concatenate") return Concatenate{};
  if (name == "columns") {
    const std::vector<std::int64_t> indices = read_integers(group, "indices");
    return Columns{{indices.begin(), indices.end()}};
  }
  if (name == "unary") return Unary{read_kind<UnaryKind>(group, graph::kUnaryKinds)};
  if (name == "clip") return Clip{group.number_attribute("minimum"), group.number_attribute("maximum")};
  if (name == "dead_zone") {
    return DeadZone{group.number_attribute("lower"), group.number_attribute("upper"), group.number_attribute("bias")};
  }
  if (name == "interpolate") return read_table(group);
  if (name == "binary") return Binary{read_kind<BinaryKind>(group, graph::kBinaryKinds)};
  if (name == "choose") {
    Choose choose;
    for (const std::int64_t one : read_integers(group, "mask")) choose.mask.push_back(one != 0);
    return choose;
  }
  if (name == "softmax") return Softmax{read_kind<SoftmaxKind>(group, 2)};
  if (name == "reduce") return Reduce{read_kind<ReduceKind>(group, 4)};
  if (name == "layer_normalise") {
    return LayerNormalise{read_list(group, "scale"), read_list(group, "shift"), group.number_attribute("epsilon")};
  }
  return Select{};
}

// Groups "0", "1", ... in their order.
template <class Read>
void read_numbered(const Group& group, const char* member, const Read& read) {
  const Group all = group.group(member);
  const std::size_t count = all.groups().size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    if (!all.has(number)) {
      refuse(all.name(), std::to_string(count) + " groups but none \"" + number + '"', "groups \"0\", \"1\", ...");
    }
    read(all.group(number));
  }
}

Port read_port(const Group& group) {
  check_members(group, std::array<std::string_view, 4>{"name", "unit", "minimum", "maximum"}, {});
  const std::int64_t width = group.integer_attribute("features");
  if (width < 1 || width > 1 << 20) {
    refuse(group.name() + "@features", std::to_string(width), "1 to 2^20");
  }
  Port port{group.string_attribute("name"), string_or_empty(group, "value"), {}};
  port.features = read_features(group, static_cast<std::size_t>(width));
  return port;
}

GuardedCall read_call(const Group& group) {
  check_members(group, {}, std::array<std::string_view, 1>{"inputs"});
  GuardedCall call{group.string_attribute("net"), group.string_attribute("name"), {}};
  read_numbered(group, "inputs", [&](const Group& port) { call.inputs.push_back(read_port(port)); });
  return call;
}

// ---- writing

void write_ports(Group& parent, const char* member, const std::vector<Port>& ports) {
  Group all = parent.create_group(member);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Group group = all.create_group(std::to_string(i));
    group.set_attribute("features", ports[i].features.size());
    set_unless_empty(group, "value", ports[i].value);
    write_port(group, ports[i]);
  }
}

void write_operation(Group& group, const Operation& operation) {
  const auto list = [&](const char* name, const std::vector<double>& values) {
    write_vector(group, name, values, {values.size()});
  };
  group.set_attribute("operation", std::string(graph::name_of(operation)));
  std::visit(
      [&]<class Op>(const Op& op) {
        if constexpr (std::is_same_v<Op, Dense>) {
          write_vector(group, "weight", op.weights, {op.outputs, op.inputs});
          if (!lacks_bias(op)) list("bias", op.bias);
        } else if constexpr (std::is_same_v<Op, Activate> || std::is_same_v<Op, Chain>) {
          group.set_attribute("activation", lockstep::to_string(op.activation));
        } else if constexpr (std::is_same_v<Op, Standardise> || std::is_same_v<Op, Rescale> ||
                             std::is_same_v<Op, LayerNormalise>) {
          list("shift", op.shift);
          list("scale", op.scale);
          if constexpr (std::is_same_v<Op, LayerNormalise>) group.set_attribute("epsilon", op.epsilon);
        } else if constexpr (std::is_same_v<Op, Constant>) {
          list("values", op.values);
        } else if constexpr (std::is_same_v<Op, Columns>) {
          const std::vector<std::int64_t> indices(op.indices.begin(), op.indices.end());
          group.create_dataset<std::int64_t>("indices", {indices.size()}).template write<std::int64_t>(indices);
        } else if constexpr (std::is_same_v<Op, Choose>) {
          group.create_dataset<std::uint8_t>("mask", {op.mask.size()}).template write<std::uint8_t>(op.mask);
        } else if constexpr (std::is_same_v<Op, Interpolate>) {
          list("knots", op.knots);
          list("coefficients", op.coefficients);
          group.set_attribute("outputs", op.outputs);
        } else if constexpr (std::is_same_v<Op, Clip>) {
          group.set_attribute("minimum", op.minimum);
          group.set_attribute("maximum", op.maximum);
        } else if constexpr (std::is_same_v<Op, DeadZone>) {
          group.set_attribute("lower", op.lower);
          group.set_attribute("upper", op.upper);
          group.set_attribute("bias", op.bias);
        } else if constexpr (!std::is_same_v<Op, Concatenate> && !std::is_same_v<Op, Select>) {
          group.set_attribute("kind", std::string(graph::to_string(op.kind)));
        }
      },
      operation);
}

}  // namespace

Model read_graph(const File& file) {
  constexpr std::array<std::string_view, 6> kGroups{"nodes", "inputs", "outputs", "provenance", "metadata", "calls"};
  const bool has_calls = file.integer_attribute("lockstep_model") >= kVersionWithCalls;
  check_members(file, {}, std::span(kGroups).first(has_calls ? 6 : 5));
  Model model;
  model.weight_type = WeightType::f32;
  read_numbered(file, "inputs", [&](const Group& group) { model.inputs.push_back(read_port(group)); });
  read_numbered(file, "nodes", [&](const Group& group) {
    Node node{group.string_attribute("name"), read_operation(group), {}};
    if (group.has("inputs")) node.inputs = group.dataset("inputs").read_strings();
    if (std::holds_alternative<Dense>(node.operation) && group.dataset("weight").type().bytes > sizeof(float)) {
      model.weight_type = WeightType::f64;
    }
    model.nodes.push_back(std::move(node));
  });
  read_numbered(file, "outputs", [&](const Group& group) { model.outputs.push_back(read_port(group)); });
  if (has_calls) read_numbered(file, "calls", [&](const Group& group) { model.calls.push_back(read_call(group)); });
  return model;
}

void write_graph(File& file, const Model& model) {
  model.validate();
  write_ports(file, "inputs", model.inputs);
  Group nodes = file.create_group("nodes");
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    Group group = nodes.create_group(std::to_string(i));
    group.set_attribute("name", model.nodes[i].name);
    if (!model.nodes[i].inputs.empty()) group.create_strings("inputs", model.nodes[i].inputs);
    write_operation(group, model.nodes[i].operation);
  }
  write_ports(file, "outputs", model.outputs);
  if (model.calls.empty()) return;
  Group calls = file.create_group("calls");
  for (std::size_t i = 0; i < model.calls.size(); ++i) {
    Group group = calls.create_group(std::to_string(i));
    group.set_attribute("net", model.calls[i].net);
    group.set_attribute("name", model.calls[i].name);
    write_ports(group, "inputs", model.calls[i].inputs);
  }
}

}  // namespace lockstep::nn::detail

#include "lockstep/nn/model.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/kernels/graph/stack.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn {
namespace {

using detail::refuse;

void check_ranges(const Port& port, const std::string& which) {
  for (std::size_t i = 0; i < port.features.size(); ++i) {
    const Feature& feature = port.features[i];
    if (feature.minimum <= feature.maximum) continue;
    refuse(which + " \"" + port.name + "\" feature " + std::to_string(i),
           "a range from " + number_text(feature.minimum) + " to " + number_text(feature.maximum),
           "a minimum not above the maximum");
  }
}

void check_features(const Port& port, const std::string& which) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < port.features.size(); ++i) {
    const std::string& name = port.features[i].name;
    if (name.empty() || names.insert(name).second) continue;
    refuse(which + " \"" + port.name + "\" feature " + std::to_string(i), "the name \"" + name + "\" a second time",
           "names that differ");
  }
  check_ranges(port, which);
}

void check_calls(const std::vector<GuardedCall>& calls, const std::vector<Node>& nodes,
                 const std::map<std::string, std::size_t>& widths) {
  std::set<std::string> names;
  std::set<std::string_view> own;
  for (const Node& node : nodes) own.insert(node.name);
  for (const GuardedCall& call : calls) {
    const std::string field = "call \"" + call.name + '"';
    if (call.name.empty() || call.net.empty() || !names.insert(call.name).second) {
      refuse(field, "no name of its own, or none of its net", "both");
    }
    const std::string prefix = call.name + ".";
    const auto first = own.lower_bound(prefix);
    if (first == own.end() || !first->starts_with(prefix)) {
      refuse(field, "no node \"" + prefix + "*\"",
             "the nodes of the call under its name: its inputs would not be clamped");
    }
    for (const Port& port : call.inputs) {
      const auto read = widths.find(port.value);
      if (read == widths.end() || read->second != port.features.size()) {
        refuse(
            field + " input \"" + port.name + '"',
            read == widths.end() ? '"' + port.value + "\" to read" : std::to_string(port.features.size()) + " features",
            read == widths.end() ? "the name of an input port or a node" : std::to_string(read->second));
      }
      check_ranges(port, field + " input");
    }
  }
}

// Values by their numbers: ports first, then nodes. A name that nothing has becomes value 0.
graph::Graph numbered(const Model& model) {
  std::map<std::string, std::size_t> numbers;
  graph::Graph graph;
  const auto add = [&](const std::string& name) { numbers.emplace(name, numbers.size()); };
  for (const Port& port : model.inputs) {
    graph.inputs.push_back({port.name, graph.inputs.size(), port.features.size()});
    add(port.name);
  }
  for (const Node& node : model.nodes) {
    std::vector<std::size_t> inputs;
    for (const std::string& input : node.inputs) inputs.push_back(numbers[input]);
    graph.nodes.push_back({node.name, node.operation, std::move(inputs)});
    add(node.name);
  }
  for (const Port& port : model.outputs) {
    graph.outputs.push_back({port.name, numbers[port.value], port.features.size()});
  }
  return graph;
}

}  // namespace

std::string to_string(WeightType type) {
  switch (type) {
    case WeightType::f16:
      return "float16";
    case WeightType::bf16:
      return "bfloat16";
    case WeightType::f32:
      return "float32";
    case WeightType::f64:
      break;
  }
  return "float64";
}

Model Model::from_mlp(const Mlp& mlp, std::span<const std::string> layer_names) {
  Model model;
  Port in{.name = "x", .value = "", .features = std::vector<Feature>(mlp.inputs())};
  std::string last = in.name;
  const auto append = [&](std::string name, Operation operation) {
    model.nodes.push_back({name, std::move(operation), {last}});
    last = std::move(name);
  };
  std::string layer;
  for (std::size_t layers = 0; Operation & operation : graph::operations_of(mlp)) {
    std::string name = std::holds_alternative<Standardise>(operation) ? "input_scaling" : "output_scaling";
    if (std::holds_alternative<Dense>(operation)) {
      layer = layers < layer_names.size() ? layer_names[layers] : "layers." + std::to_string(layers);
      ++layers;
      name = layer;
    } else if (std::holds_alternative<Activate>(operation)) {
      name = layer + ".activation";
    }
    append(std::move(name), std::move(operation));
  }
  model.inputs.push_back(std::move(in));
  model.outputs.push_back({.name = "y", .value = last, .features = std::vector<Feature>(mlp.outputs())});
  return model;
}

std::size_t Model::weight_count() const {
  std::size_t count = 0;
  for (const Node& node : nodes) {
    if (const auto* dense = std::get_if<Dense>(&node.operation)) count += dense->weights.size() + dense->bias.size();
  }
  return count;
}

std::size_t Model::parameter_count() const {
  std::size_t count = weight_count();
  for (const Node& node : nodes) {
    if (const auto* normalise = std::get_if<LayerNormalise>(&node.operation)) {
      count += normalise->scale.size() + normalise->shift.size();
    }
  }
  return count;
}

void Model::validate() const {
  const StandardArithmetic arithmetic;
  if (inputs.empty()) refuse("model", "no input port", "at least one");
  if (outputs.empty()) refuse("model", "no output port", "at least one");
  std::map<std::string, std::size_t> widths;  // of the values known so far
  const auto add = [&](const std::string& field, const std::string& value, std::size_t width) {
    if (value.empty()) refuse(field, "an empty name", "a name");
    if (!widths.emplace(value, width).second)
      refuse(field, "the name \"" + value + "\" a second time", "names that differ");
  };
  for (const Port& port : inputs) {
    if (port.features.empty()) refuse("input port \"" + port.name + "\"", "no features", "at least one");
    check_features(port, "input port");
    add("input port", port.name, port.features.size());
  }
  for (const Node& node : nodes) {
    std::vector<std::size_t> read;
    for (const std::string& input : node.inputs) {
      const auto source = widths.find(input);
      if (source == widths.end()) {
        refuse(node.name, "\"" + input + "\" to read", "the name of an input port or an earlier node");
      }
      read.push_back(source->second);
    }
    add("node", node.name, graph::output_width(node.operation, read, node.name));
  }
  std::set<std::string> output_names;
  for (const Port& port : outputs) {
    const std::string field = "output port \"" + port.name + "\"";
    if (port.name.empty() || !output_names.insert(port.name).second) refuse(field, "no name of its own", "one");
    const auto shown = widths.find(port.value);
    if (shown == widths.end()) refuse(field, "\"" + port.value + "\" to show", "the name of an input port or a node");
    if (shown->second != port.features.size()) {
      refuse(field, std::to_string(port.features.size()) + " features",
             std::to_string(shown->second) + ", the width of \"" + port.value + "\"");
    }
    check_features(port, "output port");
  }
  check_calls(calls, nodes, widths);
}

std::string Model::digest() const { return numbered(*this).digest(); }

graph::Graph to_graph(const Model& model) {
  const StandardArithmetic arithmetic;
  model.validate();
  return numbered(model);
}

std::optional<Mlp> as_stack(const Model& model) {
  try {
    return to_mlp(model);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return std::nullopt;
  }
}

bool is_stack(const Model& model) { return as_stack(model).has_value(); }

Mlp detail::stack_to_compile(const Model& model) {
  try {
    return to_mlp(model);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    throw Error(error.kind(), {error.field(), error.found(), error.expected(),
                               "compile it by nn::NetPlan<T>::compile(model), which takes any net; compile() is for "
                               "plain stacks of dense layers"});
  }
}

Mlp to_mlp(const Model& model) {
  const StandardArithmetic arithmetic;
  model.validate();
  const auto not_a_stack = [](const std::string& field, const std::string& found, const std::string& expected) {
    throw Error(ErrorKind::unsupported,
                {field, found, expected, "what was asked for works on plain stacks of dense layers only"});
  };
  if (model.inputs.size() != 1) not_a_stack("model", std::to_string(model.inputs.size()) + " input ports", "one");
  if (model.outputs.size() != 1) not_a_stack("model", std::to_string(model.outputs.size()) + " output ports", "one");
  Mlp mlp;
  std::string last = model.inputs.front().name;
  enum class Place { start, after_input_scaling, after_dense, after_activation, after_output_scaling };
  Place place = Place::start;
  for (const Node& node : model.nodes) {
    if (node.inputs.size() != 1) {
      not_a_stack(node.name, std::to_string(node.inputs.size()) + " values to read", "one, the value before it");
    }
    if (node.inputs.front() != last) {
      not_a_stack(node.name, "\"" + node.inputs.front() + "\" to read", "\"" + last + "\", the value before it");
    }
    last = node.name;
    if (place == Place::after_output_scaling) not_a_stack(node.name, "a node after the output scaling", "the end");
    if (const auto* dense = std::get_if<Dense>(&node.operation)) {
      mlp.layers.push_back({dense->inputs, dense->outputs, dense->weights, dense->bias, Activation{}, dense->has_bias});
      place = Place::after_dense;
    } else if (const auto* activate = std::get_if<Activate>(&node.operation)) {
      if (place != Place::after_dense) not_a_stack(node.name, "an activation", "a dense layer before it");
      mlp.layers.back().activation = activate->activation;
      place = Place::after_activation;
    } else if (const auto* standardise = std::get_if<Standardise>(&node.operation)) {
      if (place != Place::start) not_a_stack(node.name, "a standardisation", "it before the first layer only");
      mlp.input_scaling = {standardise->shift, standardise->scale};
      place = Place::after_input_scaling;
    } else if (const auto* rescale = std::get_if<Rescale>(&node.operation)) {
      if (mlp.layers.empty()) not_a_stack(node.name, "a rescaling", "it after the last layer only");
      mlp.output_scaling = {rescale->scale, rescale->shift};
      place = Place::after_output_scaling;
    } else {
      not_a_stack(node.name, graph::describe(node.operation), "dense layers, activations and scalings");
    }
  }
  if (mlp.layers.empty()) not_a_stack("model", "no dense layer", "at least one");
  if (model.outputs.front().value != last) {
    not_a_stack("output port \"" + model.outputs.front().name + "\"", "\"" + model.outputs.front().value + "\" to show",
                "\"" + last + "\", the last value");
  }
  return mlp;
}

}  // namespace lockstep::nn

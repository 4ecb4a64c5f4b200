#include "lockstep/nn/model.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <type_traits>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn {
namespace {

using detail::refuse;

void check_finite(const std::string& field, std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      refuse(field + "[" + std::to_string(i) + "]", std::isnan(values[i]) ? "nan" : "infinity", "a finite number");
    }
  }
}

void check_size(const std::string& field, std::size_t found, std::size_t expected, const std::string& what) {
  if (found != expected) {
    refuse(field, std::to_string(found) + " numbers", std::to_string(expected) + " (" + what + ")");
  }
}

void check_scale(const std::string& field, std::span<const double> scale) {
  check_finite(field, scale);
  for (std::size_t i = 0; i < scale.size(); ++i) {
    if (scale[i] == 0) refuse(field + "[" + std::to_string(i) + "]", "0", "a number other than 0");
  }
}

// Each returns the width of the operation's value, given its input's.

std::size_t output_width(const std::string& name, const Dense& dense, std::size_t input) {
  if (dense.inputs == 0 || dense.outputs == 0) {
    refuse(name, std::to_string(dense.inputs) + " inputs and " + std::to_string(dense.outputs) + " outputs",
           "at least one of each");
  }
  if (dense.inputs != input) {
    refuse(name, std::to_string(dense.inputs) + " inputs", std::to_string(input) + ", the width of what it reads");
  }
  if (dense.weights.size() / dense.inputs != dense.outputs || dense.weights.size() % dense.inputs != 0) {
    refuse(name + ".weight", std::to_string(dense.weights.size()) + " numbers",
           std::to_string(dense.outputs) + " x " + std::to_string(dense.inputs));
  }
  check_size(name + ".bias", dense.bias.size(), dense.outputs, "one for each output");
  for (std::size_t j = 0; j < dense.outputs; ++j) {
    check_finite(name + ".weight[" + std::to_string(j) + "]",
                 std::span(dense.weights).subspan(j * dense.inputs, dense.inputs));
  }
  check_finite(name + ".bias", dense.bias);
  return dense.outputs;
}

std::size_t output_width(const std::string& name, const Activate& activate, std::size_t input) {
  if (!std::isfinite(activate.activation.alpha)) {
    refuse(name + ".alpha", std::to_string(activate.activation.alpha), "a finite number");
  }
  return input;
}

std::size_t output_width(const std::string& name, const Standardise& standardise, std::size_t input) {
  check_size(name + ".shift", standardise.shift.size(), input, "the width of what it reads");
  check_size(name + ".scale", standardise.scale.size(), input, "the width of what it reads");
  check_finite(name + ".shift", standardise.shift);
  check_scale(name + ".scale", standardise.scale);
  return input;
}

std::size_t output_width(const std::string& name, const Rescale& rescale, std::size_t input) {
  check_size(name + ".scale", rescale.scale.size(), input, "the width of what it reads");
  check_size(name + ".shift", rescale.shift.size(), input, "the width of what it reads");
  check_finite(name + ".scale", rescale.scale);
  check_finite(name + ".shift", rescale.shift);
  return input;
}

// An Mlp may leave out shift or scale.
std::vector<double> filled(const std::vector<double>& values, std::size_t width, double missing) {
  return values.empty() ? std::vector<double>(width, missing) : values;
}

void check_features(const Port& port, const std::string& which) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < port.features.size(); ++i) {
    const Feature& feature = port.features[i];
    const std::string field = which + " \"" + port.name + "\" feature " + std::to_string(i);
    if (!feature.name.empty() && !names.insert(feature.name).second) {
      refuse(field, "the name \"" + feature.name + "\" a second time", "names that differ");
    }
    if (!(feature.minimum <= feature.maximum)) {
      refuse(field, "a range from " + std::to_string(feature.minimum) + " to " + std::to_string(feature.maximum),
             "a minimum not above the maximum");
    }
  }
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
  if (!mlp.input_scaling.scale.empty() || !mlp.input_scaling.shift.empty()) {
    append("input_scaling", Standardise{filled(mlp.input_scaling.shift, mlp.inputs(), 0),
                                        filled(mlp.input_scaling.scale, mlp.inputs(), 1)});
  }
  for (std::size_t i = 0; i < mlp.layers.size(); ++i) {
    const DenseLayer& layer = mlp.layers[i];
    const std::string name = i < layer_names.size() ? layer_names[i] : "layers." + std::to_string(i);
    append(name, Dense{layer.inputs, layer.outputs, layer.weights, layer.bias});
    if (layer.activation.kind != ActivationKind::identity) append(name + ".activation", Activate{layer.activation});
  }
  if (!mlp.output_scaling.scale.empty() || !mlp.output_scaling.shift.empty()) {
    append("output_scaling", Rescale{filled(mlp.output_scaling.scale, mlp.outputs(), 1),
                                     filled(mlp.output_scaling.shift, mlp.outputs(), 0)});
  }
  model.inputs.push_back(std::move(in));
  model.outputs.push_back({.name = "y", .value = last, .features = std::vector<Feature>(mlp.outputs())});
  return model;
}

std::size_t Model::parameter_count() const {
  std::size_t count = 0;
  for (const Node& node : nodes) {
    if (const auto* dense = std::get_if<Dense>(&node.operation)) count += dense->weights.size() + dense->bias.size();
  }
  return count;
}

void Model::validate() const {
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
    if (node.inputs.size() != 1) {
      refuse(node.name, std::to_string(node.inputs.size()) + " values to read",
             "one, for each of the present operations");
    }
    const auto source = widths.find(node.inputs.front());
    if (source == widths.end()) {
      refuse(node.name, "\"" + node.inputs.front() + "\" to read", "the name of an input port or an earlier node");
    }
    const std::size_t width = std::visit(
        [&](const auto& operation) { return output_width(node.name, operation, source->second); }, node.operation);
    add("node", node.name, width);
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
}

std::string Model::digest() const {
  // Values are known by their number: ports first, then nodes.
  std::map<std::string, std::uint64_t> numbers;
  ContentHash hash;
  const auto add_number = [&](std::uint64_t number) { hash.add(std::span<const std::uint64_t>(&number, 1)); };
  const auto add_list = [&](const std::vector<double>& values) { hash.add(std::span<const double>(values)); };
  for (const Port& port : inputs) {
    numbers.emplace(port.name, numbers.size());
    add_number(port.features.size());
  }
  for (const Node& node : nodes) {
    add_number(node.inputs.size());
    for (const std::string& input : node.inputs) add_number(numbers[input]);
    std::visit(
        [&]<class T>(const T& operation) {
          if constexpr (std::is_same_v<T, Dense>) {
            hash.add("dense");
            add_list(operation.weights);
            add_list(operation.bias);
          } else if constexpr (std::is_same_v<T, Activate>) {
            hash.add("activate").add(lockstep::to_string(operation.activation));
          } else if constexpr (std::is_same_v<T, Standardise>) {
            hash.add("standardise");
            add_list(operation.shift);
            add_list(operation.scale);
          } else {
            hash.add("rescale");
            add_list(operation.scale);
            add_list(operation.shift);
          }
        },
        node.operation);
    numbers.emplace(node.name, numbers.size());
  }
  for (const Port& port : outputs) add_number(numbers[port.value]);
  return hash.hex();
}

Mlp to_mlp(const Model& model) {
  model.validate();
  const auto not_a_stack = [](const std::string& field, const std::string& found, const std::string& expected) {
    throw Error(ErrorKind::unsupported,
                {field, found, expected, "only plain stacks of dense layers are evaluated so far"});
  };
  if (model.inputs.size() != 1) not_a_stack("model", std::to_string(model.inputs.size()) + " input ports", "one");
  if (model.outputs.size() != 1) not_a_stack("model", std::to_string(model.outputs.size()) + " output ports", "one");
  Mlp mlp;
  std::string last = model.inputs.front().name;
  enum class Place { start, after_input_scaling, after_dense, after_activation, after_output_scaling };
  Place place = Place::start;
  for (const Node& node : model.nodes) {
    if (node.inputs.front() != last) {
      not_a_stack(node.name, "\"" + node.inputs.front() + "\" to read", "\"" + last + "\", the value before it");
    }
    last = node.name;
    if (place == Place::after_output_scaling) not_a_stack(node.name, "a node after the output scaling", "the end");
    if (const auto* dense = std::get_if<Dense>(&node.operation)) {
      mlp.layers.push_back({dense->inputs, dense->outputs, dense->weights, dense->bias, Activation{}});
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

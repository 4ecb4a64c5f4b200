#include "lockstep/nn/hdf5_model.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/names.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/nn/detail/activation_list.h"
#include "lockstep/nn/detail/hdf5_graph.h"
#include "lockstep/nn/detail/hdf5_parts.h"
#include "lockstep/nn/detail/read_bytes.h"
#include "lockstep/nn/detail/refuse.h"
#include "lockstep/nn/detail/stack_ports.h"
#include "lockstep/nn/shared_weights.h"

namespace lockstep::nn {
namespace {

using detail::check_members;
using detail::read_features;
using detail::read_vector;
using detail::read_vector_if_there;
using detail::refuse;
using detail::set_unless_empty;
using detail::shape_text;
using detail::string_or_empty;
using detail::write_port;
using detail::write_vector;
using hdf5::Dataset;
using hdf5::File;
using hdf5::Group;
using hdf5::Shape;

struct Layers {
  Mlp mlp;
  std::vector<std::string> names;
  WeightType weight_type = WeightType::f32;
};

DenseLayer read_layer(const Group& group, const DenseLayer* before) {
  check_members(group, std::array<std::string_view, 2>{"weight", "bias"}, {});
  const Dataset weight = group.dataset("weight");
  const Shape shape = weight.shape();
  if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0) {
    refuse(weight.name(), "shape " + shape_text(shape), "[outputs, inputs], both above 0");
  }
  if (before != nullptr && shape[1] != before->outputs) {
    refuse(weight.name(), std::to_string(shape[1]) + " inputs (shape " + shape_text(shape) + ")",
           std::to_string(before->outputs) + ", the outputs of the layer before it",
           shape[0] == before->outputs ? "transpose it: weights are stored [outputs, inputs]" : "");
  }
  DenseLayer layer{shape[1], shape[0], weight.read<double>(), {}, {}, group.has("bias")};
  layer.bias =
      group.has("bias") ? read_vector(group, "bias", layer.outputs, "output") : std::vector<double>(layer.outputs);
  if (!group.has_attribute("activation")) {
    refuse(group.name(), "no attribute \"activation\"", "one, \"identity\" if there is none");
  }
  const std::string activation = group.string_attribute("activation");
  layer.activation = detail::known_activation(activation, group.name() + "@activation");
  return layer;
}

Layers read_layers(const Group& root) {
  const Group all = root.group("layers");
  const std::size_t count = all.groups().size();
  if (count == 0) refuse(all.name(), "no layers", "groups \"0\", \"1\", ...");
  Layers result;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    if (!all.has(number)) {
      refuse(all.name(), std::to_string(count) + " groups but none \"" + number + "\"", "groups \"0\", \"1\", ...");
    }
    const Group group = all.group(number);
    result.mlp.layers.push_back(read_layer(group, i == 0 ? nullptr : &result.mlp.layers.back()));
    result.names.push_back(group.has_attribute("name") ? group.string_attribute("name") : "layers." + number);
    if (group.dataset("weight").type().bytes > sizeof(float)) result.weight_type = WeightType::f64;
  }
  return result;
}

// Both numbers of a linear map, or neither.
std::pair<std::vector<double>, std::vector<double>> read_scaling(const Group& group, std::size_t width) {
  if (group.has("shift") != group.has("scale")) {
    refuse(group.name(), group.has("shift") ? "shift without scale" : "scale without shift", "both or neither");
  }
  return {read_vector_if_there(group, "shift", width), read_vector_if_there(group, "scale", width)};
}

void check_version(const File& file) {
  if (!file.has_attribute("lockstep_model")) {
    refuse(file.name(), "no attribute \"lockstep_model\"", "a model written by Lockstep");
  }
  const std::int64_t version = file.integer_attribute("lockstep_model");
  if (version < 1 || version > kModelFormatVersion) {
    throw Error(ErrorKind::unsupported, {file.name() + "@lockstep_model", "format version " + std::to_string(version),
                                         "version 1 to 3", "read it with a newer Lockstep"});
  }
}

Model read_stack(const File& file) {
  check_members(file, {}, std::array<std::string_view, 5>{"layers", "inputs", "outputs", "provenance", "metadata"});
  constexpr std::array<std::string_view, 6> kLists = {"name", "unit", "minimum", "maximum", "shift", "scale"};
  Layers layers = read_layers(file);
  std::optional<Group> inputs, outputs;
  if (file.has("inputs")) {
    inputs = file.group("inputs");
    check_members(*inputs, kLists, {});
    std::tie(layers.mlp.input_scaling.shift, layers.mlp.input_scaling.scale) =
        read_scaling(*inputs, layers.mlp.inputs());
  }
  if (file.has("outputs")) {
    outputs = file.group("outputs");
    check_members(*outputs, kLists, {});
    std::tie(layers.mlp.output_scaling.shift, layers.mlp.output_scaling.scale) =
        read_scaling(*outputs, layers.mlp.outputs());
  }

  Model model = Model::from_mlp(layers.mlp, layers.names);
  model.weight_type = layers.weight_type;
  if (inputs) {
    model.inputs[0].features = read_features(*inputs, layers.mlp.inputs());
    detail::name_ports(model, string_or_empty(*inputs, "name"), "");
  }
  if (outputs) {
    model.outputs[0].features = read_features(*outputs, layers.mlp.outputs());
    detail::name_ports(model, "", string_or_empty(*outputs, "name"));
  }
  return model;
}

void write_stack(File& file, const Model& model) {
  const Mlp mlp = to_mlp(model);
  Group layers = file.create_group("layers");
  std::size_t next = 0;
  for (const Node& node : model.nodes) {
    if (!std::holds_alternative<Dense>(node.operation)) continue;
    const DenseLayer& layer = mlp.layers[next];
    Group group = layers.create_group(std::to_string(next++));
    group.set_attribute("name", node.name);
    group.set_attribute("activation", to_string(layer.activation));
    write_vector(group, "weight", layer.weights, {layer.outputs, layer.inputs});
    if (!lacks_bias(layer)) write_vector(group, "bias", layer.bias, {layer.outputs});
  }
  const auto write_scaled_port = [&](const char* member, const Port& port, const std::vector<double>& shift,
                                     const std::vector<double>& scale) {
    Group group = file.create_group(member);
    write_port(group, port);
    if (scale.empty()) return;
    write_vector(group, "shift", shift, {port.features.size()});
    write_vector(group, "scale", scale, {port.features.size()});
  };
  write_scaled_port("inputs", model.inputs[0], mlp.input_scaling.shift, mlp.input_scaling.scale);
  write_scaled_port("outputs", model.outputs[0], mlp.output_scaling.shift, mlp.output_scaling.scale);
}

}  // namespace

Model read_hdf5_model(const std::filesystem::path& path) { return read_hdf5_model(File::open(path)); }

Model read_hdf5_model(const File& file) {
  const StandardReading arithmetic;
  check_version(file);
  Model model = file.integer_attribute("lockstep_model") == 1 ? read_stack(file) : detail::read_graph(file);
  model.name = string_or_empty(file, "name");
  model.provenance.source = file.path().string();
  model.provenance.format = "lockstep HDF5";
  model.provenance.digest = content_digest(detail::read_bytes(file.path()));
  if (file.has("provenance")) {
    const Group provenance = file.group("provenance");
    model.provenance.producer = string_or_empty(provenance, "producer");
    model.provenance.licence = string_or_empty(provenance, "licence");
    model.provenance.attribution = string_or_empty(provenance, "attribution");
  }
  if (file.has("metadata")) {
    const Group metadata = file.group("metadata");
    for (const std::string& key : metadata.attribute_names()) model.metadata[key] = metadata.string_attribute(key);
  }
  try {
    model.validate();
  } catch (const Error& error) {
    refuse(file.path().string() + ": " + error.field(), error.found(), error.expected(), error.remedy());
  }
  const std::string digest = string_or_empty(file, "digest");
  if (!digest.empty() && digest != model.digest()) {
    refuse(file.name() + "@digest", digest, model.digest() + ", computed from the numbers in the file",
           "get an undamaged copy; if the numbers were changed on purpose, delete this attribute");
  }
  return model;
}

namespace {
constexpr std::uintmax_t kOverhead = 8192;  // of HDF5's own, at least: names, attributes
}

void write_hdf5_model(const std::filesystem::path& path, const Model& model, Existing existing) {
  const bool stack = model.calls.empty() && is_stack(model);
  File file = File::create(path, existing, model.parameter_count() * sizeof(float) + kOverhead);
  file.set_attribute("lockstep_model", stack ? 1 : model.calls.empty() ? 2 : detail::kVersionWithCalls);
  file.set_attribute("digest", model.digest());
  set_unless_empty(file, "name", model.name);
  if (stack) {
    write_stack(file, model);
  } else {
    detail::write_graph(file, model);
  }
  {
    Group provenance = file.create_group("provenance");
    set_unless_empty(provenance, "producer", model.provenance.producer);
    set_unless_empty(provenance, "licence", model.provenance.licence);
    set_unless_empty(provenance, "attribution", model.provenance.attribution);
    set_unless_empty(provenance, "source", model.provenance.source);
    set_unless_empty(provenance, "source_format", model.provenance.format);
    set_unless_empty(provenance, "source_digest", model.provenance.digest);
    Group metadata = file.create_group("metadata");
    for (const auto& [key, value] : model.metadata) metadata.set_attribute(key, value);
  }
  file.publish();
  file.close();
}

}  // namespace lockstep::nn

#include "lockstep/nn/detail/onnx_kept.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_steps.h"
#include "lockstep/nn/detail/onnx_tensor.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

using KeptJson = nlohmann::ordered_json;

constexpr const char *kInputsKey = "lockstep.inputs", *kOutputsKey = "lockstep.outputs", *kNodesKey = "lockstep.nodes",
                     *kCallsKey = "lockstep.calls", *kProducerKey = "lockstep.producer",
                     *kLicenceKey = "lockstep.licence", *kAttributionKey = "lockstep.attribution";

constexpr double kNoBound = std::numeric_limits<double>::infinity();

bool is_kept_key(const std::string& key) {
  static constexpr std::array<std::string_view, 7> kKeys{kInputsKey,   kOutputsKey, kNodesKey,      kCallsKey,
                                                         kProducerKey, kLicenceKey, kAttributionKey};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

// ---- writing

void set(KeptJson& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}
// JSON has no infinity. Left out it is no bound.
void set_bound(KeptJson& json, const char* key, double bound, double none) {
  if (bound == none) return;
  json[key] = std::isfinite(bound) ? KeptJson(bound) : KeptJson(bound > 0 ? "infinity" : "-infinity");
}

KeptJson json_of(const Port& port) {
  KeptJson features = KeptJson::array();
  bool any = false;
  for (const Feature& feature : port.features) {
    KeptJson one = KeptJson::object();
    set(one, "name", feature.name);
    set(one, "unit", feature.unit);
    set_bound(one, "minimum", feature.minimum, -kNoBound);
    set_bound(one, "maximum", feature.maximum, kNoBound);
    any = any || !one.empty();
    features.push_back(std::move(one));
  }
  KeptJson json = {{"name", port.name}};
  set(json, "value", port.value);
  json["features"] = any ? std::move(features) : KeptJson(port.features.size());
  return json;
}

KeptJson json_of(const std::vector<Port>& ports) {
  KeptJson json = KeptJson::array();
  for (const Port& port : ports) json.push_back(json_of(port));
  return json;
}

struct DescribeOperation {
  KeptJson& json;

  void operator()(const Activate& activate) const { json["activation"] = lockstep::to_string(activate.activation); }
  void operator()(const Chain& chain) const { json["activation"] = lockstep::to_string(chain.activation); }
  void operator()(const Columns& columns) const { json["indices"] = columns.indices; }
  void operator()(const Choose& choose) const { json["mask"] = choose.mask; }
  void operator()(const LayerNormalise& normalise) const { json["epsilon"] = normalise.epsilon; }
  void operator()(const Unary& unary) const { json["kind"] = graph::to_string(unary.kind); }
  void operator()(const Binary& binary) const { json["kind"] = graph::to_string(binary.kind); }
  void operator()(const Softmax& softmax) const { json["kind"] = graph::to_string(softmax.kind); }
  void operator()(const Reduce& reduce) const { json["kind"] = graph::to_string(reduce.kind); }
  void operator()(const Clip& clip) const {
    set_bound(json, "minimum", clip.minimum, -kNoBound);
    set_bound(json, "maximum", clip.maximum, kNoBound);
  }
  void operator()(const DeadZone& zone) const {
    set_bound(json, "lower", zone.lower, -kNoBound);
    set_bound(json, "upper", zone.upper, kNoBound);
    json["bias"] = zone.bias;
  }
  void operator()(const auto&) const {}  // all said by the tensors
};

KeptJson json_of(const Node& node, const std::vector<std::string>& tensors) {
  KeptJson json = {{"name", node.name}, {"operation", graph::name_of(node.operation)}};
  std::visit(DescribeOperation{json}, node.operation);
  if (!node.inputs.empty()) json["inputs"] = node.inputs;
  if (!tensors.empty()) json["tensors"] = tensors;
  return json;
}

// ---- reading: of anything that is not as it was written json's or this library's own exception

double bound_of(const KeptJson& json, const char* key, double none) {
  const auto found = json.find(key);
  if (found == json.end()) return none;
  if (!found->is_string()) return found->get<double>();
  return found->get<std::string>() == "infinity" ? kNoBound : -kNoBound;
}

Port port_of(const KeptJson& json) {
  Port port{json.at("name").get<std::string>(), json.value("value", ""), {}};
  const KeptJson& features = json.at("features");
  const auto width = features.is_array() ? features.size() : features.get<std::size_t>();
  if (width > kMostFeatures) refuse("port", std::to_string(width) + " features", "at most 2^20");
  port.features.resize(width);
  for (std::size_t i = 0; features.is_array() && i < width; ++i) {
    const KeptJson& one = features[i];
    port.features[i] = {one.value("name", ""), one.value("unit", ""), bound_of(one, "minimum", -kNoBound),
                        bound_of(one, "maximum", kNoBound)};
  }
  return port;
}

std::vector<Port> ports_of(const KeptJson& json) {
  std::vector<Port> ports;
  for (const KeptJson& port : json) ports.push_back(port_of(port));
  return ports;
}

template <class Kind>
Kind kind_of(const KeptJson& json, std::size_t count) {
  const auto text = json.at("kind").get<std::string>();
  for (std::size_t i = 0; i < count; ++i) {
    if (graph::to_string(static_cast<Kind>(i)) == text) return static_cast<Kind>(i);
  }
  refuse("kind", text, "one that is known");
}

class NodeReader {
 public:
  NodeReader(const onnx::GraphProto& graph, const std::filesystem::path& path) : path_(path) {
    for (const auto& tensor : graph.initializer()) tensors_[tensor.name()] = &tensor;
  }

  Node read(const KeptJson& json) {
    names_ = json.value("tensors", std::vector<std::string>());
    Node node{json.at("name").get<std::string>(), operation(json.at("operation").get<std::string>(), json), {}};
    node.inputs = json.value("inputs", std::vector<std::string>());
    return node;
  }

 private:
  // Each tensor belongs to one node: many nodes cannot ask for copies of a large one.
  OnnxTensor tensor(std::size_t i) {
    const auto found = tensors_.extract(names_.at(i));
    if (found.empty()) refuse("tensor", names_[i], "one of the graph");
    return read_tensor(*found.mapped(), names_[i], path_);
  }
  std::vector<double> numbers(std::size_t i) { return tensor(i).values; }

  Operation operation(const std::string& name, const KeptJson& json) {
    const auto activation = [&] { return parse_activation(json.at("activation").get<std::string>()).value(); };
    if (name == "dense") {
      OnnxTensor weight = tensor(0);
      const auto outputs = static_cast<std::size_t>(weight.shape.at(0)),
                 inputs = static_cast<std::size_t>(weight.shape.at(1));
      const bool has_bias = names_.size() > 1;
      return Dense{inputs, outputs, std::move(weight.values), has_bias ? numbers(1) : std::vector<double>(outputs),
                   has_bias};
    }
    if (name == "activate") return Activate{activation()};
    if (name == "chain") return Chain{activation()};
    if (name == "standardise") {
      std::vector<double> shift = numbers(0);
      return Standardise{std::move(shift), numbers(1)};
    }
    if (name == "rescale") {
      std::vector<double> scale = numbers(0);
      return Rescale{std::move(scale), numbers(1)};
    }
    if (name == "layer_normalise") {
      std::vector<double> scale = numbers(0);
      return LayerNormalise{std::move(scale), numbers(1), json.at("epsilon").get<double>()};
    }
    if (name == "constant") return Constant{numbers(0)};
    if (name == "concatenate") return Concatenate{};
    if (name == "columns") return Columns{json.at("indices").get<std::vector<std::size_t>>()};
    if (name == "choose") return Choose{json.at("mask").get<std::vector<std::uint8_t>>()};
    if (name == "unary") return Unary{kind_of<UnaryKind>(json, graph::kUnaryKinds)};
    if (name == "binary") return Binary{kind_of<BinaryKind>(json, graph::kBinaryKinds)};
    if (name == "softmax") return Softmax{kind_of<SoftmaxKind>(json, 2)};
    if (name == "reduce") return Reduce{kind_of<ReduceKind>(json, 4)};
    if (name == "clip") return Clip{bound_of(json, "minimum", -kNoBound), bound_of(json, "maximum", kNoBound)};
    if (name == "dead_zone") {
      return DeadZone{bound_of(json, "lower", -kNoBound), bound_of(json, "upper", kNoBound),
                      json.at("bias").get<double>()};
    }
    if (name == "select") return Select{};
    if (name == "interpolate") return table();
    refuse("operation", name, "one that is known");
  }

  Interpolate table() {
    Interpolate table{numbers(0), 0, {}};
    std::vector<std::vector<double>> powers;  // the ends of the knots are the second tensor
    for (std::size_t i = 2; i < names_.size(); ++i) powers.push_back(numbers(i));
    const std::size_t knots = table.knots.size();
    table.outputs = knots == 0 || powers.empty() ? 0 : powers[0].size() / knots;
    for (std::size_t output = 0; output < table.outputs; ++output) {
      for (const std::vector<double>& power : powers) {
        for (std::size_t knot = 0; knot < knots; ++knot) table.coefficients.push_back(power.at(output * knots + knot));
      }
    }
    return table;
  }

  const std::filesystem::path& path_;
  std::map<std::string, const onnx::TensorProto*> tensors_;
  std::vector<std::string> names_;  // of the node's
};

std::optional<KeptJson> parsed(const onnx::ModelProto& file, const char* key) {
  for (const auto& entry : file.metadata_props()) {
    if (entry.key() != key) continue;
    KeptJson json = KeptJson::parse(entry.value(), nullptr, false);
    if (!json.is_discarded()) return json;
  }
  return {};
}

void take_features(const onnx::ModelProto& file, const char* key, std::vector<Port>& ports) {
  const auto json = parsed(file, key);
  if (!json) return;
  for (const Port& kept : ports_of(*json)) {
    const auto same = std::ranges::find(ports, kept.name, &Port::name);
    if (same != ports.end() && same->features.size() == kept.features.size()) same->features = kept.features;
  }
}

}  // namespace

void keep_in_metadata(onnx::ModelProto& file, const Model& model, OnnxWriter& writer) {
  const auto refuse_text = [](const std::string& key) {
    refuse(key.starts_with("lockstep.") ? key.substr(9) : "metadata", "a text that is not UTF-8",
           "UTF-8, which ONNX files are written in", "rename or remove it");
  };
  const auto add = [&](const std::string& key, const std::string& value) {
    if (!is_utf8(key) || !is_utf8(value)) refuse_text(key);
    if (value.empty()) return;
    auto* entry = file.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  };
  const auto add_json = [&](const char* key, const KeptJson& json) {
    try {
      add(key, json.dump());
    } catch (const KeptJson::type_error&) {  // a text in it
      refuse_text(key);
    }
  };
  add_json(kInputsKey, json_of(model.inputs));
  add_json(kOutputsKey, json_of(model.outputs));
  KeptJson nodes = KeptJson::array(), calls = KeptJson::array();
  for (const Node& node : model.nodes) nodes.push_back(json_of(node, writer.tensors_of(node.name)));
  for (const GuardedCall& call : model.calls) {
    calls.push_back({{"net", call.net}, {"name", call.name}, {"inputs", json_of(call.inputs)}});
  }
  add_json(kNodesKey, nodes);
  if (!calls.empty()) add_json(kCallsKey, calls);
  add(kProducerKey, model.provenance.producer);
  add(kLicenceKey, model.provenance.licence);
  add(kAttributionKey, model.provenance.attribution);
  for (const auto& [key, value] : model.metadata) {
    if (!is_kept_key(key)) add(key, value);
  }
}

std::optional<Model> as_written(const onnx::ModelProto& file, const std::filesystem::path& path) {
  const auto nodes = parsed(file, kNodesKey), inputs = parsed(file, kInputsKey), outputs = parsed(file, kOutputsKey);
  if (!nodes || !inputs || !outputs || file.opset_import_size() != 1 || file.functions_size() != 0) return {};
  if (file.opset_import(0).version() != kWrittenOpset || !file.opset_import(0).domain().empty()) return {};
  try {
    Model model;
    model.name = file.graph().name();
    model.inputs = ports_of(*inputs);
    model.outputs = ports_of(*outputs);
    NodeReader reader(file.graph(), path);
    for (const KeptJson& node : *nodes) model.nodes.push_back(reader.read(node));
    if (const auto calls = parsed(file, kCallsKey)) {
      for (const KeptJson& call : *calls) {
        model.calls.push_back(
            {call.at("net").get<std::string>(), call.at("name").get<std::string>(), ports_of(call.at("inputs"))});
      }
    }
    model.validate();
    if (file.graph().input_size() == 0) return {};
    const bool single = file.graph().input(0).type().tensor_type().elem_type() == onnx::TensorProto::FLOAT;
    model.weight_type = single ? WeightType::f32 : WeightType::f64;
    OnnxWriter again(model, single ? Precision::f32 : Precision::f64);
    if (again.write().SerializeAsString() != file.graph().SerializeAsString()) return {};
    return model;
  } catch (const KeptJson::exception&) {
  } catch (const Error&) {
  } catch (const std::bad_optional_access&) {
  } catch (const std::out_of_range&) {
  }
  return {};
}

void take_from_metadata(const onnx::ModelProto& file, Model& model) {
  try {
    take_features(file, kInputsKey, model.inputs);
    take_features(file, kOutputsKey, model.outputs);
  } catch (const KeptJson::exception&) {  // of another tool's, or damaged: the net is what counts
  } catch (const Error&) {
  }
  for (const auto& entry : file.metadata_props()) {
    const std::string& key = entry.key();
    if (key == kProducerKey) model.provenance.producer = entry.value();
    if (key == kLicenceKey) model.provenance.licence = entry.value();
    if (key == kAttributionKey) model.provenance.attribution = entry.value();
    if (!is_kept_key(key)) model.metadata.emplace(key, entry.value());
  }
}

}  // namespace lockstep::nn::detail

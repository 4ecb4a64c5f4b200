#include "lockstep/nn/safetensors.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/nn/detail/activation_list.h"
#include "lockstep/nn/detail/read_bytes.h"
#include "lockstep/nn/detail/refuse.h"
#include "lockstep/nn/detail/safetensors_container.h"
#include "lockstep/nn/detail/stack_ports.h"

namespace lockstep::nn {
namespace {

using detail::Container;
using detail::refuse;
using detail::shape_text;
using detail::Tensor;

constexpr std::array kScalingNames = {"input_mean",    "input_stddev", "output_mean",
                                      "output_stddev", "input_min",    "input_max"};
constexpr const char* kOnlyDense =
    "only dense layers are read here; a net with normalisations, PReLU or convolutions comes by ONNX "
    "(torch.onnx.export)";
constexpr const char* kNaming =
    "name the layers \"layers.0.weight\", \"layers.0.bias\", \"layers.1.weight\", ... or as torch.nn.Sequential does";

// "model.net.2.weight" -> prefix "model.net.", number "2", part weight.
struct LayerName {
  std::string prefix, digits;
  bool is_weight = false;
};

std::optional<LayerName> parse_layer_name(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  const std::string part = name.substr(dot + 1);
  if (part != "weight" && part != "bias") return std::nullopt;
  std::size_t digits = dot;
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits == dot) return std::nullopt;
  return LayerName{name.substr(0, digits), name.substr(digits, dot - digits), part == "weight"};
}

// What to call a tensor that is no layer's: one of a scaling, or range, has a name of its own.
std::string naming_of(const std::string& name) {
  const std::string last = name.substr(name.rfind('.') + 1);  // 0 where there is no dot
  const auto has = [&](std::initializer_list<std::string_view> parts) {
    return std::ranges::any_of(parts, [&](std::string_view part) { return last.find(part) != last.npos; });
  };
  if (has({"mean", "shift", "loc", "std", "scale", "sigma", "var"})) {
    return "a scaling is two tensors [feature] called \"input_mean\" and \"input_stddev\", (x - mean) / stddev before "
           "the first layer, or \"output_mean\" and \"output_stddev\", y * stddev + mean after the last";
  }
  if (has({"min", "max", "low", "high"})) {
    return "the range of the training data is two tensors [input] called \"input_min\" and \"input_max\"";
  }
  return std::string(kNaming) +
         "; a scaling \"input_mean\", \"input_stddev\", \"output_mean\", \"output_stddev\"; leave out any other";
}

struct LayerTensors {
  std::string stem;  // "model.net.2"
  const Tensor* weight = nullptr;
  const Tensor* bias = nullptr;
};

// Numbers of any length, in the order of counting.
struct ByNumber {
  static std::string_view significant(std::string_view digits) {
    return digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
  }
  bool operator()(const std::string& a, const std::string& b) const {
    const std::string_view left = significant(a), right = significant(b);
    return left.size() != right.size() ? left.size() < right.size() : left < right;
  }
};

std::vector<LayerTensors> find_layers(const Container& container, const std::string& source) {
  std::map<std::string, LayerTensors, ByNumber> layers;
  std::optional<std::string> prefix;
  for (const auto& [name, tensor] : container.tensors) {
    if (std::find(kScalingNames.begin(), kScalingNames.end(), name) != kScalingNames.end()) continue;
    const std::string field = source + ": tensor \"" + name + "\"";
    const auto parsed = parse_layer_name(name);
    // Before anything is said of names and activations, which such a layer would throw into disorder.
    if (name.ends_with(".weight") && (tensor.shape.size() != 2 || tensor.elements() == 0)) {
      refuse(field, "shape " + shape_text(tensor.shape), "[outputs, inputs], both above 0", kOnlyDense);
    }
    if (name.ends_with(".running_mean") || name.ends_with(".running_var") || name.ends_with(".num_batches_tracked")) {
      refuse(field, "the statistics of a batch normalisation", "dense layers only", kOnlyDense);
    }
    if (!parsed) refuse(field, "a name that is no layer's weight or bias", "dense layers only", naming_of(name));
    if (!prefix) prefix = parsed->prefix;
    if (*prefix != parsed->prefix) {
      refuse(field, "prefix \"" + parsed->prefix + "\"", "\"" + *prefix + "\", as the other layers have it", kNaming);
    }
    const std::string stem = parsed->prefix + parsed->digits;
    LayerTensors& layer = layers[parsed->digits];
    if (!layer.stem.empty() && layer.stem != stem)
      refuse(field, "the layer's number again", "different numbers", kNaming);
    layer.stem = stem;
    (parsed->is_weight ? layer.weight : layer.bias) = &tensor;
  }
  if (layers.empty()) refuse(source, "no layers", "tensors such as \"layers.0.weight\"", kNaming);
  std::vector<LayerTensors> result;
  for (auto& [number, layer] : layers) result.push_back(std::move(layer));
  return result;
}

std::vector<double> vector_of(const std::string& name, const Tensor& tensor, std::size_t expected,
                              const std::string& meaning, const std::string& source,
                              detail::Allowed allowed = detail::Allowed::finite) {
  if (tensor.shape != std::vector<std::uint64_t>{expected}) {
    refuse(source + ": tensor \"" + name + "\"", "shape " + shape_text(tensor.shape),
           "[" + std::to_string(expected) + "], one for each " + meaning);
  }
  return detail::numbers_of(name, tensor, source, allowed);
}

// A mean and its stddev belong together; both or neither.
std::pair<std::vector<double>, std::vector<double>> mean_and_stddev(const Container& container, const std::string& port,
                                                                    std::size_t width, const std::string& source) {
  const auto mean = container.tensors.find(port + "_mean"), stddev = container.tensors.find(port + "_stddev");
  const auto end = container.tensors.end();
  if (mean == end && stddev == end) return {};
  if (mean == end || stddev == end) {
    refuse(source,
           port + (mean == end ? "_stddev without " : "_mean without ") + port + (mean == end ? "_mean" : "_stddev"),
           "both or neither");
  }
  std::vector<double> means = vector_of(mean->first, mean->second, width, port, source);
  std::vector<double> stddevs = vector_of(stddev->first, stddev->second, width, port, source);
  for (std::size_t i = 0; i < width; ++i) {
    if (!(stddevs[i] > 0)) {
      refuse(source + ": tensor \"" + stddev->first + "\" element [" + std::to_string(i) + "]", number_text(stddevs[i]),
             "a number above 0", "drop the feature, or give a constant one the standard deviation 1");
    }
  }
  return {std::move(means), std::move(stddevs)};
}

Mlp read_stack(const Container& container, const std::vector<LayerTensors>& layers,
               const std::vector<Activation>& activations, const std::string& source) {
  Mlp mlp;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string weight_name = layers[i].stem + ".weight", bias_name = layers[i].stem + ".bias";
    if (layers[i].weight == nullptr)
      refuse(source + ": layer \"" + layers[i].stem + "\"", "a bias without a weight", "both");
    const Tensor& weight = *layers[i].weight;
    const std::string field = source + ": tensor \"" + weight_name + "\"";
    if (i > 0 && weight.shape[1] != mlp.layers.back().outputs) {
      refuse(field, std::to_string(weight.shape[1]) + " inputs (shape " + shape_text(weight.shape) + ")",
             std::to_string(mlp.layers.back().outputs) + ", the outputs of layer \"" + layers[i - 1].stem + "\"",
             weight.shape[0] == mlp.layers.back().outputs ? "transpose it: weights are stored [outputs, inputs]"
                                                          : "check the order of the layers");
    }
    if (i == 0 && layers[i].bias != nullptr && weight.shape[0] != weight.shape[1] &&
        layers[i].bias->shape == std::vector<std::uint64_t>{weight.shape[1]}) {
      refuse(field, "shape " + shape_text(weight.shape) + " beside a bias of " + std::to_string(weight.shape[1]),
             "[" + std::to_string(weight.shape[1]) + ", " + std::to_string(weight.shape[0]) + "]",
             "transpose it: weights are stored [outputs, inputs]");
    }
    DenseLayer layer{weight.shape[1], weight.shape[0],          detail::numbers_of(weight_name, weight, source), {},
                     activations[i],  layers[i].bias != nullptr};
    layer.bias = layers[i].bias == nullptr ? std::vector<double>(layer.outputs)
                                           : vector_of(bias_name, *layers[i].bias, layer.outputs, "output", source);
    mlp.layers.push_back(std::move(layer));
  }
  auto [input_mean, input_stddev] = mean_and_stddev(container, "input", mlp.inputs(), source);
  auto [output_mean, output_stddev] = mean_and_stddev(container, "output", mlp.outputs(), source);
  mlp.input_scaling = {std::move(input_mean), std::move(input_stddev)};
  mlp.output_scaling = {std::move(output_stddev), std::move(output_mean)};
  return mlp;
}

WeightType type_of(const std::vector<LayerTensors>& layers) {
  WeightType widest = WeightType::f16;
  const auto consider = [&](const Tensor* tensor) {
    if (tensor == nullptr) return;
    const WeightType type = tensor->dtype == "F64"    ? WeightType::f64
                            : tensor->dtype == "F32"  ? WeightType::f32
                            : tensor->dtype == "BF16" ? WeightType::bf16
                                                      : WeightType::f16;
    widest = std::max(widest, type);
  };
  for (const LayerTensors& layer : layers) consider(layer.weight), consider(layer.bias);
  return widest;
}

// Metadata entries that have a place of their own in the model are taken out of it.
std::string take(std::map<std::string, std::string>& metadata, const std::string& key) {
  const auto entry = metadata.find(key);
  if (entry == metadata.end()) return {};
  std::string value = std::move(entry->second);
  metadata.erase(entry);
  return value;
}

void name_features(std::vector<Feature>& features, std::map<std::string, std::string>& metadata, const std::string& key,
                   std::string Feature::*member, const std::string& source) {
  const std::vector<std::string> names = detail::split_list(take(metadata, key));
  if (names.empty()) return;
  if (names.size() != features.size()) {
    refuse(source + ": metadata \"" + key + "\"", std::to_string(names.size()) + " entries",
           std::to_string(features.size()) + ", one for each feature");
  }
  for (std::size_t i = 0; i < names.size(); ++i) features[i].*member = names[i];
}

void read_range(std::vector<Feature>& features, const Container& container, const std::string& name,
                double Feature::*member, const std::string& source) {
  const auto tensor = container.tensors.find(name);
  if (tensor == container.tensors.end()) return;
  const std::vector<double> values =
      vector_of(name, tensor->second, features.size(), "input", source, detail::Allowed::finite_and_infinite);
  for (std::size_t i = 0; i < values.size(); ++i) features[i].*member = values[i];
}

}  // namespace

Model read_safetensors(std::span<const std::byte> bytes, const std::string& source, const ReadOptions& options) {
  const StandardReading arithmetic;
  Container container = detail::parse_container(bytes, source);
  std::map<std::string, std::string>& metadata = container.metadata;
  const std::vector<LayerTensors> layers = find_layers(container, source);
  const std::vector<Activation> activations =
      detail::choose_activations(layers.size(), take(metadata, "activations"), options, source);

  std::vector<std::string> names;
  for (const LayerTensors& layer : layers) names.push_back(layer.stem);
  Model model = Model::from_mlp(read_stack(container, layers, activations, source), names);
  detail::name_ports(model, take(metadata, "input_port"), take(metadata, "output_port"));
  model.weight_type = type_of(layers);
  name_features(model.inputs[0].features, metadata, "inputs", &Feature::name, source);
  name_features(model.inputs[0].features, metadata, "input_units", &Feature::unit, source);
  name_features(model.outputs[0].features, metadata, "outputs", &Feature::name, source);
  name_features(model.outputs[0].features, metadata, "output_units", &Feature::unit, source);
  read_range(model.inputs[0].features, container, "input_min", &Feature::minimum, source);
  read_range(model.inputs[0].features, container, "input_max", &Feature::maximum, source);
  model.name = take(metadata, "name");
  model.provenance = {.source = source,
                      .format = "safetensors",
                      .digest = content_digest(bytes),
                      .producer = take(metadata, "producer"),
                      .licence = take(metadata, "licence"),
                      .attribution = take(metadata, "attribution")};
  model.metadata = std::move(metadata);
  try {
    model.validate();
  } catch (const Error& error) {
    refuse(source + ": " + error.field(), error.found(), error.expected(), error.remedy());
  }
  return model;
}

Model read_safetensors(const std::filesystem::path& path, const ReadOptions& options) {
  Model model = read_safetensors(detail::read_bytes(path), path.string(), options);
  if (model.name.empty()) model.name = path.stem().string();
  return model;
}

}  // namespace lockstep::nn

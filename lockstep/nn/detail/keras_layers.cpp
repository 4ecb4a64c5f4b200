#include "lockstep/nn/detail/keras_layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/nn/detail/keras_activation.h"
#include "lockstep/nn/detail/keras_compositions.h"
#include "lockstep/nn/detail/keras_graph.h"
#include "lockstep/nn/detail/keras_normalisation.h"
#include "lockstep/nn/detail/keras_operations.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

// What does nothing once training is over.
constexpr std::array<std::string_view, 7> kIdle = {"Dropout",      "GaussianDropout",  "GaussianNoise",
                                                   "AlphaDropout", "SpatialDropout1D", "ActivityRegularization",
                                                   "Identity"};

constexpr std::array<std::pair<std::string_view, BinaryKind>, 6> kMerging = {{{"Add", BinaryKind::add},
                                                                              {"Average", BinaryKind::add},
                                                                              {"Subtract", BinaryKind::subtract},
                                                                              {"Multiply", BinaryKind::multiply},
                                                                              {"Maximum", BinaryKind::maximum},
                                                                              {"Minimum", BinaryKind::minimum}}};

using Values = KerasValues;

class LayerBuilder {
 public:
  LayerBuilder(int keras_major, const std::string& where) : major_(keras_major), where_(where), graph_(where) {}

  Model build(const KerasModel& keras, const KerasWeights& weights) {
    Values inputs;
    for (const KerasTensor& tensor : keras.inputs) {
      if (std::ranges::find(inputs, tensor.layer) != inputs.end()) refuse(where_, "an input layer twice", "once");
      inputs.push_back(graph_.new_name(tensor.layer));
      graph_.model.inputs.push_back({.name = inputs.back(), .value = "", .features = {}});
    }
    const Values outputs = run(keras, weights, inputs, "");
    for (std::size_t i = 0; i < graph_.model.inputs.size(); ++i) {
      const std::size_t width = graph_.known_width(inputs[i]);
      if (width == 0) refuse(where_ + ": " + inputs[i], "inputs of unknown width", "a model that was built");
      graph_.model.inputs[i].features.resize(width);
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      std::string name = keras.outputs[i].layer;
      while (!names.insert(name).second) name += "_again";
      graph_.model.outputs.push_back({.name = name, .value = outputs[i], .features = {}});
      graph_.model.outputs.back().features.resize(graph_.known_width(outputs[i]));
    }
    return std::move(graph_.model);
  }

 private:
  // The values that a model's outputs show, made from those of its inputs.
  Values run(const KerasModel& keras, const KerasWeights& weights, const Values& inputs, const std::string& prefix) {
    if (inputs.size() != keras.inputs.size()) {
      refuse(where_ + ": " + keras.name, std::to_string(inputs.size()) + " inputs",
             std::to_string(keras.inputs.size()) + ", as the model has");
    }
    std::map<std::pair<std::string, std::size_t>, Values> made;  // by layer and call
    std::map<std::string, std::string> slots;
    std::map<std::string, int> of_class;
    for (const KerasLayer& layer : keras.layers) {
      if (is_keras_operation(layer)) continue;
      const std::string slot = snake_case(layer.class_name);
      const int before = of_class[slot]++;
      slots[layer.name] = before == 0 ? slot : slot + "_" + std::to_string(before);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) made[{keras.inputs[i].layer, 0}] = {inputs[i]};
    // Layers stand in the order of computing, but for those called more than once.
    for (bool progress = true; progress;) {
      progress = false;
      for (const KerasLayer& layer : keras.layers) {
        if (layer.class_name == "InputLayer") learn_width(layer, made);
        for (std::size_t call = 0; call < layer.calls.size(); ++call) {
          if (made.contains({layer.name, call})) continue;
          const std::optional<Values> reads = values_of(layer.calls[call], made);
          if (!reads) continue;
          made[{layer.name, call}] = apply(layer, layer.calls[call], *reads,
                                           weights.layer(layer.name, slots[layer.name]), prefix + layer.name);
          progress = true;
        }
      }
    }
    Values outputs;
    for (const KerasTensor& tensor : keras.outputs) {
      const auto found = made.find({tensor.layer, tensor.call});
      if (found == made.end() || tensor.tensor >= found->second.size()) {
        refuse(where_ + ": output of " + tensor.layer, "no such value", "one that its layers make",
               "save the model again");
      }
      outputs.push_back(found->second[tensor.tensor]);
    }
    return outputs;
  }

  void learn_width(const KerasLayer& layer, const std::map<std::pair<std::string, std::size_t>, Values>& made) {
    const auto input = made.find({layer.name, 0});
    if (input == made.end()) return;
    const std::size_t width = features_of_shape(layer.config, graph_.where(layer));
    if (width != 0) graph_.width_of(input->second.front(), width, layer);
  }

  static std::optional<Values> values_of(const KerasCall& call,
                                         const std::map<std::pair<std::string, std::size_t>, Values>& made) {
    Values result;
    for (const KerasTensor& tensor : call.reads) {
      const auto found = made.find({tensor.layer, tensor.call});
      if (found == made.end() || tensor.tensor >= found->second.size()) return {};
      result.push_back(found->second[tensor.tensor]);
    }
    return result;
  }

  Values apply(const KerasLayer& layer, const KerasCall& call, const Values& reads, const KerasWeights& weights,
               const std::string& name) {
    if (graph_.model.nodes.size() > 4096)
      graph_.cannot(layer, "more than 4096 layers, counting repeated ones", "fewer");
    if (!layer.module.empty() && layer.module.rfind("keras", 0) != 0 && layer.module.rfind("tf_keras", 0) != 0 &&
        layer.module.rfind("tensorflow", 0) != 0) {
      graph_.cannot(layer, "a class of the module " + layer.module, "layers of Keras", "its code is not in the file");
    }
    if (layer.model) return run(*layer.model, weights, reads, name + "/");
    if (reads.empty()) graph_.cannot(layer, "a call that reads nothing", "at least one value");
    check_policy(layer);
    if (is_keras_operation(layer)) return keras_operation(graph_, layer, call, reads, name);
    const std::string& kind = layer.class_name;
    require_features(layer, call);
    if (call.constants) graph_.cannot(layer, "constants among what it reads", "values of other layers");
    const auto merging = std::ranges::find(kMerging, kind, &std::pair<std::string_view, BinaryKind>::first);
    if (merging != kMerging.end()) return {merge(layer, merging->second, reads, name)};
    if (kind == "Concatenate") return {concatenate(layer, reads, name)};
    if (kind == "Dot") return {dot(layer, reads, name)};
    if (reads.size() > 1) graph_.cannot(layer, "class " + kind + " reading several values", "one value");
    const std::string& x = reads.front();
    if (std::ranges::find(kIdle, kind) != kIdle.end()) return {x};
    if (kind == "Dense" || kind == "EinsumDense") return {dense(layer, x, weights, name)};
    if (kind == "PReLU") return {prelu(layer, x, weights, name)};
    if (kind == "Flatten" || kind == "Reshape") return {reshape(layer, x)};
    if (kind == "Activation") return {activate(layer, x, name)};
    if (auto value = keras_normalisation(graph_, layer, x, weights, name)) return {std::move(*value)};
    if (const auto activation = keras_activation_layer(kind, layer.config)) {
      return {graph_.activate(layer, x, *activation, name)};
    }
    if (kind == "ReLU")
      graph_.cannot(layer, "a threshold below 0, or beside a slope", "a threshold above 0, or a slope");
    if (kind == "Softmax") graph_.check_axis(layer, false);
    graph_.cannot(
        layer, "class " + kind,
        "Dense, Activation, LeakyReLU, ELU, ReLU, PReLU, Softmax, Normalization, BatchNormalization, "
        "LayerNormalization, RMSNormalization, GroupNormalization, UnitNormalization, EinsumDense, Rescaling, "
        "Dropout, Concatenate, Dot, Add, Multiply and the like",
        kind == "Lambda" ? "its function is Python code: write it as layers" : "");
  }

  // [batch], which x[:, 2] makes, would be joined, normalised or broadcast along the batch.
  void require_features(const KerasLayer& layer, const KerasCall& call) const {
    const std::string& kind = layer.class_name;
    const bool each_number = std::ranges::find(kIdle, kind) != kIdle.end() || kind == "Flatten" || kind == "Reshape";
    const auto lacks = [](const KerasTensor& tensor) { return tensor.rank == 1; };
    if (each_number || std::ranges::none_of(call.reads, lacks)) return;
    graph_.cannot(layer, "a value [batch]", "[batch, features]",
                  "keep the features' axis: x[:, 2:3] instead of x[:, 2], keepdims=True in sums");
  }

  // "float32", {"class_name": "DTypePolicy", "config": {"name": "float32"}}
  void check_policy(const KerasLayer& layer) {
    const auto found = layer.config.find("dtype");
    if (found == layer.config.end()) return;
    std::string policy;
    if (found->is_string()) {
      policy = found->get<std::string>();
    } else if (found->is_object() && found->contains("config") && (*found)["config"].is_object() &&
               (*found)["config"].contains("name") && (*found)["config"]["name"].is_string()) {
      policy = (*found)["config"]["name"].get<std::string>();
    }
    if (policy.rfind("int8", 0) == 0 || policy.rfind("int4", 0) == 0 || policy.rfind("float8", 0) == 0 ||
        policy.rfind("gptq", 0) == 0) {
      graph_.cannot(layer, "the quantised type \"" + policy + '"', "float32 or float64",
                    "save the model it was made from");
    }
    if (policy == "mixed_float16" || policy == "mixed_bfloat16" || policy == "float16" || policy == "bfloat16") {
      const std::string note = "Keras computes in " + policy + ", Lockstep in the precision asked for";
      if (std::ranges::find(graph_.model.provenance.notes, note) == graph_.model.provenance.notes.end()) {
        graph_.model.provenance.notes.push_back(note);
      }
    }
  }

  std::string activate(const KerasLayer& layer, const std::string& x, const std::string& name) {
    const auto found = layer.config.find("activation");
    const Json activation = found == layer.config.end() ? Json() : *found;
    if (activation.is_string()) {
      graph_.width_of(x, 0, layer);
      if (auto steps = composed_activation(activation.get<std::string>()))
        return graph_.compose(std::move(*steps), {x}, name);
    }
    return graph_.activate(layer, x, keras_activation(activation, major_, graph_.where(layer)), name);
  }

  // The inner product of two values.
  std::string dot(const KerasLayer& layer, const Values& reads, const std::string& name) {
    const auto axes = layer.config.find("axes");
    const auto features = [](const Json& axis) { return axis == 1 || axis == -1; };
    const bool plain =
        axes != layer.config.end() &&
        (features(*axes) || (axes->is_array() && axes->size() == 2 && features((*axes)[0]) && features((*axes)[1])));
    if (reads.size() != 2 || !plain)
      graph_.cannot(layer, "a product along other axes", "two values, along their features");
    if (config_flag(layer.config, "normalize", false)) graph_.cannot(layer, "normalize", "a plain inner product");
    const std::size_t width = graph_.width_of(reads[0], 0, layer);
    if (graph_.width_of(reads[1], 0, layer) != width) refuse(graph_.where(layer), "two widths", "one");
    const std::string product = graph_.append(name + "/0", Binary{BinaryKind::multiply}, reads, width);
    return graph_.append(name, Reduce{ReduceKind::sum}, {product}, 1);
  }

  // Layers that read several values of one width, or of width 1.
  std::string merge(const KerasLayer& layer, BinaryKind kind, const Values& reads, const std::string& name) {
    const bool average = layer.class_name == "Average";
    std::string value = reads.front();
    std::size_t width = graph_.width_of(value, 0, layer);
    for (std::size_t i = 1; i < reads.size(); ++i) {
      const std::size_t other = graph_.width_of(reads[i], 0, layer);
      if (other != width && other != 1 && width != 1) {
        refuse(graph_.where(layer), std::to_string(other) + " features beside " + std::to_string(width),
               "values of one width");
      }
      width = std::max(width, other);
      const bool last = i + 1 == reads.size() && !average;
      value = graph_.append(last ? name : name + "/" + std::to_string(i), Binary{kind}, {value, reads[i]}, width);
    }
    if (!average) return value;
    const double share = 1 / static_cast<double>(reads.size());
    return graph_.append(name, Rescale{std::vector<double>(width, share), std::vector<double>(width, 0.0)}, {value},
                         width);
  }

  std::string concatenate(const KerasLayer& layer, const Values& reads, const std::string& name) {
    graph_.check_axis(layer, false);
    std::size_t width = 0;
    for (const std::string& value : reads) width += graph_.width_of(value, 0, layer);
    return graph_.append(name, Concatenate{}, reads, width);
  }

  std::string dense(const KerasLayer& layer, const std::string& x, const KerasWeights& weights,
                    const std::string& name) {
    const auto config_has = [&](const char* key) {
      const auto found = layer.config.find(key);
      return found != layer.config.end() && !found->is_null();
    };
    if (config_has("lora_rank") || config_has("quantization_config")) {
      graph_.cannot(layer, config_has("lora_rank") ? "a LoRA adapter" : "quantised weights", "plain weights",
                    "merge it into the weights or save the model it was made from");
    }
    const KerasArray kernel = weights.read("kernel", 0);
    if (kernel.shape.size() != 2 || kernel.shape[0] == 0 || kernel.shape[1] == 0) {
      refuse(weights.where() + ": kernel", "shape " + shape_text(kernel.shape), "[inputs, outputs], both above 0");
    }
    Dense dense{kernel.shape[0], kernel.shape[1], std::vector<double>(kernel.values.size()), {}};
    const bool einsum = layer.class_name == "EinsumDense";
    if (einsum) check_equation(layer);
    const double units = config_number(layer.config, "units", 0, graph_.where(layer));
    if (!einsum && units != static_cast<double>(dense.outputs)) {
      refuse(weights.where() + ": kernel", "shape " + shape_text(kernel.shape),
             "as many columns as the layer has units");
    }
    graph_.width_of(x, dense.inputs, layer);
    for (std::size_t k = 0; k < dense.inputs; ++k) {
      for (std::size_t j = 0; j < dense.outputs; ++j) {
        dense.weights[j * dense.inputs + k] = kernel.values[k * dense.outputs + j];
      }
    }
    const bool biased = einsum ? config_has("bias_axes") : config_flag(layer.config, "use_bias", true);
    dense.has_bias = biased;
    dense.bias = biased ? variable_of(weights, "bias", 1, dense.outputs) : std::vector<double>(dense.outputs, 0.0);
    const std::size_t outputs = dense.outputs;
    const std::string value = graph_.append(name, std::move(dense), {x}, outputs);
    return activate(layer, value, name + ".activation");
  }

  // "ab,bc->ac" and the same in other letters: a plain product with the kernel.
  void check_equation(const KerasLayer& layer) const {
    const auto found = layer.config.find("equation");
    std::string text = found != layer.config.end() && found->is_string() ? found->get<std::string>() : "";
    std::erase(text, ' ');
    const std::string batch = text.rfind("...", 0) == 0 ? "..." : text.substr(0, 1);
    const std::size_t at = batch.size();
    const bool plain = text.size() == 2 * at + 7 && text.compare(at + 1, 1, ",") == 0 && text[at] == text[at + 2] &&
                       text.compare(at + 4, 2, "->") == 0 && text.compare(at + 6, at, batch) == 0 &&
                       text[at + 3] == text[2 * at + 6] && text[at] != text[at + 3];
    if (!plain) graph_.cannot(layer, "the equation \"" + text.substr(0, 40) + '"', "a product of features, ab,bc->ac");
  }

  std::string prelu(const KerasLayer& layer, const std::string& x, const KerasWeights& weights,
                    const std::string& name) {
    const std::vector<double> slopes = weights.read("alpha", 0).values;
    if (slopes.empty()) refuse(weights.where() + ": alpha", "no slope", "one, or one for each feature");
    const std::size_t width = graph_.width_of(x, slopes.size() == 1 ? 0 : slopes.size(), layer);
    if (std::ranges::count(slopes, slopes.front()) == static_cast<std::ptrdiff_t>(slopes.size())) {
      return graph_.append(name, Activate{{ActivationKind::leaky_relu, slopes.front()}}, {x}, width);
    }
    // max(x, 0) + slope min(x, 0)
    const std::string above = graph_.append(name + "/above", Clip{.minimum = 0}, {x}, width);
    const std::string below = graph_.append(name + "/below", Clip{.maximum = 0}, {x}, width);
    const std::string scaled =
        graph_.append(name + "/slope", Rescale{slopes, std::vector<double>(width, 0.0)}, {below}, width);
    return graph_.append(name, Binary{BinaryKind::add}, {above, scaled}, width);
  }

  // Only what leaves [batch, features] as it is.
  std::string reshape(const KerasLayer& layer, const std::string& x) {
    if (layer.class_name == "Flatten") return x;
    const auto shape = layer.config.find("target_shape");
    const bool kept = shape != layer.config.end() && shape->is_array() && shape->size() == 1 &&
                      ((*shape)[0] == -1 || (*shape)[0] == graph_.width_of(x, 0, layer));
    if (!kept) graph_.cannot(layer, "a reshaping", "one that keeps [batch, features]");
    return x;
  }

  int major_;
  const std::string& where_;
  KerasGraph graph_;
};

}  // namespace

Model build_keras_model(const KerasModel& keras, const KerasWeights& weights, int keras_major,
                        const std::string& where) {
  return LayerBuilder(keras_major, where).build(keras, weights);
}

}  // namespace lockstep::nn::detail

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

using Values = std::vector<std::string>;

double number_of(const Json& config, const char* key, double otherwise, const std::string& where) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return otherwise;
  if (!found->is_number()) refuse(where, std::string("a \"") + key + "\" that is no number", "a number");
  return found->get<double>();
}

bool flag_of(const Json& config, const char* key, bool otherwise) {
  const auto found = config.find(key);
  return found != config.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

class Builder {
 public:
  Builder(int keras_major, const std::string& where) : major_(keras_major), where_(where) {}

  Model build(const KerasModel& keras, const KerasWeights& weights) {
    Values inputs;
    for (const KerasTensor& tensor : keras.inputs) {
      if (std::ranges::find(inputs, tensor.layer) != inputs.end()) refuse(where_, "an input layer twice", "once");
      inputs.push_back(new_name(tensor.layer));
      model_.inputs.push_back({.name = inputs.back(), .value = "", .features = {}});
    }
    const Values outputs = run(keras, weights, inputs, "");
    for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
      const std::size_t width = widths_[inputs[i]];
      if (width == 0) refuse(where_ + ": " + inputs[i], "inputs of unknown width", "a model that was built");
      model_.inputs[i].features.resize(width);
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      std::string name = keras.outputs[i].layer;
      while (!names.insert(name).second) name += "_again";
      model_.outputs.push_back({.name = name, .value = outputs[i], .features = {}});
      model_.outputs.back().features.resize(widths_[outputs[i]]);
    }
    return std::move(model_);
  }

 private:
  [[noreturn]] void cannot(const KerasLayer& layer, const std::string& found, const std::string& expected,
                           const std::string& remedy = "") const {
    throw Error(ErrorKind::unsupported, {where_ + ": layer " + layer.name, found, expected, remedy});
  }

  std::string new_name(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 1; !names_.insert(name).second; ++i) name = wanted + "." + std::to_string(i);
    return name;
  }
  std::string append(const std::string& wanted, Operation operation, const Values& reads, std::size_t width) {
    std::string name = new_name(wanted);
    model_.nodes.push_back({name, std::move(operation), reads});
    widths_[name] = width;
    return name;
  }
  // The width of a value is learnt from what reads it where the file did not say.
  std::size_t width_of(const std::string& value, std::size_t wanted, const KerasLayer& layer) {
    std::size_t& width = widths_[value];
    if (width == 0) width = wanted;
    if (width == 0) cannot(layer, "inputs of unknown width", "a model that was built, with an InputLayer");
    if (wanted != 0 && wanted != width) {
      refuse(where_ + ": layer " + layer.name, "weights for " + std::to_string(wanted) + " inputs",
             std::to_string(width) + ", the width of what it reads");
    }
    return width;
  }

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
    const std::size_t width = features_of_shape(layer.config, where_ + ": layer " + layer.name);
    if (width != 0) width_of(input->second.front(), width, layer);
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
    if (model_.nodes.size() > 4096) cannot(layer, "more than 4096 layers, counting repeated ones", "fewer");
    if (!layer.module.empty() && layer.module.rfind("keras", 0) != 0 && layer.module.rfind("tf_keras", 0) != 0 &&
        layer.module.rfind("tensorflow", 0) != 0) {
      cannot(layer, "a class of the module " + layer.module, "layers of Keras", "its code is not in the file");
    }
    if (layer.model) return run(*layer.model, weights, reads, name + "/");
    if (reads.empty()) cannot(layer, "a call that reads nothing", "at least one value");
    check_policy(layer);
    const std::string& kind = layer.class_name;
    if (call.constants) cannot(layer, "constants among what it reads", "values of other layers");
    const auto merging = std::ranges::find(kMerging, kind, &std::pair<std::string_view, BinaryKind>::first);
    if (merging != kMerging.end()) return {merge(layer, merging->second, reads, name)};
    if (kind == "Concatenate") return {concatenate(layer, reads, name)};
    if (kind == "Dot") return {dot(layer, reads, name)};
    if (reads.size() > 1) cannot(layer, "class " + kind + " reading several values", "one value");
    const std::string& x = reads.front();
    if (std::ranges::find(kIdle, kind) != kIdle.end()) return {x};
    if (kind == "Dense" || kind == "EinsumDense") return {dense(layer, x, weights, name)};
    if (kind == "BatchNormalization") return {batch_normalisation(layer, x, weights, name)};
    if (kind == "Normalization") return {normalisation(layer, x, weights, name)};
    if (kind == "Rescaling") return {rescaling(layer, x, name)};
    if (kind == "PReLU") return {prelu(layer, x, weights, name)};
    if (kind == "Flatten" || kind == "Reshape") return {reshape(layer, x)};
    if (kind == "LayerNormalization") return {layer_normalisation(layer, x, weights, name)};
    if (kind == "Activation") return {activate(layer, x, name)};
    if (kind == "RMSNormalization") {
      check_axis(layer, false);
      const double epsilon = number_of(layer.config, "epsilon", 1e-6, where_ + ": layer " + layer.name);
      return {compose(rms_normalisation(vector(weights, "scale", 0, width_of(x, 0, layer)), epsilon), x, name)};
    }
    if (kind == "UnitNormalization") {
      check_axis(layer, false);
      width_of(x, 0, layer);
      return {compose(unit_normalisation(), x, name)};
    }
    if (kind == "GroupNormalization") return {group_normalisation(layer, x, weights, name)};
    if (const auto activation = keras_activation_layer(kind, layer.config)) {
      return {activate(layer, x, *activation, name)};
    }
    if (kind == "ReLU") cannot(layer, "a threshold below 0, or beside a slope", "a threshold above 0, or a slope");
    if (kind == "Softmax") check_axis(layer, false);
    cannot(layer, "class " + kind,
           "Dense, Activation, LeakyReLU, ELU, ReLU, PReLU, Softmax, Normalization, BatchNormalization, "
           "LayerNormalization, RMSNormalization, GroupNormalization, UnitNormalization, EinsumDense, Rescaling, "
           "Dropout, Concatenate, Dot, Add, Multiply and the like",
           kind == "Lambda" ? "its function is Python code: write it as layers" : "");
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
      cannot(layer, "the quantised type \"" + policy + '"', "float32 or float64", "save the model it was made from");
    }
    if (policy == "mixed_float16" || policy == "mixed_bfloat16" || policy == "float16" || policy == "bfloat16") {
      const std::string note = "Keras computes in " + policy + ", Lockstep in the precision asked for";
      if (std::ranges::find(model_.provenance.notes, note) == model_.provenance.notes.end()) {
        model_.provenance.notes.push_back(note);
      }
    }
  }

  // The last of several operations gets the name, those before it a number.
  std::string activate(const KerasLayer& layer, const std::string& x, KerasActivation steps, const std::string& name) {
    std::string value = x;
    const std::size_t width = width_of(x, 0, layer);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (auto* rescale = std::get_if<Rescale>(&steps[i])) {
        rescale->scale.assign(width, rescale->scale.front());
        rescale->shift.assign(width, rescale->shift.front());
      }
      const std::string here = i + 1 == steps.size() ? name : name + "/" + std::to_string(i);
      value = append(here, std::move(steps[i]), {value}, width);
    }
    return value;
  }
  std::string activate(const KerasLayer& layer, const std::string& x, const std::string& name) {
    const auto found = layer.config.find("activation");
    const Json activation = found == layer.config.end() ? Json() : *found;
    if (activation.is_string()) {
      width_of(x, 0, layer);
      if (auto steps = composed_activation(activation.get<std::string>())) return compose(std::move(*steps), x, name);
    }
    return activate(layer, x, keras_activation(activation, major_, where_ + ": layer " + layer.name), name);
  }

  // Several operations for one; the last gets the name, those before it a number.
  std::string compose(KerasSteps steps, const std::string& x, const std::string& name) {
    Values made;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::string here = i + 1 == steps.size() ? name : name + "/" + std::to_string(i);
      Values reads;
      std::vector<std::size_t> widths;
      for (const std::size_t read : steps[i].reads) {
        reads.push_back(read == kKerasInput ? x : made[read]);
        widths.push_back(widths_[reads.back()]);
      }
      const std::size_t width = graph::output_width(steps[i].operation, widths, here);
      made.push_back(append(here, std::move(steps[i].operation), reads, width));
    }
    return made.back();
  }

  std::string group_normalisation(const KerasLayer& layer, const std::string& x, const KerasWeights& weights,
                                  const std::string& name) {
    check_axis(layer, false);
    const std::string here = where_ + ": layer " + layer.name;
    const std::size_t width = width_of(x, 0, layer);
    const double given = number_of(layer.config, "groups", 32, here);
    const std::size_t groups = given == -1 ? width : given >= 1 && given <= 1e6 ? static_cast<std::size_t>(given) : 0;
    if (groups == 0 || width % groups != 0) refuse(here, "groups that do not divide its width", "some that do");
    std::size_t position = 0;
    std::vector<double> gamma(width, 1.0), beta(width, 0.0);
    if (flag_of(layer.config, "scale", true)) gamma = vector(weights, "gamma", position++, width);
    if (flag_of(layer.config, "center", true)) beta = vector(weights, "beta", position, width);
    const double epsilon = number_of(layer.config, "epsilon", 1e-3, here);
    return compose(detail::group_normalisation(gamma, beta, groups, epsilon), x, name);
  }

  // The inner product of two values.
  std::string dot(const KerasLayer& layer, const Values& reads, const std::string& name) {
    const auto axes = layer.config.find("axes");
    const auto features = [](const Json& axis) { return axis == 1 || axis == -1; };
    const bool plain =
        axes != layer.config.end() &&
        (features(*axes) || (axes->is_array() && axes->size() == 2 && features((*axes)[0]) && features((*axes)[1])));
    if (reads.size() != 2 || !plain) cannot(layer, "a product along other axes", "two values, along their features");
    if (flag_of(layer.config, "normalize", false)) cannot(layer, "normalize", "a plain inner product");
    const std::size_t width = width_of(reads[0], 0, layer);
    if (width_of(reads[1], 0, layer) != width) refuse(where_ + ": layer " + layer.name, "two widths", "one");
    const std::string product = append(name + "/0", Binary{BinaryKind::multiply}, reads, width);
    return append(name, Reduce{ReduceKind::sum}, {product}, 1);
  }

  // Layers that read several values of one width, or of width 1.
  std::string merge(const KerasLayer& layer, BinaryKind kind, const Values& reads, const std::string& name) {
    const bool average = layer.class_name == "Average";
    std::string value = reads.front();
    std::size_t width = width_of(value, 0, layer);
    for (std::size_t i = 1; i < reads.size(); ++i) {
      const std::size_t other = width_of(reads[i], 0, layer);
      if (other != width && other != 1 && width != 1) {
        refuse(where_ + ": layer " + layer.name, std::to_string(other) + " features beside " + std::to_string(width),
               "values of one width");
      }
      width = std::max(width, other);
      const bool last = i + 1 == reads.size() && !average;
      value = append(last ? name : name + "/" + std::to_string(i), Binary{kind}, {value, reads[i]}, width);
    }
    if (!average) return value;
    const double share = 1 / static_cast<double>(reads.size());
    return append(name, Rescale{std::vector<double>(width, share), std::vector<double>(width, 0.0)}, {value}, width);
  }

  std::string concatenate(const KerasLayer& layer, const Values& reads, const std::string& name) {
    check_axis(layer, false);
    std::size_t width = 0;
    for (const std::string& value : reads) width += width_of(value, 0, layer);
    return append(name, Concatenate{}, reads, width);
  }

  std::string layer_normalisation(const KerasLayer& layer, const std::string& x, const KerasWeights& weights,
                                  const std::string& name) {
    check_axis(layer, false);
    if (flag_of(layer.config, "rms_scaling", false)) cannot(layer, "rms_scaling", "plain layer normalisation");
    const std::size_t width = width_of(x, 0, layer);
    LayerNormalise normalise{std::vector<double>(width, 1.0), std::vector<double>(width, 0.0),
                             number_of(layer.config, "epsilon", 1e-3, where_ + ": layer " + layer.name)};
    std::size_t position = 0;
    if (flag_of(layer.config, "scale", true)) normalise.scale = vector(weights, "gamma", position++, width);
    if (flag_of(layer.config, "center", true)) normalise.shift = vector(weights, "beta", position, width);
    return append(name, std::move(normalise), {x}, width);
  }

  std::string dense(const KerasLayer& layer, const std::string& x, const KerasWeights& weights,
                    const std::string& name) {
    const auto config_has = [&](const char* key) {
      const auto found = layer.config.find(key);
      return found != layer.config.end() && !found->is_null();
    };
    if (config_has("lora_rank") || config_has("quantization_config")) {
      cannot(layer, config_has("lora_rank") ? "a LoRA adapter" : "quantised weights", "plain weights",
             "merge it into the weights or save the model it was made from");
    }
    const KerasArray kernel = weights.read("kernel", 0);
    if (kernel.shape.size() != 2 || kernel.shape[0] == 0 || kernel.shape[1] == 0) {
      refuse(weights.where() + ": kernel", "shape " + shape_text(kernel.shape), "[inputs, outputs], both above 0");
    }
    Dense dense{kernel.shape[0], kernel.shape[1], std::vector<double>(kernel.values.size()), {}};
    const bool einsum = layer.class_name == "EinsumDense";
    if (einsum) check_equation(layer);
    const double units = number_of(layer.config, "units", 0, where_ + ": layer " + layer.name);
    if (!einsum && units != static_cast<double>(dense.outputs)) {
      refuse(weights.where() + ": kernel", "shape " + shape_text(kernel.shape),
             "as many columns as the layer has units");
    }
    width_of(x, dense.inputs, layer);
    for (std::size_t k = 0; k < dense.inputs; ++k) {
      for (std::size_t j = 0; j < dense.outputs; ++j) {
        dense.weights[j * dense.inputs + k] = kernel.values[k * dense.outputs + j];
      }
    }
    const bool biased = einsum ? config_has("bias_axes") : flag_of(layer.config, "use_bias", true);
    dense.bias = biased ? vector(weights, "bias", 1, dense.outputs) : std::vector<double>(dense.outputs, 0.0);
    const std::size_t outputs = dense.outputs;
    const std::string value = append(name, std::move(dense), {x}, outputs);
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
    if (!plain) cannot(layer, "the equation \"" + text.substr(0, 40) + '"', "a product of features, ab,bc->ac");
  }

  static std::vector<double> vector(const KerasWeights& weights, const std::string& variable, std::size_t position,
                                    std::size_t width) {
    KerasArray array = weights.read(variable, position);
    if (array.values.size() != width) {
      refuse(weights.where() + ": " + variable, std::to_string(array.values.size()) + " numbers",
             std::to_string(width) + ", one for each feature");
    }
    return std::move(array.values);
  }

  // -1, 1, [1] or nothing: the features of [batch, features].
  void check_axis(const KerasLayer& layer, bool none_allowed) const {
    const auto found = layer.config.find("axis");
    if (found == layer.config.end()) return;
    Json axis = *found;
    if (axis.is_array() && axis.size() == 1) axis = Json(axis[0]);
    if (axis == -1 || axis == 1 || (axis.is_null() && none_allowed)) return;
    cannot(layer, "axis " + found->dump().substr(0, 40), "-1, the features");
  }

  std::string batch_normalisation(const KerasLayer& layer, const std::string& x, const KerasWeights& weights,
                                  const std::string& name) {
    check_axis(layer, false);
    std::size_t position = 0;
    const bool scaled = flag_of(layer.config, "scale", true), centred = flag_of(layer.config, "center", true);
    const KerasArray gamma = scaled ? weights.read("gamma", position++) : KerasArray{};
    const KerasArray beta = centred ? weights.read("beta", position++) : KerasArray{};
    const KerasArray mean = weights.read("moving_mean", position++);
    const std::size_t width = width_of(x, mean.values.size(), layer);
    const std::vector<double> variance = vector(weights, "moving_variance", position, width);
    if ((scaled && gamma.values.size() != width) || (centred && beta.values.size() != width)) {
      refuse(weights.where(), "gamma or beta of another length", std::to_string(width) + " numbers");
    }
    const double epsilon = number_of(layer.config, "epsilon", 1e-3, where_ + ": layer " + layer.name);
    Rescale rescale;
    for (std::size_t i = 0; i < width; ++i) {
      const double scale = (scaled ? gamma.values[i] : 1) / std::sqrt(variance[i] + epsilon);
      rescale.scale.push_back(scale);
      rescale.shift.push_back((centred ? beta.values[i] : 0) - mean.values[i] * scale);
    }
    return append(name, std::move(rescale), {x}, width);
  }

  // (x - mean) / max(sqrt(variance), 1e-7), or its inverse.
  std::string normalisation(const KerasLayer& layer, const std::string& x, const KerasWeights& weights,
                            const std::string& name) {
    check_axis(layer, true);
    const std::string here = where_ + ": layer " + layer.name;
    const auto given = [&](const char* key) -> std::optional<std::vector<double>> {
      const auto found = layer.config.find(key);
      if (found == layer.config.end() || found->is_null()) return {};
      std::vector<double> numbers;
      flatten(*found, here, numbers, 0);
      return numbers;
    };
    std::optional<std::vector<double>> mean = given("mean"), variance = given("variance");
    if (!mean || !variance) {
      mean = weights.read("mean", 0).values;
      variance = weights.read("variance", 1).values;
    }
    if (mean->empty() || mean->size() != variance->size()) refuse(here, "no mean and variance of one length", "them");
    const std::size_t width = width_of(x, mean->size() == 1 ? 0 : mean->size(), layer);
    Standardise standardise;
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t from = mean->size() == 1 ? 0 : i;
      standardise.shift.push_back((*mean)[from]);
      standardise.scale.push_back(std::max(std::sqrt((*variance)[from]), 1e-7));
    }
    if (!flag_of(layer.config, "invert", false)) return append(name, std::move(standardise), {x}, width);
    return append(name, Rescale{std::move(standardise.scale), std::move(standardise.shift)}, {x}, width);
  }

  static void flatten(const Json& json, const std::string& where, std::vector<double>& numbers, int depth) {
    if (json.is_number()) {
      numbers.push_back(json.get<double>());
    } else if (json.is_array() && depth < 4) {
      for (const Json& one : json) flatten(one, where, numbers, depth + 1);
    } else {
      refuse(where, "a mean or variance that is no list of numbers", "numbers");
    }
  }

  std::string rescaling(const KerasLayer& layer, const std::string& x, const std::string& name) {
    const std::string here = where_ + ": layer " + layer.name;
    const auto numbers = [&](const char* key, double otherwise) {
      std::vector<double> result;
      const auto found = layer.config.find(key);
      if (found == layer.config.end() || found->is_null()) return std::vector<double>{otherwise};
      flatten(*found, here, result, 0);
      if (result.empty()) refuse(here, std::string("an empty \"") + key + '"', "a number");
      return result;
    };
    Rescale rescale{numbers("scale", 1), numbers("offset", 0)};
    const std::size_t wanted = std::max(rescale.scale.size(), rescale.shift.size());
    const std::size_t width = width_of(x, wanted == 1 ? 0 : wanted, layer);
    for (std::vector<double>* list : {&rescale.scale, &rescale.shift}) {
      if (list->size() == 1) list->resize(width, list->front());
      if (list->size() != width) refuse(here, "scale and offset of different lengths", "one number a feature");
    }
    return append(name, std::move(rescale), {x}, width);
  }

  std::string prelu(const KerasLayer& layer, const std::string& x, const KerasWeights& weights,
                    const std::string& name) {
    const std::vector<double> slopes = weights.read("alpha", 0).values;
    if (slopes.empty()) refuse(weights.where() + ": alpha", "no slope", "one, or one for each feature");
    const std::size_t width = width_of(x, slopes.size() == 1 ? 0 : slopes.size(), layer);
    if (std::ranges::count(slopes, slopes.front()) == static_cast<std::ptrdiff_t>(slopes.size())) {
      return append(name, Activate{{ActivationKind::leaky_relu, slopes.front()}}, {x}, width);
    }
    // max(x, 0) + slope min(x, 0)
    const std::string above = append(name + "/above", Clip{.minimum = 0}, {x}, width);
    const std::string below = append(name + "/below", Clip{.maximum = 0}, {x}, width);
    const std::string scaled =
        append(name + "/slope", Rescale{slopes, std::vector<double>(width, 0.0)}, {below}, width);
    return append(name, Binary{BinaryKind::add}, {above, scaled}, width);
  }

  // Only what leaves [batch, features] as it is.
  std::string reshape(const KerasLayer& layer, const std::string& x) {
    if (layer.class_name == "Flatten") return x;
    const auto shape = layer.config.find("target_shape");
    const bool kept = shape != layer.config.end() && shape->is_array() && shape->size() == 1 &&
                      ((*shape)[0] == -1 || (*shape)[0] == width_of(x, 0, layer));
    if (!kept) cannot(layer, "a reshaping", "one that keeps [batch, features]");
    return x;
  }

  int major_;
  const std::string& where_;
  Model model_;
  std::map<std::string, std::size_t> widths_;
  std::set<std::string> names_;
};

}  // namespace

Model build_keras_model(const KerasModel& keras, const KerasWeights& weights, int keras_major,
                        const std::string& where) {
  return Builder(keras_major, where).build(keras, weights);
}

}  // namespace lockstep::nn::detail

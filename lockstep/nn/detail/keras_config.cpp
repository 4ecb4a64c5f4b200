#include "lockstep/nn/detail/keras_config.h"

#include <algorithm>
#include <set>

#include "lockstep/core/error.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

constexpr std::size_t kMostLayers = 1024;  // also of calls, and of tensors a call reads
constexpr int kDeepestNesting = 16;

KerasModel parse_model(const Json& json, const std::string& where, int depth);

const Json& member(const Json& object, const char* key, const std::string& where) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) refuse(where, std::string("no \"") + key + '"', "one");
  return *found;
}

std::string text_of(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key, where);
  if (!value.is_string()) refuse(where, std::string("a \"") + key + "\" that is no text", "a text");
  return value.get<std::string>();
}

std::size_t index_of(const Json& value, const std::string& where) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMostLayers) {
    refuse(where, "a call or tensor numbered " + value.dump().substr(0, 40), "a small whole number");
  }
  return value.get<std::size_t>();
}

bool is_history(const Json& value) {
  return value.is_array() && value.size() >= 3 && value[0].is_string() && value[1].is_number_unsigned() &&
         value[2].is_number_unsigned();
}

KerasTensor parse_history(const Json& value, const std::string& where) {
  if (!is_history(value)) refuse(where, "no [layer, call, tensor]", "one");
  return {value[0].get<std::string>(), index_of(value[1], where), index_of(value[2], where), 0};
}

// One tensor or several, as a list or by names.
std::vector<KerasTensor> parse_ports(const Json& value, const std::string& where) {
  std::vector<KerasTensor> result;
  if (is_history(value)) {
    result.push_back(parse_history(value, where));
  } else if (value.is_array() || value.is_object()) {
    for (const Json& one : value) result.push_back(parse_history(one, where));
  }
  if (result.empty() || result.size() > kMostLayers) refuse(where, "no list of tensors", "at least one tensor");
  return result;
}

void collect_tensors(const Json& value, const std::string& where, int depth, KerasCall& call) {
  if (depth > kDeepestNesting || call.reads.size() > kMostLayers) refuse(where, "arguments nested too deep", "tensors");
  if (is_of_class(value, "__keras_tensor__")) {
    const Json& config = member(value, "config", where);
    call.reads.push_back(parse_history(member(config, "keras_history", where), where));
    const auto shape = config.find("shape");
    if (shape != config.end() && shape->is_array()) call.reads.back().rank = shape->size();
  } else if (value.is_array()) {
    for (const Json& one : value) collect_tensors(one, where, depth + 1, call);
  } else {
    call.constants = true;
  }
}

// Keras 3: {"args": [...], "kwargs": {...}}; Keras 2: [[layer, call, tensor, {...}], ...].
KerasCall parse_call(const Json& node, const std::string& where) {
  KerasCall call;
  if (node.is_object()) {
    call.arguments = member(node, "args", where);
    collect_tensors(call.arguments, where, 0, call);
    const auto keywords = node.find("kwargs");
    if (keywords == node.end() || !keywords->is_object()) return call;
    for (const auto& [key, value] : keywords->items()) {
      if (value.is_null() || value.is_boolean()) continue;  // "training", "mask"
      collect_tensors(value, where, 0, call);
      call.named = true;
    }
  } else {
    call.reads = parse_ports(node, where);
    for (const Json& one : is_history(node) ? Json::array({node}) : node) {
      if (one.size() < 4 || !one[3].is_object()) continue;
      for (const auto& [key, value] : one[3].items()) call.constants |= !value.is_null() && !value.is_boolean();
    }
  }
  return call;
}

KerasLayer parse_layer(const Json& json, const std::string& where, int depth) {
  KerasLayer layer;
  layer.class_name = text_of(json, "class_name", where);
  layer.config = member(json, "config", where + " " + layer.class_name);
  const bool is_model =
      layer.class_name == "Sequential" || layer.class_name == "Functional" || layer.class_name == "Model";
  if (json.contains("name") && json["name"].is_string()) {
    layer.name = json["name"].get<std::string>();
  } else if (layer.config.is_object() && layer.config.contains("name")) {
    layer.name = text_of(layer.config, "name", where + " " + layer.class_name);
  }
  if (layer.name.empty()) refuse(where + ": a layer " + layer.class_name, "no name", "one");
  const std::string here = where + ": " + layer.name;
  if (json.contains("module") && json["module"].is_string()) layer.module = json["module"].get<std::string>();
  if (json.contains("inbound_nodes") && json["inbound_nodes"].is_array()) {
    for (const Json& node : json["inbound_nodes"]) layer.calls.push_back(parse_call(node, here));
  }
  if (layer.calls.size() > kMostLayers) refuse(here, "too many calls", "at most " + std::to_string(kMostLayers));
  if (is_model) {
    layer.model = std::make_shared<KerasModel>(parse_model(json, here, depth + 1));
  } else if (!layer.config.is_object()) {
    refuse(here, "a configuration that is no object", "one");
  }
  return layer;
}

// Layer after layer; an InputLayer first.
void chain(KerasModel& model, const Json& config, const std::string& where) {
  if (model.layers.empty()) refuse(where, "no layers", "at least one");
  if (model.layers.front().class_name != "InputLayer") {
    KerasLayer input{"InputLayer", model.name + ".input", "keras.layers", Json::object(), {}, nullptr};
    const Json& first = model.layers.front().config;
    for (const char* key : {"batch_shape", "batch_input_shape"}) {
      if (first.is_object() && first.contains(key)) input.config[key] = first[key];
    }
    if (input.config.empty() && config.is_object() && config.contains("build_input_shape")) {
      input.config["batch_shape"] = config["build_input_shape"];
    }
    model.layers.insert(model.layers.begin(), std::move(input));
  }
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    model.layers[i].calls.clear();
    if (i > 0) model.layers[i].calls.push_back({.reads = {{model.layers[i - 1].name}}});
  }
  model.inputs = {{model.layers.front().name}};
  model.outputs = {{model.layers.back().name}};
}

// Keras 2 counts the call that built a model as its call number 0, though it is not among those the file lists.
void count_calls_from_zero(KerasModel& model) {
  const auto all_tensors = [&](const auto& visit) {
    for (KerasLayer& layer : model.layers) {
      for (KerasCall& call : layer.calls) std::ranges::for_each(call.reads, visit);
    }
    std::ranges::for_each(model.outputs, visit);
  };
  for (const KerasLayer& inner : model.layers) {
    if (!inner.model) continue;
    bool from_one = false;
    all_tensors([&](const KerasTensor& tensor) {
      from_one = from_one || (tensor.layer == inner.name && tensor.call == inner.calls.size());
    });
    all_tensors([&](KerasTensor& tensor) {
      if (from_one && tensor.layer == inner.name && tensor.call > 0) --tensor.call;
    });
  }
}

KerasModel parse_model(const Json& json, const std::string& where, int depth) {
  if (depth > kDeepestNesting) refuse(where, "models within models, too deep", "a plain nesting");
  const std::string kind = text_of(json, "class_name", where);
  const Json& config = member(json, "config", where);
  // Early Keras stored a Sequential's layers as the configuration itself.
  const Json* layers = config.is_array() ? &config : nullptr;
  if (config.is_object() && config.contains("layers")) layers = &config["layers"];
  if (layers == nullptr || !layers->is_array()) {
    throw Error(
        ErrorKind::unsupported,
        {where, "a model of class " + kind + ", whose layers are Python code", "Sequential or a functional model",
         "build it from the same layers by keras.Model(inputs, outputs), copy the weights, and save that"});
  }
  if (layers->size() > kMostLayers) refuse(where, std::to_string(layers->size()) + " layers", "fewer");
  KerasModel model;
  if (config.is_object() && config.contains("name") && config["name"].is_string()) {
    model.name = config["name"].get<std::string>();
  }
  if (model.name.empty()) model.name = "model";
  std::set<std::string> names;
  for (const Json& layer : *layers) {
    model.layers.push_back(parse_layer(layer, where, depth));
    const std::string& name = model.layers.back().name;
    if (!names.insert(name).second) refuse(where, "two layers named \"" + name + '"', "names that differ");
  }
  if (kind == "Sequential") {
    chain(model, config, where);
  } else {
    model.inputs = parse_ports(member(config, "input_layers", where), where + ": input_layers");
    model.outputs = parse_ports(member(config, "output_layers", where), where + ": output_layers");
    count_calls_from_zero(model);
  }
  return model;
}

// Copies of a value call themselves once a level: a few brackets too many must not end the stack.
bool is_deep(const std::string& text) {
  constexpr int kDeepest = 200;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

bool is_of_class(const Json& json, const char* class_name) {
  return json.is_object() && json.contains("class_name") && json["class_name"] == class_name;
}

KerasModel parse_keras_config(const std::string& text, const std::string& where) {
  if (is_deep(text)) refuse(where, "a configuration nested too deep", "what Keras writes", "save the model again");
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    refuse(where, "a configuration that is no JSON", "what Keras writes", "save the model again");
  return parse_model(json, where, 0);
}

std::size_t features_of_shape(const Json& config, const std::string& where) {
  for (const char* key : {"batch_shape", "batch_input_shape"}) {
    const auto found = config.find(key);
    if (found == config.end() || found->is_null()) continue;
    const Json& shape = *found;
    if (shape.is_array() && shape.size() == 2 && shape[1].is_null()) continue;
    const bool plain = shape.is_array() && shape.size() == 2 && shape[1].is_number_unsigned() && shape[1] > 0 &&
                       shape[1] < (std::size_t{1} << 31);
    if (!plain) {
      throw Error(ErrorKind::unsupported, {where, "inputs of shape " + shape.dump().substr(0, 60),
                                           "[batch, features], the features being a number",
                                           "nets over sequences or images cannot be evaluated by Lockstep"});
    }
    return shape[1].get<std::size_t>();
  }
  return 0;
}

}  // namespace lockstep::nn::detail

// The configuration that Keras stores with a model, as layers and what each reads.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::nn::detail {

using Json = nlohmann::ordered_json;

// Whether it is what Keras writes an object of Python's as: {"class_name": ..., "config": ...}.
bool is_of_class(const Json& json, const char* class_name);

// A tensor of Keras' history: output `tensor` of the call number `call` of a layer.
struct KerasTensor {
  std::string layer;
  std::size_t call = 0;
  std::size_t tensor = 0;
  std::size_t rank = 0;  // its dimensions with the batch's; 0 where the file does not say
};

struct KerasCall {
  std::vector<KerasTensor> reads;
  bool constants = false;  // reads something that is no tensor too: numbers, texts
  bool named = false;      // by name: {"axis": 1} beside the arguments
  Json arguments;          // in their order, as Keras 3 writes them, tensors among them
};

struct KerasModel;

struct KerasLayer {
  std::string class_name;
  std::string name;
  std::string module;  // empty where the file does not say: Keras 2
  Json config;
  std::vector<KerasCall> calls;
  std::shared_ptr<const KerasModel> model;  // of a model used as a layer
};

// A Sequential has been made a chain of calls, beginning with an InputLayer.
struct KerasModel {
  std::string name;
  std::vector<KerasLayer> layers;
  std::vector<KerasTensor> inputs;
  std::vector<KerasTensor> outputs;
};

// `where` is what messages call the file. Throws Error (model) for text that is no such configuration, (unsupported)
// for models whose structure is Python code.
KerasModel parse_keras_config(const std::string& text, const std::string& where);

// The features of "batch_shape" (Keras 3) or "batch_input_shape" (Keras 2): [batch, features]; 0 where neither is said.
// Throws Error (unsupported) on another rank.
std::size_t features_of_shape(const Json& config, const std::string& where);

}  // namespace lockstep::nn::detail

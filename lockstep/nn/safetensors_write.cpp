// Writing safetensors files.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <list>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"
#include "lockstep/nn/detail/refuse.h"
#include "lockstep/nn/detail/safetensors_container.h"
#include "lockstep/nn/safetensors.h"
#include "lockstep/nn/shared_weights.h"

namespace lockstep::nn {
namespace {

// A container under construction, with the bytes its tensors point to.
class Writer {
 public:
  // As F32 where no bit is lost, else F64.
  void add(const std::string& name, const std::vector<double>& values, std::vector<std::uint64_t> shape) {
    const bool narrow = detail::all_fit_float32(values);
    std::vector<std::byte>& data = storage_.emplace_back(values.size() * (narrow ? sizeof(float) : sizeof(double)));
    if (narrow) {
      const std::vector<float> floats(values.begin(), values.end());
      std::memcpy(data.data(), floats.data(), data.size());
    } else {
      std::memcpy(data.data(), values.data(), data.size());
    }
    detail::Tensor& tensor = container_.tensors[name];
    tensor.dtype = narrow ? "F32" : "F64";
    tensor.shape = std::move(shape);
    tensor.data = data;
  }
  void add(const std::string& name, const std::vector<double>& values) {
    if (!values.empty()) add(name, values, {values.size()});
  }

  void set(const std::string& key, const std::string& value) {
    if (!value.empty()) container_.metadata[key] = value;
  }
  void set_list(const std::string& key, const std::vector<Feature>& features, std::string Feature::*member) {
    std::string list;
    bool any = false;
    for (std::size_t i = 0; i < features.size(); ++i) {
      const std::string& entry = features[i].*member;
      if (entry.find(',') != std::string::npos) {
        throw Error(ErrorKind::model, {"feature " + std::to_string(i) + " of " + key, "\"" + entry + "\"",
                                       "text without commas", "rename it, or save the model as HDF5"});
      }
      any = any || !entry.empty();
      list += (i == 0 ? "" : ",") + entry;
    }
    if (any) set(key, list);
  }

  std::vector<std::byte> bytes(std::map<std::string, std::string> metadata) {
    container_.metadata.merge(metadata);  // what the model says itself goes first
    return detail::write_container(container_);
  }

 private:
  detail::Container container_;
  std::list<std::vector<std::byte>> storage_;
};

// The file's words are mean and standard deviation: a scale below zero has no place in it.
void check_stddev(const std::string& name, const std::vector<double>& scale) {
  for (std::size_t i = 0; i < scale.size(); ++i) {
    if (!(scale[i] > 0)) {
      throw Error(ErrorKind::unsupported, {name + "[" + std::to_string(i) + "]", number_text(scale[i]),
                                           "a scale above 0 for safetensors", "save the model as HDF5"});
    }
  }
}

void add_range(Writer& writer, const std::string& name, const std::vector<Feature>& features, double Feature::*member) {
  std::vector<double> values;
  for (const Feature& feature : features) values.push_back(feature.*member);
  if (!std::all_of(values.begin(), values.end(), [](double value) { return std::isinf(value); })) {
    writer.add(name, values);
  }
}

}  // namespace

std::vector<std::byte> to_safetensors(const Model& model) {
  if (!model.calls.empty()) {
    throw Error(ErrorKind::unsupported, {"model", "calls of nets with training ranges",
                                         "a model without: safetensors cannot say them", "write it as HDF5, NAME.h5"});
  }
  const Mlp mlp = to_mlp(model);
  Writer writer;
  std::string activations;
  for (std::size_t i = 0; i < mlp.layers.size(); ++i) {
    const DenseLayer& layer = mlp.layers[i];
    const std::string stem = "layers." + std::to_string(i);
    writer.add(stem + ".weight", layer.weights, {layer.outputs, layer.inputs});
    if (!lacks_bias(layer)) writer.add(stem + ".bias", layer.bias);
    activations += (i == 0 ? "" : ",") + to_string(layer.activation);
  }
  check_stddev("input_scaling.scale", mlp.input_scaling.scale);
  check_stddev("output_scaling.scale", mlp.output_scaling.scale);
  writer.add("input_mean", mlp.input_scaling.shift);
  writer.add("input_stddev", mlp.input_scaling.scale);
  writer.add("output_mean", mlp.output_scaling.shift);
  writer.add("output_stddev", mlp.output_scaling.scale);

  const std::vector<Feature>& inputs = model.inputs[0].features;
  const std::vector<Feature>& outputs = model.outputs[0].features;
  add_range(writer, "input_min", inputs, &Feature::minimum);
  add_range(writer, "input_max", inputs, &Feature::maximum);
  writer.set("activations", activations);
  if (model.inputs[0].name != "x") writer.set("input_port", model.inputs[0].name);
  if (model.outputs[0].name != "y") writer.set("output_port", model.outputs[0].name);
  writer.set("name", model.name);
  writer.set("producer", model.provenance.producer);
  writer.set("licence", model.provenance.licence);
  writer.set("attribution", model.provenance.attribution);
  writer.set_list("inputs", inputs, &Feature::name);
  writer.set_list("input_units", inputs, &Feature::unit);
  writer.set_list("outputs", outputs, &Feature::name);
  writer.set_list("output_units", outputs, &Feature::unit);
  return writer.bytes(model.metadata);
}

void write_safetensors(const std::filesystem::path& path, const Model& model, Existing existing) {
  write_file(path, to_safetensors(model), existing);
}

}  // namespace lockstep::nn

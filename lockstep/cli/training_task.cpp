#include "lockstep/cli/training_task.h"

#include <utility>

#include "lockstep/cli/text.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/nn/fit.h"
#include "lockstep/nn/load.h"

namespace lockstep::cli {

namespace {

// What `start` names: weights and operations; names and ranges are the new data's.
nn::Model model_to_start_from(const TrainingFile& file, const NetSection& net, std::size_t inputs,
                              std::size_t outputs) {
  const auto& [path, where] = *net.start;
  const nn::Model before = net.loaded ? *net.loaded : nn::load(path);
  const auto refuse = [&path = path, &where = where](ErrorKind kind, const std::string& found,
                                                     const std::string& expected,
                                                     const std::string& remedy = {}) -> void {
    throw Error(kind, {where, found + " in " + path.string(), expected, remedy});
  };
  if (before.inputs.size() != 1 || before.outputs.size() != 1) {
    refuse(ErrorKind::unsupported,
           std::to_string(before.inputs.size()) + " input ports, " + std::to_string(before.outputs.size()) +
               " output ports",
           "one of each");
  }
  const std::size_t width = before.inputs[0].features.size(), made = before.outputs[0].features.size();
  if (width != inputs || made != outputs) {
    refuse(ErrorKind::invalid_argument, std::to_string(width) + " inputs, " + std::to_string(made) + " outputs",
           std::to_string(inputs) + " and " + std::to_string(outputs) + " as the data have");
  }
  // Beside other nets it is theirs.
  if (file.data.normalisation != Normalisation::none && file.nets.size() == 1) {
    throw Error(ErrorKind::invalid_argument,
                {file.data.where + ".normalise",
                 "a normalisation beside a model to start from, which keeps the scaling that it has, or none", "none",
                 "remove this key"});
  }
  nn::Model model;
  if (nn::is_stack(before)) {
    model = nn::Model::from_mlp(nn::to_mlp(before));
  } else {
    model = before;
    model.provenance = {};
    model.metadata.clear();
  }
  model.provenance.licence = before.provenance.licence;
  model.provenance.attribution = before.provenance.attribution;
  return model;
}

}  // namespace

nn::Model initial_model(const TrainingFile& file, const NetSection& net, std::vector<nn::Feature> inputs,
                        std::vector<nn::Feature> outputs, const InputScaling& input_scaling,
                        const OutputScaling& output_scaling) {
  nn::Model model;
  if (net.start) {
    model = model_to_start_from(file, net, inputs.size(), outputs.size());
  } else {
    Mlp mlp;
    std::vector<std::size_t> widths{inputs.size()};
    widths.insert(widths.end(), net.hidden.begin(), net.hidden.end());
    widths.push_back(outputs.size());
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      mlp.layers.push_back({.inputs = widths[i], .outputs = widths[i + 1], .activation = net.activations[i]});
    }
    train::initialise(mlp, net.initialisation, net.seed);
    mlp.input_scaling = input_scaling;
    mlp.output_scaling = output_scaling;
    model = nn::Model::from_mlp(mlp);
  }
  const std::string name = file.nets.size() == 1 ? file.output.stem.filename().string() : net.called;
  model.name = net.name.empty() ? name : net.name;
  model.inputs.at(0).features = std::move(inputs);
  model.outputs.at(0).features = std::move(outputs);
  model.provenance.producer = "lockstep " LOCKSTEP_VERSION;
  model.weight_type = file.options.precision == Precision::f32 ? nn::WeightType::f32 : nn::WeightType::f64;
  return model;
}

template <class T>
std::vector<double> TrainingTask<T>::start_weights() const {
  std::vector<double> all;
  for (const nn::Model& net : starts_) {
    const std::vector<double> weights = graph::gather_weights(nn::to_graph(net));
    all.insert(all.end(), weights.begin(), weights.end());
  }
  return all;
}

template <class T>
std::vector<T> TrainingTask<T>::start_parameters() const {
  const std::vector<double> weights = start_weights();
  std::vector<T> start(weights.begin(), weights.end());
  start.resize(parameters());
  return start;
}

template <class T>
std::vector<nn::Model> TrainingTask<T>::nets(std::span<const T> parameters) const {
  std::vector<nn::Model> nets = starts_;
  for (nn::Model& net : nets) {
    const std::size_t count = graph::gather_weights(nn::to_graph(net)).size();
    nn::set_parameters<T>(net, parameters.first(count));
    parameters = parameters.subspan(count);
  }
  return nets;
}

template class TrainingTask<float>;
template class TrainingTask<double>;

}  // namespace lockstep::cli

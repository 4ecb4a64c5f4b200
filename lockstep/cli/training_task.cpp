#include "lockstep/cli/training_task.h"

#include <utility>

#include "lockstep/cli/text.h"
#include "lockstep/kernels/mlp/parameters.h"
#include "lockstep/nn/fit.h"
#include "lockstep/nn/load.h"

namespace lockstep::cli {

nn::Model initial_model(const TrainingFile& file, std::vector<nn::Feature> inputs, std::vector<nn::Feature> outputs,
                        const InputScaling& input_scaling, const OutputScaling& output_scaling) {
  Mlp mlp;
  if (file.net.start) {
    const nn::Model before = file.net.loaded ? *file.net.loaded : nn::load(file.net.start->value);
    mlp = nn::to_mlp(before);
    if (mlp.inputs() != inputs.size() || mlp.outputs() != outputs.size()) {
      throw Error(ErrorKind::invalid_argument,
                  {file.net.start->where,
                   std::to_string(mlp.inputs()) + " inputs, " + std::to_string(mlp.outputs()) + " outputs in " +
                       file.net.start->value.string(),
                   std::to_string(inputs.size()) + " and " + std::to_string(outputs.size()) + " as the data have",
                   {}});
    }
    if (file.data.normalisation != Normalisation::none) {
      throw Error(ErrorKind::invalid_argument,
                  {file.data.where + ".normalise", "a normalisation beside a model to start from, which has its own",
                   "none", "remove this key"});
    }
  } else {
    std::vector<std::size_t> widths{inputs.size()};
    widths.insert(widths.end(), file.net.hidden.begin(), file.net.hidden.end());
    widths.push_back(outputs.size());
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      mlp.layers.push_back({.inputs = widths[i], .outputs = widths[i + 1], .activation = file.net.activations[i]});
    }
    train::initialise(mlp, file.net.initialisation, file.net.seed);
    mlp.input_scaling = input_scaling;
    mlp.output_scaling = output_scaling;
  }
  nn::Model model = nn::Model::from_mlp(mlp);
  model.name = file.net.name.empty() ? file.output.stem.filename().string() : file.net.name;
  model.inputs.at(0).features = std::move(inputs);
  model.outputs.at(0).features = std::move(outputs);
  model.provenance.producer = "lockstep " LOCKSTEP_VERSION;
  model.weight_type = file.options.precision == Precision::f32 ? nn::WeightType::f32 : nn::WeightType::f64;
  return model;
}

template <class T>
std::size_t TrainingTask<T>::weights() const {
  return gather_parameters<T>(nn::to_mlp(start_)).size();
}

template <class T>
std::vector<T> TrainingTask<T>::start_parameters() const {
  std::vector<T> start = gather_parameters<T>(nn::to_mlp(start_));
  start.resize(parameters());
  return start;
}

template <class T>
nn::Model TrainingTask<T>::model(std::span<const T> parameters) const {
  nn::Model model = start_;
  nn::set_parameters<T>(model, parameters.first(weights()));
  return model;
}

template class TrainingTask<float>;
template class TrainingTask<double>;

}  // namespace lockstep::cli

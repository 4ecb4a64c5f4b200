#include "lockstep/nn/detail/keras_normalisation.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

void flatten(const Json& json, const std::string& where, std::vector<double>& numbers, int depth) {
  if (json.is_number()) {
    numbers.push_back(json.get<double>());
  } else if (json.is_array() && depth < 4) {
    for (const Json& one : json) flatten(one, where, numbers, depth + 1);
  } else {
    refuse(where, "a mean or variance that is no list of numbers", "numbers");
  }
}

std::string batch_normalisation(KerasGraph& graph, const KerasLayer& layer, const std::string& x,
                                const KerasWeights& weights, const std::string& name) {
  graph.check_axis(layer, false);
  std::size_t position = 0;
  const bool scaled = config_flag(layer.config, "scale", true), centred = config_flag(layer.config, "center", true);
  const KerasArray gamma = scaled ? weights.read("gamma", position++) : KerasArray{};
  const KerasArray beta = centred ? weights.read("beta", position++) : KerasArray{};
  const KerasArray mean = weights.read("moving_mean", position++);
  const std::size_t width = graph.width_of(x, mean.values.size(), layer);
  const std::vector<double> variance = variable_of(weights, "moving_variance", position, width);
  if ((scaled && gamma.values.size() != width) || (centred && beta.values.size() != width)) {
    refuse(weights.where(), "gamma or beta of another length", std::to_string(width) + " numbers");
  }
  const double epsilon = config_number(layer.config, "epsilon", 1e-3, graph.where(layer));
  Rescale rescale;
  for (std::size_t i = 0; i < width; ++i) {
    const double scale = (scaled ? gamma.values[i] : 1) / std::sqrt(variance[i] + epsilon);
    rescale.scale.push_back(scale);
    rescale.shift.push_back((centred ? beta.values[i] : 0) - mean.values[i] * scale);
  }
  return graph.append(name, std::move(rescale), {x}, width);
}

// (x - mean) / max(sqrt(variance), 1e-7), or its inverse.
std::string normalisation(KerasGraph& graph, const KerasLayer& layer, const std::string& x, const KerasWeights& weights,
                          const std::string& name) {
  graph.check_axis(layer, true);
  const std::string here = graph.where(layer);
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
  const std::size_t width = graph.width_of(x, mean->size() == 1 ? 0 : mean->size(), layer);
  Standardise standardise;
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t from = mean->size() == 1 ? 0 : i;
    standardise.shift.push_back((*mean)[from]);
    standardise.scale.push_back(std::max(std::sqrt((*variance)[from]), 1e-7));
  }
  if (!config_flag(layer.config, "invert", false)) return graph.append(name, std::move(standardise), {x}, width);
  return graph.append(name, Rescale{std::move(standardise.scale), std::move(standardise.shift)}, {x}, width);
}

std::string rescaling(KerasGraph& graph, const KerasLayer& layer, const std::string& x, const std::string& name) {
  const std::string here = graph.where(layer);
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
  const std::size_t width = graph.width_of(x, wanted == 1 ? 0 : wanted, layer);
  for (std::vector<double>* list : {&rescale.scale, &rescale.shift}) {
    if (list->size() == 1) list->resize(width, list->front());
    if (list->size() != width) refuse(here, "scale and offset of different lengths", "one number a feature");
  }
  return graph.append(name, std::move(rescale), {x}, width);
}

std::string layer_normalisation(KerasGraph& graph, const KerasLayer& layer, const std::string& x,
                                const KerasWeights& weights, const std::string& name) {
  graph.check_axis(layer, false);
  if (config_flag(layer.config, "rms_scaling", false)) graph.cannot(layer, "rms_scaling", "plain layer normalisation");
  const std::size_t width = graph.width_of(x, 0, layer);
  LayerNormalise normalise{std::vector<double>(width, 1.0), std::vector<double>(width, 0.0),
                           config_number(layer.config, "epsilon", 1e-3, graph.where(layer))};
  std::size_t position = 0;
  if (config_flag(layer.config, "scale", true)) normalise.scale = variable_of(weights, "gamma", position++, width);
  if (config_flag(layer.config, "center", true)) normalise.shift = variable_of(weights, "beta", position, width);
  return graph.append(name, std::move(normalise), {x}, width);
}

std::string group_normalisation(KerasGraph& graph, const KerasLayer& layer, const std::string& x,
                                const KerasWeights& weights, const std::string& name) {
  graph.check_axis(layer, false);
  const std::string here = graph.where(layer);
  const std::size_t width = graph.width_of(x, 0, layer);
  const double given = config_number(layer.config, "groups", 32, here);
  const std::size_t groups = given == -1 ? width : given >= 1 && given <= 1e6 ? static_cast<std::size_t>(given) : 0;
  if (groups == 0 || width % groups != 0) refuse(here, "groups that do not divide its width", "some that do");
  std::size_t position = 0;
  std::vector<double> gamma(width, 1.0), beta(width, 0.0);
  if (config_flag(layer.config, "scale", true)) gamma = variable_of(weights, "gamma", position++, width);
  if (config_flag(layer.config, "center", true)) beta = variable_of(weights, "beta", position, width);
  const double epsilon = config_number(layer.config, "epsilon", 1e-3, here);
  return graph.compose(detail::group_normalisation(gamma, beta, groups, epsilon), {x}, name);
}

}  // namespace

std::optional<std::string> keras_normalisation(KerasGraph& graph, const KerasLayer& layer, const std::string& x,
                                               const KerasWeights& weights, const std::string& name) {
  const std::string& kind = layer.class_name;
  if (kind == "BatchNormalization") return batch_normalisation(graph, layer, x, weights, name);
  if (kind == "Normalization") return normalisation(graph, layer, x, weights, name);
  if (kind == "Rescaling") return rescaling(graph, layer, x, name);
  if (kind == "LayerNormalization") return layer_normalisation(graph, layer, x, weights, name);
  if (kind == "GroupNormalization") return group_normalisation(graph, layer, x, weights, name);
  if (kind == "RMSNormalization") {
    graph.check_axis(layer, false);
    const double epsilon = config_number(layer.config, "epsilon", 1e-6, graph.where(layer));
    const std::size_t width = graph.width_of(x, 0, layer);
    return graph.compose(rms_normalisation(variable_of(weights, "scale", 0, width), epsilon), {x}, name);
  }
  if (kind == "UnitNormalization") {
    graph.check_axis(layer, false);
    graph.width_of(x, 0, layer);
    return graph.compose(unit_normalisation(), {x}, name);
  }
  return std::nullopt;
}

}  // namespace lockstep::nn::detail

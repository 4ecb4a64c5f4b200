#include "lockstep/nn/detail/keras_graph.h"

#include <utility>
#include <variant>

#include "lockstep/core/error.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {

double config_number(const Json& config, const char* key, double otherwise, const std::string& where) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return otherwise;
  if (!found->is_number()) refuse(where, std::string("a \"") + key + "\" that is no number", "a number");
  return found->get<double>();
}

bool config_flag(const Json& config, const char* key, bool otherwise) {
  const auto found = config.find(key);
  return found != config.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

std::vector<double> variable_of(const KerasWeights& weights, const std::string& variable, std::size_t position,
                                std::size_t width) {
  KerasArray array = weights.read(variable, position);
  if (array.values.size() != width) {
    refuse(weights.where() + ": " + variable, std::to_string(array.values.size()) + " numbers",
           std::to_string(width) + ", one for each feature");
  }
  return std::move(array.values);
}

void KerasGraph::cannot(const KerasLayer& layer, const std::string& found, const std::string& expected,
                        const std::string& remedy) const {
  constexpr const char* kInstead =
      "build the model of such layers, or bring it as ONNX: model.export(\"net.onnx\", format=\"onnx\")";
  throw Error(ErrorKind::unsupported, {where(layer), found, expected, remedy.empty() ? kInstead : remedy});
}

std::string KerasGraph::new_name(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !names_.insert(name).second; ++i) name = wanted + "." + std::to_string(i);
  return name;
}

std::string KerasGraph::append(const std::string& wanted, Operation operation, const KerasValues& reads,
                               std::size_t width) {
  std::string name = new_name(wanted);
  model.nodes.push_back({name, std::move(operation), reads});
  widths_[name] = width;
  return name;
}

std::size_t KerasGraph::width_of(const std::string& value, std::size_t wanted, const KerasLayer& layer) {
  std::size_t& width = widths_[value];
  if (width == 0) width = wanted;
  if (width == 0) cannot(layer, "inputs of unknown width", "a model that was built, with an InputLayer");
  if (wanted != 0 && wanted != width) {
    refuse(where(layer), "weights for " + std::to_string(wanted) + " inputs",
           std::to_string(width) + ", the width of what it reads");
  }
  return width;
}

std::size_t KerasGraph::known_width(const std::string& value) const {
  const auto found = widths_.find(value);
  return found == widths_.end() ? 0 : found->second;
}

void KerasGraph::check_axis(const KerasLayer& layer, bool none_allowed) const {
  const auto found = layer.config.find("axis");
  if (found == layer.config.end()) return;
  Json axis = *found;
  if (axis.is_array() && axis.size() == 1) axis = Json(axis[0]);
  if (axis == -1 || axis == 1 || ((axis.is_null() || axis == Json::array()) && none_allowed)) return;
  cannot(layer, "axis " + found->dump().substr(0, 40), "-1, the features");
}

std::string KerasGraph::activate(const KerasLayer& layer, const std::string& x, KerasActivation steps,
                                 const std::string& name) {
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

std::string KerasGraph::compose(KerasSteps steps, const KerasValues& inputs, const std::string& name) {
  KerasValues made;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string here = i + 1 == steps.size() ? name : name + "/" + std::to_string(i);
    KerasValues reads;
    std::vector<std::size_t> widths;
    for (const std::size_t read : steps[i].reads) {
      reads.push_back(read < made.size() ? made[read] : inputs.at(kKerasInput - read));
      widths.push_back(known_width(reads.back()));
    }
    const std::size_t width = graph::output_width(steps[i].operation, widths, here);
    made.push_back(append(here, std::move(steps[i].operation), reads, width));
  }
  return made.back();
}

}  // namespace lockstep::nn::detail

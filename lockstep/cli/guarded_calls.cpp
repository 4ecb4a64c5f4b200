#include "lockstep/cli/guarded_calls.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::cli {
namespace {

bool is_bounded(const nn::Feature& feature) { return std::isfinite(feature.minimum) || std::isfinite(feature.maximum); }

bool is_bounded(const nn::Port& port) {
  return std::ranges::any_of(port.features, [](const nn::Feature& feature) { return is_bounded(feature); });
}

bool knows_range(const nn::Equations::Net& net) {
  return std::ranges::any_of(net.model.inputs, [](const nn::Port& port) { return is_bounded(port); });
}

// A feature of an input port.
struct Source {
  std::string port;
  std::size_t index;
};

// What value[index] is, where it is a feature of an input port as it is.
std::optional<Source> source_of(const nn::Model& model, const std::string& value, std::size_t index) {
  const auto named = [&](const auto& of) { return of.name == value; };
  if (std::ranges::any_of(model.inputs, named)) return Source{value, index};
  const auto node = std::ranges::find_if(model.nodes, named);
  if (node == model.nodes.end()) return std::nullopt;
  if (const auto* columns = std::get_if<nn::Columns>(&node->operation)) {
    return source_of(model, node->inputs[0], columns->indices.at(index));
  }
  // Of the values of equations, which are numbers.
  if (std::holds_alternative<nn::Concatenate>(node->operation) && index < node->inputs.size()) {
    return source_of(model, node->inputs[index], 0);
  }
  return std::nullopt;
}

// The calls of one net, all others as they are; nothing where it is not called.
std::optional<nn::NetCalls> calls_of(const nn::Equations& system, const std::string& net) {
  nn::Equations others = system;
  std::erase_if(others.nets, [&](const nn::Equations::Net& of) { return of.name == net; });
  try {
    std::vector<nn::NetCalls> calls = nn::net_calls(others, std::span(&net, 1));
    return std::move(calls.front());
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

bool has_ranges(const nn::Equations& system) { return std::ranges::any_of(system.nets, knows_range); }

WatchedCalls watched_calls(const nn::Equations& system) {
  const std::size_t components = system.equations.size(), count = components + system.parameters.size();
  WatchedCalls watched;
  watched.range.minimum.assign(count, -std::numeric_limits<double>::infinity());
  watched.range.maximum.assign(count, std::numeric_limits<double>::infinity());
  for (const nn::Equations::Net& net : system.nets) {
    if (!knows_range(net)) continue;
    const std::optional<nn::NetCalls> calls = calls_of(system, net.name);
    if (!calls || calls->calls == 0) continue;
    std::vector<nn::Feature> features;
    for (const nn::Port& port : net.model.inputs) {
      features.insert(features.end(), port.features.begin(), port.features.end());
    }
    const std::string& read = calls->read.outputs[0].value;
    for (std::size_t at = 0; at < calls->calls * features.size(); ++at) {
      const nn::Feature& feature = features[at % features.size()];
      if (!is_bounded(feature)) continue;
      const std::optional<Source> source = source_of(calls->read, read, at);
      if (!source || source->port == "t") {
        const std::string other = net.name + "'s input " + calls->inputs[at % features.size()];
        if (std::ranges::find(watched.other, other) == watched.other.end()) watched.other.push_back(other);
        continue;
      }
      const std::size_t place = source->port == "u" ? source->index : components + source->index;
      double& low = watched.range.minimum.at(place);
      double& high = watched.range.maximum.at(place);
      low = std::max(low, feature.minimum);
      high = std::min(high, feature.maximum);
    }
    if (calls->reads_nets) watched.other.push_back(net.name + "'s input that holds what it returns");
  }
  return watched;
}

nn::Model with_clamped_inputs(const nn::Model& net) {
  nn::Model made = net;
  std::vector<nn::Node> first;
  for (const nn::Port& port : net.inputs) {
    if (!is_bounded(port)) continue;
    const std::string clamped = port.name + ".clamped";
    std::vector<std::string> pieces;
    for (std::size_t i = 0; i < port.features.size(); ++i) {
      const std::string piece = port.name + "." + std::to_string(i);
      first.push_back({piece, nn::Columns{{i}}, {port.name}});
      first.push_back({piece + ".clamped", nn::Clip{port.features[i].minimum, port.features[i].maximum}, {piece}});
      pieces.push_back(piece + ".clamped");
    }
    first.push_back({clamped, nn::Concatenate{}, std::move(pieces)});
    for (nn::Node& node : made.nodes) std::ranges::replace(node.inputs, port.name, clamped);
    for (nn::Port& output : made.outputs) {
      if (output.value == port.name) output.value = clamped;
    }
  }
  made.nodes.insert(made.nodes.begin(), first.begin(), first.end());
  return made;
}

}  // namespace lockstep::cli

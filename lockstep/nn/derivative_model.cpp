#include "lockstep/nn/derivative_model.h"

#include <set>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/detail/analysis.h"

namespace lockstep::nn {
namespace {

graph::Graph derivative_graph(const graph::Graph& graph, Derivative derivative) {
  switch (derivative) {
    case Derivative::jvp:
      return graph::jvp_graph(graph);
    case Derivative::vjp:
      return graph::vjp_graph(graph);
    case Derivative::jacobian:
      break;
  }
  return graph::jacobian_graph(graph);
}

// The features of a direction or a cotangent: called as those it belongs to. A direction has their unit.
std::vector<Feature> features_along(const Port& port, const std::string& ending, bool has_unit) {
  std::vector<Feature> features;
  for (const Feature& feature : port.features) {
    features.push_back({.name = feature.name.empty() ? "" : feature.name + ending,
                        .unit = has_unit ? feature.unit : ""});
  }
  return features;
}

// "y_by_x", where all have such names and no two the same.
std::vector<Feature> entries(const Model& model) {
  std::vector<Feature> features;
  std::set<std::string> names;
  bool named = true;
  for (const Port& out : model.outputs) {
    for (const Feature& y : out.features) {
      for (const Port& in : model.inputs) {
        for (const Feature& x : in.features) {
          features.push_back({.name = y.name + "_by_" + x.name});
          named = named && !y.name.empty() && !x.name.empty() && names.insert(features.back().name).second;
        }
      }
    }
  }
  if (!named) features.assign(features.size(), Feature{});
  return features;
}

}  // namespace

std::string to_string(Derivative derivative) {
  switch (derivative) {
    case Derivative::jvp:
      return "jvp";
    case Derivative::vjp:
      return "vjp";
    case Derivative::jacobian:
      break;
  }
  return "jacobian";
}

std::optional<Derivative> parse_derivative(std::string_view text) {
  for (const Derivative derivative : {Derivative::jvp, Derivative::vjp, Derivative::jacobian}) {
    if (text == to_string(derivative)) return derivative;
  }
  return {};
}

Model derivative_model(const Model& model, Derivative derivative) {
  const StandardArithmetic arithmetic;
  graph::Graph graph = derivative_graph(to_graph(model), derivative);
  Model made;
  made.name = model.name.empty() ? "" : model.name + ", " + to_string(derivative);
  made.weight_type = model.weight_type;
  made.provenance = model.provenance;
  made.metadata = model.metadata;

  std::vector<std::string> names;  // of the values
  made.inputs = model.inputs;
  made.outputs = model.outputs;
  const auto append = [](std::vector<Port>& ports, const std::vector<Port>& of, const char* ending, bool has_unit) {
    for (const Port& port : of) ports.push_back({port.name + ending, "", features_along(port, ending, has_unit)});
  };
  if (derivative == Derivative::jvp) {
    append(made.inputs, model.inputs, "_dot", true);
    append(made.outputs, model.outputs, "_dot", true);
  } else if (derivative == Derivative::vjp) {
    append(made.inputs, model.outputs, "_bar", false);
    append(made.outputs, model.inputs, "_bar", false);
  } else {
    made.outputs.push_back({"jacobian", "", entries(model)});
  }
  for (const Port& port : made.inputs) names.push_back(port.name);
  const graph::Analysis know(graph);  // directions leave constants behind that were multiplied out
  for (graph::Node& node : graph.nodes) {
    names.push_back(node.name);
    if (!know.needed(names.size() - 1)) continue;
    Node& one = made.nodes.emplace_back();
    one.name = node.name;
    for (const std::size_t input : node.inputs) one.inputs.push_back(names[input]);
    one.operation = std::move(node.operation);
  }
  for (std::size_t port = 0; port < made.outputs.size(); ++port) {
    made.outputs[port].value = names[graph.outputs[port].value];
  }
  made.validate();
  return made;
}

}  // namespace lockstep::nn

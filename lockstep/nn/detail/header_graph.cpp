#include "lockstep/nn/detail/header_graph.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <type_traits>
#include <variant>

#include "lockstep/kernels/graph/detail/analysis.h"
#include "lockstep/kernels/graph/detail/layout.h"

namespace lockstep::nn::detail {
namespace {

using graph::Analysis;
using graph::Layout;

// "in_heat_flux" of "heat flux"; each parameter, and each stride, has a name of its own.
std::vector<HeaderPort> header_ports(const std::vector<graph::Port>& ports, const std::string& direction) {
  std::vector<HeaderPort> result;
  std::set<std::string> taken;
  const auto names = [](const std::string& parameter) {
    return std::array{parameter, parameter + "_sample_stride", parameter + "_feature_stride"};
  };
  const auto is_taken = [&](const std::string& parameter) {
    return std::ranges::any_of(names(parameter), [&](const std::string& name) { return taken.contains(name); });
  };
  for (const graph::Port& port : ports) {
    HeaderPort& one = result.emplace_back();
    one.port = port.name;
    one.width = port.width;
    one.parameter = direction;
    if (ports.size() > 1) {
      one.parameter += "_";
      for (const unsigned char c : port.name) one.parameter += c < 128 && std::isalnum(c) ? static_cast<char>(c) : '_';
    }
    const std::string plain = one.parameter;
    for (int i = 2; is_taken(one.parameter); ++i) one.parameter = plain + "_" + std::to_string(i);
    for (const std::string& name : names(one.parameter)) taken.insert(name);
  }
  return result;
}

// Makes the layers, gives every value its rows and lists the calls.
class Builder {
 public:
  Builder(HeaderPlan& plan, const graph::Graph& graph)
      : plan_(plan), graph_(graph), know_(graph), made_(*plan.graph), area_(know_.widths.size(), Analysis::kNone) {}

  void run() {
    made_.graph = graph_;
    made_.inputs = header_ports(graph_.inputs, "in");
    made_.outputs = header_ports(graph_.outputs, "out");
    for (std::size_t port = 0; port < know_.inputs(); ++port) {
      made_.inputs[port].is_needed = know_.needed(port);
      if (know_.needed(port)) give_rows(port, know_.widths[port], 0);
    }
    for (std::size_t value = know_.inputs(); value < know_.widths.size(); ++value) {
      if (know_.needed(value)) add_step(value);
    }
    made_.rows = layout_.allocate();
    for (std::size_t i = 0; i < made_.steps.size(); ++i) {
      made_.steps[i].makes = row(makes_[i]);
      for (std::size_t& read : made_.steps[i].reads) read = row(read);
    }
    for (std::size_t port = 0; port < know_.inputs(); ++port) {
      if (know_.needed(port)) made_.inputs[port].row = row(port);
    }
    for (std::size_t port = 0; port < made_.outputs.size(); ++port) {
      made_.outputs[port].row = row(graph_.outputs[port].value);
    }
  }

 private:
  std::size_t row(std::size_t value) const { return layout_.row({area_[value], 0}); }

  void give_rows(std::size_t value, std::size_t rows, std::size_t time) {
    area_[value] = layout_.add(rows, time);
    layout_.extend(area_[value], know_.last[value]);
  }

  void add_step(std::size_t value) {
    const graph::Node& node = know_.node(value);
    HeaderStep step;
    step.node = value - know_.inputs();
    std::size_t makes = value;
    if (const auto* dense = std::get_if<Dense>(&node.operation)) {
      makes = know_.made_by(value);
      step.layer = plan_.layers.size();
      plan_.add_layer({dense->inputs, dense->outputs, dense->weights, dense->bias, know_.activation_of(value)});
      step.reads = node.inputs;
      give_rows(makes, plan_.layers.back().padded(), know_.time(value));
    } else {
      if (const auto* activate = std::get_if<Activate>(&node.operation)) {
        const std::size_t read = node.inputs[0];
        if (know_.as<Dense>(read) != nullptr && know_.fused[read] == value) return;
        plan_.function_name(activate->activation);
        note_angles(activate->activation.kind);
      }
      if (const auto* chain = std::get_if<Chain>(&node.operation)) note_angles(chain->activation.kind);
      if (const auto* unary = std::get_if<Unary>(&node.operation)) {
        made_.has_angles = made_.has_angles || unary->kind == UnaryKind::cosine;
      }
      if (std::holds_alternative<Constant>(node.operation) && know_.constant_only[value]) return;
      for (const std::size_t read : node.inputs) {
        if (area_[read] != Analysis::kNone) step.reads.push_back(read);
      }
      give_rows(value, know_.widths[value], know_.time(value));
    }
    made_.steps.push_back(std::move(step));
    makes_.push_back(makes);
  }

  void note_angles(ActivationKind kind) { made_.has_angles = made_.has_angles || kind == ActivationKind::sin; }

  HeaderPlan& plan_;
  const graph::Graph& graph_;
  Analysis know_;
  HeaderGraph& made_;
  Layout layout_;
  std::vector<std::size_t> area_;   // of each value
  std::vector<std::size_t> makes_;  // of each step, the value
};

}  // namespace

HeaderPlan graph_header_plan(const Model& model, const HeaderOptions& options) {
  HeaderPlan plan;
  plan.options = options;
  plan.graph.emplace();
  const graph::Graph graph = to_graph(model);
  Builder(plan, graph).run();
  share_node_functions(plan);
  for (const DenseLayer& layer : plan.mlp.layers) {
    plan.graph->has_angles = plan.graph->has_angles || layer.activation.kind == ActivationKind::sin;
  }
  return plan;
}

}  // namespace lockstep::nn::detail

// Forward: each node's direction from those of what it reads.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <type_traits>
#include <variant>

#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/detail/derivative_rules.h"

namespace lockstep::graph {
namespace {

class Forward : DerivativeBuilder {
 public:
  using DerivativeBuilder::Chains;

  Forward(const Graph& graph, const std::vector<Port>& directions) : DerivativeBuilder(graph, directions, "_dot") {}
  Forward(const Graph& graph, const std::vector<Port>& directions, Chains chains)
      : DerivativeBuilder(graph, directions, "_along", false, chains) {}

  enum class Shown { values_and_directions, directions };
  Graph run(const std::vector<std::size_t>& moved, Shown shown) {
    const std::size_t ports = graph_.inputs.size();
    dot_.assign(widths_.size(), kNone);
    for (std::size_t i = 0; i < moved.size(); ++i) dot_[moved[i]] = ports + i;
    go_through_nodes();
    if (shown == Shown::values_and_directions) show_values();
    for (Port port : graph_.outputs) {
      name_ = port.name;
      port.value = dot_or_zero(port.value);
      port.name += "_dot";
      made_.outputs.push_back(std::move(port));
    }
    return std::move(made_);
  }

  Tangent run(const std::vector<bool>& moved) {
    dot_.assign(widths_.size(), kNone);
    for (std::size_t dense = 0; const Node& node : graph_.nodes)
      dense_number_.push_back(std::holds_alternative<Dense>(node.operation) ? dense++ : kNone);
    std::size_t next = graph_.inputs.size();
    for (std::size_t port = 0; port < moved.size(); ++port) {
      if (moved[port]) dot_[port] = next++;
    }
    go_through_nodes();
    Port port = graph_.outputs[0];
    name_ = port.name;
    made_.outputs = {{port.name + "_along", dot_or_zero(port.value), port.width}};
    Tangent tangent{std::move(made_), graph_.inputs.size(), {}};
    for (std::size_t node = 0, of = 0; node < tangent.graph.nodes.size(); ++node) {
      if (!std::holds_alternative<Dense>(tangent.graph.nodes[node].operation)) continue;
      const auto moving = layers_.find(node);
      tangent.layers.push_back(moving == layers_.end() ? Tangent::Layer{of++, false}
                                                       : Tangent::Layer{moving->second, true});
    }
    return tangent;
  }

  // Along every input.
  Graph run_along_inputs() {
    directions_are_constants_ = true;
    products_are_exact_ = true;
    std::vector<std::size_t> columns;
    std::size_t height = 0;
    for (const Port& port : graph_.outputs) height += port.width;
    for (std::size_t port = 0; port < graph_.inputs.size(); ++port) {
      for (std::size_t feature = 0; feature < graph_.inputs[port].width; ++feature) {
        name_ = graph_.inputs[port].name;
        dot_.assign(widths_.size(), kNone);
        dot_[port] = unit(graph_.inputs[port].width, feature);
        go_through_nodes();
        for (const Port& made : graph_.outputs) {
          name_ = made.name;
          columns.push_back(dot_or_zero(made.value));
        }
      }
    }
    const std::size_t across = columns.size() / std::max<std::size_t>(graph_.outputs.size(), 1);
    std::vector<std::size_t> by_rows;
    for (std::size_t row = 0; row < height; ++row) {
      for (std::size_t column = 0; column < across; ++column) by_rows.push_back(column * height + row);
    }
    const std::size_t all = add(Concatenate{}, std::move(columns));
    return with_jacobian(add(Columns{std::move(by_rows)}, {all}));
  }

  std::optional<Graph> run(const std::vector<Direction>& directions, std::size_t most_weights) {
    directions_are_constants_ = true;
    std::vector<std::size_t> made;
    for (const Direction& direction : directions) {
      dot_.assign(widths_.size(), kNone);
      for (std::size_t port = 0; port < direction.size(); ++port) {
        name_ = graph_.inputs[port].name;
        if (!direction[port].empty()) dot_[port] = add(Constant{direction[port]}, {});
      }
      go_through_nodes();
      if (weights_ > most_weights) return std::nullopt;
      name_ = graph_.outputs[0].name;
      made.push_back(dot_or_zero(graph_.outputs[0].value));
    }
    const std::size_t all = add(Concatenate{}, made);
    made_.outputs = {{"directions", all, width(all)}};
    return std::move(made_);
  }

 private:
  void go_through_nodes() {
    for (std::size_t value = graph_.inputs.size(); value < widths_.size(); ++value) {
      const Inputs& read = node(value).inputs;
      const bool moved = std::ranges::any_of(read, [&](std::size_t input) { return dot_[input] != kNone; });
      if (!depends_[value] || !moved) continue;
      name_ = node(value).name;
      dot_[value] = unless_zero(direction(value));
    }
  }
  std::size_t unless_zero(std::size_t made) const {
    const std::vector<double>* given = made_constants(made);
    return given != nullptr && std::ranges::all_of(*given, [](double x) { return x == 0; }) ? kNone : made;
  }

  using Inputs = std::vector<std::size_t>;
  using DerivativeBuilder::product;

  std::size_t dot_or_zero(std::size_t value) { return dot_[value] == kNone ? zeros(widths_[value]) : dot_[value]; }

  std::size_t direction(std::size_t value) {
    const Inputs& read = node(value).inputs;
    if (const auto through = through_elements(value, dot_[read[0]])) return *through;
    return std::visit([&](const auto& operation) { return of(value, read, operation); }, node(value).operation);
  }

  std::size_t of(std::size_t value, const Inputs& read, const Dense& dense) {
    if (directions_are_constants_) {
      const std::vector<double>* given = made_constants(dot_[read[0]]);
      if (given != nullptr && (!products_are_exact_ || is_unit(*given))) return product(dense, *given);
      weights_ += dense.weights.size();
      return add(without_bias(dense), {dot_[read[0]]});
    }
    if (!dense_number_.empty()) layers_[made_.nodes.size()] = dense_number_[value - graph_.inputs.size()];
    return add(without_bias(dense), {dot_[read[0]]});
  }
  std::size_t of(std::size_t, const Inputs& read, const Concatenate&) {
    Inputs parts;
    for (const std::size_t part : read) parts.push_back(dot_or_zero(part));
    if (!directions_are_constants_) return add(Concatenate{}, parts);
    std::vector<double> together;
    for (const std::size_t part : parts) {
      const std::vector<double>* given = made_constants(part);
      if (given == nullptr) return add(Concatenate{}, parts);
      together.insert(together.end(), given->begin(), given->end());
    }
    return add(Constant{std::move(together)}, {});
  }
  std::size_t of(std::size_t, const Inputs& read, const Columns& columns) {
    const std::vector<double>* given = made_constants(dot_[read[0]]);
    if (given == nullptr) return add(columns, {dot_[read[0]]});
    std::vector<double> chosen;
    for (const std::size_t index : columns.indices) chosen.push_back((*given)[index]);
    return add(Constant{std::move(chosen)}, {});
  }
  std::size_t of(std::size_t, const Inputs& read, const Choose& choose) {
    return add(choose, {dot_or_zero(read[0]), dot_or_zero(read[1])});
  }
  std::size_t of(std::size_t, const Inputs& read, const Select&) {
    const std::size_t yes = dot_or_zero(read[1]), no = dot_or_zero(read[2]);
    return where(number_[read[0]], yes, no);
  }
  std::size_t of(std::size_t value, const Inputs& read, const Softmax& softmax) {
    const std::size_t t = dot_[read[0]], y = number_[value];
    if (softmax.kind == SoftmaxKind::plain) {
      return product(y, difference(t, reduce(ReduceKind::sum, product(y, t))));
    }
    return difference(t, reduce(ReduceKind::sum, product(unary(UnaryKind::exp, y), t)));
  }
  std::size_t of(std::size_t value, const Inputs& read, const Reduce& reduction) {
    const std::size_t t = dot_[read[0]];
    if (reduction.kind == ReduceKind::sum || reduction.kind == ReduceKind::mean) return reduce(reduction.kind, t);
    return reduce(ReduceKind::sum, product(shares(number_[read[0]], number_[value]), t));
  }
  std::size_t of(std::size_t value, const Inputs& read, const Interpolate& table) {
    return product(slopes(value, table), dot_[read[0]]);
  }
  std::size_t of(std::size_t, const Inputs& read, const LayerNormalise& normalise) {
    const std::size_t t = through_normalisation(normalise, number_[read[0]], dot_[read[0]]);
    return product(t, add(Constant{normalise.scale}, {}));
  }

  std::size_t of(std::size_t value, const Inputs& read, const Binary& operation) {
    const std::size_t a = number_[read[0]], b = number_[read[1]], y = number_[value];
    const std::size_t a_dot = dot_[read[0]], b_dot = dot_[read[1]];
    // The terms of the two directions, where there are any, added up; the result has the width of y.
    const auto terms = [&](auto first, auto second) {
      std::size_t total = kNone;
      if (a_dot != kNone) total = first(a_dot);
      if (b_dot != kNone) total = total == kNone ? second(b_dot) : sum(total, second(b_dot));
      return width(total) == width(y) ? total : add(Columns{Inputs(width(y), 0)}, {total});
    };
    switch (operation.kind) {
      case BinaryKind::add:
        return terms([](std::size_t t) { return t; }, [](std::size_t t) { return t; });
      case BinaryKind::subtract:
        return terms([](std::size_t t) { return t; }, [&](std::size_t t) { return unary(UnaryKind::negate, t); });
      case BinaryKind::multiply:
        return terms([&](std::size_t t) { return product(t, b); }, [&](std::size_t t) { return product(a, t); });
      case BinaryKind::divide:
        return terms([&](std::size_t t) { return quotient(t, b); },
                     [&](std::size_t t) { return unary(UnaryKind::negate, quotient(product(y, t), b)); });
      case BinaryKind::minimum:
        return where(binary(BinaryKind::less_or_equal, a, b), dot_or_zero(read[0]), dot_or_zero(read[1]));
      case BinaryKind::maximum:
        return where(binary(BinaryKind::less_or_equal, b, a), dot_or_zero(read[0]), dot_or_zero(read[1]));
      case BinaryKind::power:
        return terms([&](std::size_t t) { return product(t, power_by_base(value)); },
                     [&](std::size_t t) { return product(t, power_by_exponent(value)); });
      case BinaryKind::modulo:
        return terms([](std::size_t t) { return t; },
                     [&](std::size_t t) { return product(t, modulo_by_divisor(value)); });
      case BinaryKind::less:
      case BinaryKind::less_or_equal:
      case BinaryKind::equal:
        break;
    }
    return zeros(width(y));
  }

  static Dense without_bias(const Dense& dense) {
    return {dense.inputs, dense.outputs, dense.weights, std::vector<double>(dense.outputs)};
  }

  // Taken by through_elements(), or without a direction.
  template <class Op>
  std::size_t of(std::size_t value, const Inputs&, const Op&) {
    return zeros(widths_[value]);
  }

  std::vector<std::size_t> dot_;  // of each value, kNone where it is zero
  bool directions_are_constants_ = false;
  bool products_are_exact_ = false;  // only those are multiplied out here: what they are rounded to is the plan's
  std::size_t weights_ = 0;                    // of dense nodes that directions move, where those are constants
  // Of a tangent: [node], which dense node it is, and of each node made that moves a dense node which one that is.
  std::vector<std::size_t> dense_number_;
  std::map<std::size_t, std::size_t> layers_;
};

}  // namespace

Graph jvp_graph(const Graph& graph) {
  std::vector<std::size_t> all(graph.inputs.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return Forward(graph, graph.inputs).run(all, Forward::Shown::values_and_directions);
}
Graph jvp_graph(const Graph& graph, const std::vector<std::size_t>& moved) {
  std::vector<Port> ports;
  for (const std::size_t port : moved) ports.push_back(graph.inputs[port]);
  return Forward(graph, ports).run(moved, Forward::Shown::directions);
}
Graph jacobian_along_inputs(const Graph& graph) { return Forward(graph, {}).run_along_inputs(); }
std::optional<Graph> jvp_graph(const Graph& graph, const std::vector<Direction>& directions, std::size_t most_weights) {
  return Forward(graph, {}).run(directions, most_weights);
}
Tangent tangent_graph(const Graph& graph, const std::vector<bool>& moved) {
  std::vector<Port> directions;
  for (std::size_t port = 0; port < graph.inputs.size(); ++port) {
    if (moved[port]) directions.push_back(graph.inputs[port]);
  }
  return Forward(graph, directions, Forward::Chains::operations).run(moved);
}

}  // namespace lockstep::graph

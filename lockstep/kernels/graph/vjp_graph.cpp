// Reverse: the cotangents of what a node reads from its own, the last node first.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>
#include <variant>

#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/detail/derivative_rules.h"

namespace lockstep::graph {
namespace {

class Reverse : DerivativeBuilder {
 public:
  Reverse(const Graph& graph, bool of_layers)
      : DerivativeBuilder(graph, graph.outputs, "_bar", of_layers), of_layers_(of_layers) {}
  // Without ports of cotangents.
  explicit Reverse(const Graph& graph) : DerivativeBuilder(graph, {}, "_bar"), of_layers_(false) {}

  // After run(), of a dense node's value: the node that sends its cotangent back, kNone where there is none.
  std::size_t transpose_of(std::size_t value) const { return transposes_[value]; }

  Graph run() {
    const std::size_t ports = graph_.inputs.size();
    transposes_.assign(widths_.size(), kNone);
    forget();
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) receive(graph_.outputs[i].value, ports + i);
    go_back_through_nodes();
    show_values();
    for (Port port : graph_.inputs) {
      name_ = port.name;
      port.value = bar_or_zero(port.value);
      port.name += "_bar";
      made_.outputs.push_back(std::move(port));
    }
    for (std::size_t value = ports; of_layers_ && value < widths_.size(); ++value) {
      if (std::holds_alternative<Dense>(node(value).operation)) show_layer(value);
    }
    return std::move(made_);
  }

  // From every output.
  Graph run_from_outputs() {
    cotangents_are_constants_ = true;
    transposes_.assign(widths_.size(), kNone);
    Inputs parts;
    for (const Port& port : graph_.outputs) {
      for (std::size_t feature = 0; feature < port.width; ++feature) {
        name_ = port.name;
        forget();
        receive(port.value, unit(port.width, feature));
        go_back_through_nodes();
        for (const Port& read : graph_.inputs) {
          name_ = read.name;
          parts.push_back(bar_or_zero(read.value));
        }
      }
    }
    return with_jacobian(add(Concatenate{}, std::move(parts)));
  }

 private:
  void forget() {
    bar_.assign(widths_.size(), kNone);
    selected_.assign(widths_.size(), {});
  }
  void go_back_through_nodes() {
    for (std::size_t value = widths_.size(); value-- > graph_.inputs.size();) {
      if (!depends_[value]) continue;
      name_ = node(value).name;
      if (has_bar(value)) hand_on(value);
    }
  }
  std::size_t bar_or_zero(std::size_t value) {
    if (!has_bar(value)) bar_[value] = zeros(widths_[value]);
    return bar_[value];
  }

  void show_layer(std::size_t value) {
    name_ = node(value).name;
    const std::size_t read = node(value).inputs[0];
    made_.outputs.push_back({name_ + "_read", number_[read], widths_[read]});
    made_.outputs.push_back({name_ + "_bar", bar_or_zero(value), widths_[value]});
  }

  using Inputs = std::vector<std::size_t>;

  bool wants(std::size_t value) const { return depends_[value]; }

  // Another term of a value's cotangent; one of more features than the value has met each of them.
  void receive(std::size_t value, std::size_t term) {
    if (!wants(value)) return;
    if (width(term) != widths_[value]) term = reduce(ReduceKind::sum, term);
    bar_[value] = has_bar(value) ? sum(bar_[value], term) : term;
  }

  // Whether anything asked for a value's cotangent, which bar_ then holds.
  bool has_bar(std::size_t value) {
    if (!selected_[value].empty()) bar_[value] = gathered(value, std::exchange(selected_[value], {}));
    return bar_[value] != kNone;
  }

  // The cotangents of features that were selected, node by node, back at their places. All at once: what each node adds
  // to a vector of its own would take the square of the features where each is read by itself. A feature's sum goes
  // through the nodes in their order, after what the value has received as a whole.
  struct Selected {
    const Inputs* indices;
    std::size_t bar;
  };
  std::size_t gathered(std::size_t value, const std::vector<Selected>& selected) {
    const std::size_t wide = widths_[value];
    Inputs parts;
    std::vector<Inputs> terms(wide);  // of each feature: where among the parts
    std::size_t width = 0;
    if (bar_[value] != kNone) {
      parts.push_back(bar_[value]);
      for (; width < wide; ++width) terms[width].push_back(width);
    }
    for (const auto& [indices, bar] : selected) {
      parts.push_back(bar);
      for (const std::size_t feature : *indices) terms[feature].push_back(width++);
    }
    parts.push_back(constant(0));
    return sums_of(add(Concatenate{}, std::move(parts)), terms, width);
  }

  // [feature], the sum of these features of `all`, of which number `zero` is 0. Features of the most terms come first
  // on the way, so that each round of sums is over those that have another term.
  std::size_t sums_of(std::size_t all, const std::vector<Inputs>& terms, std::size_t zero) {
    Inputs order(terms.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t feature) { return terms[feature].size(); });
    const std::size_t rounds = terms[order[0]].size();
    if (rounds == 1) {
      Inputs only;
      for (const Inputs& of : terms) only.push_back(of.empty() ? zero : of[0]);
      return add(Columns{std::move(only)}, {all});
    }
    const auto round = [&](std::size_t number) {
      Inputs indices;
      for (const std::size_t feature : order) {
        if (terms[feature].size() > number) indices.push_back(terms[feature][number]);
      }
      return add(Columns{std::move(indices)}, {all});
    };
    std::size_t sums = round(0);
    Inputs finished{constant(0)};  // the last ones first
    for (std::size_t number = 1; number < rounds; ++number) {
      const std::size_t more = round(number), going_on = width(more), before = width(sums);
      if (going_on < before) {
        finished.push_back(range_of(sums, going_on, before));
        sums = range_of(sums, 0, going_on);
      }
      sums = sum(sums, more);
    }
    finished.push_back(sums);
    std::ranges::reverse(finished);
    Inputs places(terms.size());
    std::size_t summed = 0;
    for (const std::size_t feature : order) summed += !terms[feature].empty();
    for (std::size_t i = 0; i < order.size(); ++i) places[order[i]] = std::min(i, summed);
    return add(Columns{std::move(places)}, {add(Concatenate{}, std::move(finished))});
  }
  std::size_t range_of(std::size_t of, std::size_t begin, std::size_t end) {
    Inputs indices(end - begin);
    std::iota(indices.begin(), indices.end(), begin);
    return add(Columns{std::move(indices)}, {of});
  }

  void hand_on(std::size_t value) {
    const Inputs& read = node(value).inputs;
    if (const auto through = through_elements(value, bar_[value])) return receive(read[0], *through);
    std::visit([&](const auto& operation) { of(value, bar_[value], read, operation); }, node(value).operation);
  }

  void of(std::size_t value, std::size_t bar, const Inputs& read, const Dense& dense) {
    if (!wants(read[0])) return;
    Dense transposed{dense.outputs, dense.inputs, std::vector<double>(dense.weights.size()),
                     std::vector<double>(dense.inputs)};
    for (std::size_t j = 0; j < dense.outputs; ++j) {
      for (std::size_t k = 0; k < dense.inputs; ++k) {
        transposed.weights[k * dense.outputs + j] = dense.weights[j * dense.inputs + k];
      }
    }
    const std::vector<double>* const given = cotangents_are_constants_ ? made_constants(bar) : nullptr;
    if (given != nullptr && is_unit(*given)) return receive(read[0], product(transposed, *given));
    const std::size_t sent = add(std::move(transposed), {bar});
    transposes_[value] = made_.nodes.size() - 1;
    receive(read[0], sent);
  }
  void of(std::size_t, std::size_t bar, const Inputs& read, const Concatenate&) {
    std::size_t offset = 0;
    for (const std::size_t part : read) {
      if (wants(part)) receive(part, range_of(bar, offset, offset + widths_[part]));
      offset += widths_[part];
    }
  }
  void of(std::size_t, std::size_t bar, const Inputs& read, const Columns& columns) {
    if (widths_[read[0]] == 1) {
      return receive(read[0], columns.indices.size() == 1 ? bar : reduce(ReduceKind::sum, bar));
    }
    if (wants(read[0])) selected_[read[0]].push_back({&columns.indices, bar});
  }
  void of(std::size_t, std::size_t bar, const Inputs& read, const Choose& choose) {
    const std::size_t zero = zeros(width(bar));
    if (wants(read[0])) receive(read[0], add(choose, {bar, zero}));
    if (wants(read[1])) receive(read[1], add(choose, {zero, bar}));
  }
  void of(std::size_t, std::size_t bar, const Inputs& read, const Select&) {
    const std::size_t zero = constant(0), condition = number_[read[0]];
    if (wants(read[1])) receive(read[1], where(condition, bar, zero));
    if (wants(read[2])) receive(read[2], where(condition, zero, bar));
  }
  void of(std::size_t value, std::size_t bar, const Inputs& read, const Softmax& softmax) {
    const std::size_t y = number_[value];
    if (softmax.kind == SoftmaxKind::plain) {
      return receive(read[0], product(y, difference(bar, reduce(ReduceKind::sum, product(y, bar)))));
    }
    receive(read[0], difference(bar, product(unary(UnaryKind::exp, y), reduce(ReduceKind::sum, bar))));
  }
  void of(std::size_t value, std::size_t bar, const Inputs& read, const Reduce& reduction) {
    const std::size_t wide = widths_[read[0]];
    if (reduction.kind == ReduceKind::mean) bar = quotient(bar, constant(static_cast<double>(wide)));
    if (reduction.kind == ReduceKind::sum || reduction.kind == ReduceKind::mean) {
      return receive(read[0], wide == 1 ? bar : add(Columns{Inputs(wide, 0)}, {bar}));
    }
    receive(read[0], product(shares(number_[read[0]], number_[value]), bar));
  }
  void of(std::size_t value, std::size_t bar, const Inputs& read, const Interpolate& table) {
    if (wants(read[0])) receive(read[0], product(bar, slopes(value, table)));
  }
  void of(std::size_t, std::size_t bar, const Inputs& read, const LayerNormalise& normalise) {
    receive(read[0],
            through_normalisation(normalise, number_[read[0]], product(bar, add(Constant{normalise.scale}, {}))));
  }

  void of(std::size_t value, std::size_t bar, const Inputs& read, const Binary& operation) {
    const std::size_t a = number_[read[0]], b = number_[read[1]], y = number_[value];
    const bool first = wants(read[0]), second = wants(read[1]);
    const auto by_order = [&](std::size_t condition) {
      const std::size_t zero = constant(0);
      if (first) receive(read[0], where(condition, bar, zero));
      if (second) receive(read[1], where(condition, zero, bar));
    };
    switch (operation.kind) {
      case BinaryKind::add:
        receive(read[0], bar);
        receive(read[1], bar);
        return;
      case BinaryKind::subtract:
        receive(read[0], bar);
        if (second) receive(read[1], unary(UnaryKind::negate, bar));
        return;
      case BinaryKind::multiply:
        if (first) receive(read[0], product(bar, b));
        if (second) receive(read[1], product(bar, a));
        return;
      case BinaryKind::divide:
        if (first) receive(read[0], quotient(bar, b));
        if (second) receive(read[1], unary(UnaryKind::negate, quotient(product(y, bar), b)));
        return;
      case BinaryKind::minimum:
        return by_order(binary(BinaryKind::less_or_equal, a, b));
      case BinaryKind::maximum:
        return by_order(binary(BinaryKind::less_or_equal, b, a));
      case BinaryKind::power:
        if (first) receive(read[0], product(bar, power_by_base(value)));
        if (second) receive(read[1], product(bar, power_by_exponent(value)));
        return;
      case BinaryKind::modulo:
        receive(read[0], bar);
        if (second) receive(read[1], product(bar, modulo_by_divisor(value)));
        return;
      case BinaryKind::less:
      case BinaryKind::less_or_equal:
      case BinaryKind::equal:
        return;
    }
  }

  // Taken by through_elements(), or without a cotangent.
  template <class Op>
  void of(std::size_t, std::size_t, const Inputs&, const Op&) {}

  bool of_layers_;
  bool cotangents_are_constants_ = false;
  std::vector<std::size_t> bar_;         // of each value, kNone where nothing asked for it
  std::vector<std::vector<Selected>> selected_;  // of each value, not in bar_ yet
  std::vector<std::size_t> transposes_;  // of each value
};

}  // namespace

Graph vjp_graph(const Graph& graph) { return Reverse(graph, false).run(); }
Graph jacobian_from_outputs(const Graph& graph) { return Reverse(graph).run_from_outputs(); }
Graph jacobian_graph(const Graph& graph) {
  std::size_t inputs = 0, outputs = 0, weights = 0;
  for (const Port& port : graph.inputs) inputs += port.width;
  for (const Port& port : graph.outputs) outputs += port.width;
  for (const Node& node : graph.nodes) {
    if (const auto* dense = std::get_if<Dense>(&node.operation)) weights += dense->weights.size();
  }
  const std::size_t products = std::min(inputs, outputs);
  const auto require_few = [products](std::size_t count, const char* of, std::size_t most) {
    if (count * products <= most) return;
    throw Error(ErrorKind::unsupported,
                {"jacobian", std::to_string(products) + " products of " + std::to_string(count) + " " + of,
                 std::to_string(most) + " in all", "multiply with it instead: jvp or vjp"});
  };
  require_few(weights, "weights", kMostJacobianWeights);
  require_few(graph.nodes.size(), "operations", kMostJacobianNodes);
  return inputs <= outputs ? jacobian_along_inputs(graph) : jacobian_from_outputs(graph);
}
LayerVjp layer_vjp_graph(const Graph& graph) {
  Reverse reverse(graph, true);
  LayerVjp made{reverse.run(), {}};
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    if (std::holds_alternative<Dense>(graph.nodes[node].operation)) {
      made.transposes.push_back(reverse.transpose_of(graph.inputs.size() + node));
    }
  }
  return made;
}

}  // namespace lockstep::graph

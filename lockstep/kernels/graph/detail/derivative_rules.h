// What forward and reverse derivatives of graphs share: a graph that grows by the nodes that derivatives need, and the
// operations whose Jacobian is diagonal or symmetric, which both directions go through alike.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/kernels/graph/graph.h"

namespace lockstep::graph {

// The two ways of jacobian_graph().
Graph jacobian_along_inputs(const Graph& graph);
Graph jacobian_from_outputs(const Graph& graph);

class DerivativeBuilder {
 protected:
  static constexpr std::size_t kNone = ~std::size_t(0);

  // What derivatives of activations are made of: one node each, or operations that have derivatives themselves.
  enum class Chains { one_node, operations };

  // `extra`: the ports of directions or cotangents, which follow the graph's own.
  // With `of_layers` what a dense node makes counts as depending on the inputs always: its weights may change it.
  DerivativeBuilder(const Graph& graph, const std::vector<Port>& extra, const std::string& ending,
                    bool of_layers = false, Chains chains = Chains::one_node)
      : graph_(graph), chains_(chains), widths_(graph.widths()) {
    made_.inputs = graph.inputs;
    for (Port port : extra) {
      port.name += ending;
      port.value = made_.inputs.size();
      made_.inputs.push_back(std::move(port));
    }
    for (const Port& port : made_.inputs) made_widths_.push_back(port.width);
    depends_.assign(widths_.size(), true);
    for (std::size_t value = 0; value < widths_.size(); ++value) {
      if (value < graph.inputs.size()) {
        number_.push_back(value);
        continue;
      }
      Node node = this->node(value);
      if (std::holds_alternative<Chain>(node.operation)) {
        throw Error(ErrorKind::unsupported, {node.name, "a node that is a derivative already", "a net's own operations",
                                             "second derivatives are those of tangent_graph()"});
      }
      const auto* binary = std::get_if<Binary>(&node.operation);
      const auto* unary = std::get_if<Unary>(&node.operation);
      const bool stepped =
          (binary != nullptr && is_comparison(binary->kind)) || (unary != nullptr && is_in_steps(unary->kind));
      depends_[value] = of_layers && std::holds_alternative<Dense>(node.operation);
      for (std::size_t& input : node.inputs) {
        depends_[value] = depends_[value] || (!stepped && depends_[input]);
        input = number_[input];
      }
      made_.nodes.push_back(std::move(node));
      made_widths_.push_back(widths_[value]);
      number_.push_back(made_.inputs.size() + made_.nodes.size() - 1);
    }
  }

  const Node& node(std::size_t value) const { return graph_.nodes[value - graph_.inputs.size()]; }
  const std::vector<double>* constants(std::size_t value) const { return constants_in(graph_, value); }

  // ---- nodes made; all numbers below are of the new graph

  const std::vector<double>* made_constants(std::size_t made) const { return constants_in(made_, made); }
  std::size_t add(Operation operation, std::vector<std::size_t> inputs) {
    std::vector<std::size_t> read;
    for (const std::size_t input : inputs) read.push_back(made_widths_[input]);
    const std::string name = name_ + "'" + std::to_string(made_.nodes.size());
    const auto* dense = std::get_if<Dense>(&operation);  // of numbers that were checked before
    made_widths_.push_back(dense ? dense->outputs : output_width(operation, read, name));
    made_.nodes.push_back({name, std::move(operation), std::move(inputs)});
    return made_widths_.size() - 1;
  }
  std::size_t constant(double number) { return add(Constant{{number}}, {}); }
  std::size_t zeros(std::size_t width) { return add(Constant{std::vector<double>(width)}, {}); }
  std::size_t unit(std::size_t width, std::size_t feature) {
    std::vector<double> numbers(width);
    numbers[feature] = 1;
    return add(Constant{std::move(numbers)}, {});
  }
  static bool is_unit(const std::vector<double>& numbers) {
    const auto zeros = std::ranges::count(numbers, 0.0), ones = std::ranges::count(numbers, 1.0);
    return ones == 1 && zeros + 1 == std::ssize(numbers);
  }
  std::size_t binary(BinaryKind kind, std::size_t a, std::size_t b) { return add(Binary{kind}, {a, b}); }
  std::size_t sum(std::size_t a, std::size_t b) { return binary(BinaryKind::add, a, b); }
  std::size_t difference(std::size_t a, std::size_t b) { return binary(BinaryKind::subtract, a, b); }
  std::size_t product(std::size_t a, std::size_t b) {
    if (is_one_beside(a, b)) return b;
    if (is_one_beside(b, a)) return a;
    return binary(BinaryKind::multiply, a, b);
  }
  // Whether `one` is 1 at every feature and makes `other` no wider.
  bool is_one_beside(std::size_t one, std::size_t other) const {
    const std::vector<double>* given = made_constants(one);
    return given != nullptr && width(one) <= width(other) &&
           std::ranges::all_of(*given, [](double x) { return x == 1; });
  }
  std::size_t product(const Dense& dense, const std::vector<double>& x) {
    std::vector<double> made(dense.outputs);
    for (std::size_t j = 0; j < dense.outputs; ++j) {
      for (std::size_t k = 0; k < dense.inputs; ++k)
        made[j] = std::fma(dense.weights[j * dense.inputs + k], x[k], made[j]);
    }
    return add(Constant{std::move(made)}, {});
  }
  std::size_t quotient(std::size_t a, std::size_t b) { return binary(BinaryKind::divide, a, b); }
  std::size_t unary(UnaryKind kind, std::size_t a) { return add(Unary{kind}, {a}); }
  std::size_t reduce(ReduceKind kind, std::size_t a) { return add(Reduce{kind}, {a}); }
  std::size_t where(std::size_t condition, std::size_t yes, std::size_t no) {
    return add(Select{}, {condition, yes, no});
  }
  std::size_t width(std::size_t made) const { return made_widths_[made]; }
  // Output ports of the graph made, after those that it has.
  void show_values() {
    for (Port port : graph_.outputs) {
      port.value = number_[port.value];
      made_.outputs.push_back(std::move(port));
    }
  }
  Graph with_jacobian(std::size_t made) {
    show_values();
    made_.outputs.push_back({"jacobian", made, width(made)});
    return std::move(made_);
  }

  // t times the derivative of an operation that takes each feature by itself; nothing for other operations.
  std::optional<std::size_t> through_elements(std::size_t value, std::size_t t) {
    const Node& node = this->node(value);
    if (node.inputs.empty()) return {};
    const std::size_t x = number_[node.inputs[0]], y = number_[value];
    if (const auto* activate = std::get_if<Activate>(&node.operation)) {
      const ActivationKind kind = activate->activation.kind;
      if (kind == ActivationKind::identity) return t;
      if (chains_ == Chains::operations) return through_activation(activate->activation, x, y, t);
      return add(Chain{activate->activation}, {t, chain_reads_value(kind) ? y : x});
    }
    if (const auto* standardise = std::get_if<Standardise>(&node.operation)) {
      return add(Standardise{std::vector<double>(widths_[value]), standardise->scale}, {t});
    }
    if (const auto* rescale = std::get_if<Rescale>(&node.operation)) {
      return product(t, add(Constant{rescale->scale}, {}));
    }
    if (const auto* clip = std::get_if<Clip>(&node.operation)) {
      return through_clip(*clip, x, t);
    }
    if (const auto* zone = std::get_if<DeadZone>(&node.operation)) {
      std::optional<std::size_t> outside;
      if (std::isfinite(zone->upper)) outside = binary(BinaryKind::less, constant(zone->upper), x);
      if (std::isfinite(zone->lower)) {
        const std::size_t below = binary(BinaryKind::less, x, constant(zone->lower));
        outside = outside ? sum(*outside, below) : below;
      }
      return outside ? where(*outside, t, constant(0)) : zeros(widths_[value]);
    }
    if (const auto* unary = std::get_if<Unary>(&node.operation)) return through_unary(unary->kind, x, y, t);
    return {};
  }

  std::size_t through_clip(const Clip& clip, std::size_t x, std::size_t t) {
    const std::size_t zero = constant(0);
    if (std::isfinite(clip.minimum)) {
      t = where(binary(BinaryKind::less_or_equal, constant(clip.minimum), x), t, zero);
    }
    if (std::isfinite(clip.maximum)) {
      t = where(binary(BinaryKind::less_or_equal, x, constant(clip.maximum)), t, zero);
    }
    return t;
  }

  std::size_t through_unary(UnaryKind kind, std::size_t x, std::size_t y, std::size_t t) {
    switch (kind) {
      case UnaryKind::square_root:
        return quotient(t, sum(y, y));
      case UnaryKind::exp:
        return product(t, y);
      case UnaryKind::log:
        return quotient(t, x);
      case UnaryKind::absolute: {
        const std::size_t zero = constant(0);
        return product(t, difference(binary(BinaryKind::less, zero, x), binary(BinaryKind::less, x, zero)));
      }
      case UnaryKind::negate:
        return unary(UnaryKind::negate, t);
      case UnaryKind::reciprocal:
        return unary(UnaryKind::negate, product(t, product(y, y)));
      case UnaryKind::erf: {  // 2/sqrt(pi) e^(-x^2)
        const std::size_t bell = unary(UnaryKind::exp, unary(UnaryKind::negate, product(x, x)));
        return product(t, product(constant(1.1283791670955126), bell));
      }
      case UnaryKind::floor:
      case UnaryKind::round:
        return zeros(width(t));
      case UnaryKind::arctangent:
        return quotient(t, sum(product(x, x), constant(1)));
      case UnaryKind::cosine:
        break;
    }
    return unary(UnaryKind::negate, product(t, add(Activate{{ActivationKind::sin, 0}}, {x})));
  }

  std::size_t activated(ActivationKind kind, std::size_t x) { return add(Activate{{kind, 0}}, {x}); }
  std::size_t one_less(std::size_t a) { return difference(constant(1), a); }

  // t f'(x) for y = f(x), with the derivatives at kinks that Chain has.
  std::size_t through_activation(const Activation& activation, std::size_t x, std::size_t y, std::size_t t) {
    const auto below = [&](double bound) { return binary(BinaryKind::less, x, constant(bound)); };
    const auto times = [&](std::size_t a, double factor) { return product(a, constant(factor)); };
    switch (activation.kind) {
      case ActivationKind::relu:
        return where(binary(BinaryKind::less, constant(0), x), t, constant(0));
      case ActivationKind::leaky_relu:
        return where(below(0), times(t, activation.alpha), t);
      case ActivationKind::elu:  // alpha e^x = y + alpha
        return where(below(0), product(t, sum(y, constant(activation.alpha))), t);
      case ActivationKind::selu: {  // of scale * elu, Klambauer et al. 2017
        constexpr double kScale = 1.0507009873554805, kAlpha = 1.6732632423543772;
        return where(below(0), product(t, sum(y, constant(kScale * kAlpha))), times(t, kScale));
      }
      case ActivationKind::celu:  // e^(x/alpha) = y/alpha + 1
        return where(below(0), product(t, sum(quotient(y, constant(activation.alpha)), constant(1))), t);
      case ActivationKind::gelu: {  // Phi(x) + x phi(x)
        const std::size_t erf = unary(UnaryKind::erf, times(x, 0.70710678118654752));
        const std::size_t bell = unary(UnaryKind::exp, times(product(x, x), -0.5));
        return product(t, sum(times(sum(erf, constant(1)), 0.5), times(product(x, bell), 0.39894228040143268)));
      }
      case ActivationKind::gelu_tanh: {  // of x (1 + tanh(a(x))) / 2, a(x) = sqrt(2/pi) (x + 0.044715 x^3)
        constexpr double kRoot = 0.79788456080286536, kCubic = 0.044715;
        const std::size_t square = product(x, x);
        const std::size_t argument = times(product(x, sum(times(square, kCubic), constant(1))), kRoot);
        const std::size_t tanh = activated(ActivationKind::tanh, argument);
        const std::size_t inner = times(sum(times(square, 3 * kCubic), constant(1)), kRoot);
        const std::size_t slope = product(product(x, inner), one_less(product(tanh, tanh)));
        return times(product(t, sum(sum(tanh, constant(1)), slope)), 0.5);
      }
      case ActivationKind::silu: {
        const std::size_t s = activated(ActivationKind::sigmoid, x);
        return product(t, sum(s, product(y, one_less(s))));
      }
      case ActivationKind::mish: {
        const std::size_t w = activated(ActivationKind::tanh, activated(ActivationKind::softplus, x));
        const std::size_t s = activated(ActivationKind::sigmoid, x);
        return product(t, sum(w, product(product(x, s), one_less(product(w, w)))));
      }
      case ActivationKind::softplus:
        return product(t, activated(ActivationKind::sigmoid, x));
      case ActivationKind::softsign: {
        const std::size_t r = unary(UnaryKind::reciprocal, sum(unary(UnaryKind::absolute, x), constant(1)));
        return product(t, product(r, r));
      }
      case ActivationKind::sigmoid:
        return product(t, product(y, one_less(y)));
      case ActivationKind::hard_sigmoid:
        return where(binary(BinaryKind::less, unary(UnaryKind::absolute, x), constant(3)), times(t, 1.0 / 6),
                     constant(0));
      case ActivationKind::hard_swish: {  // between -3 and 3 of x (x + 3) / 6
        const std::size_t middle = times(product(t, sum(sum(x, x), constant(3))), 1.0 / 6);
        const std::size_t low = binary(BinaryKind::less_or_equal, x, constant(-3));
        return where(low, constant(0), where(below(3), middle, t));
      }
      case ActivationKind::tanh:
        return product(t, one_less(product(y, y)));
      case ActivationKind::sin:
        return product(t, unary(UnaryKind::cosine, x));
      case ActivationKind::square:
        return product(t, sum(x, x));
      case ActivationKind::identity:
        break;
    }
    return t;
  }

  // The derivative of each feature that a table makes by the number it is read at: 0 before the first knot, as behind
  // the last.
  std::size_t slopes(std::size_t value, const Interpolate& table) {
    const std::size_t knots = table.knots.size(), powers = table.powers();
    if (powers == 1) return zeros(table.outputs);
    Interpolate made{table.knots, table.outputs, {}};
    for (std::size_t row = 0; row < table.outputs * powers; ++row) {
      const std::size_t power = powers - 1 - row % powers;
      if (power == 0) continue;
      for (std::size_t i = 0; i < knots; ++i) {
        const bool last = i + 1 == knots;
        made.coefficients.push_back(last ? 0 : static_cast<double>(power) * table.coefficients[row * knots + i]);
      }
    }
    const std::size_t x = number_[node(value).inputs[0]];
    const std::size_t inside = binary(BinaryKind::less_or_equal, constant(table.knots.front()), x);
    return where(inside, add(std::move(made), {x}), constant(0));
  }

  // Layer normalisation but for its scale, whose Jacobian is symmetric: r (t - mean(t) - n mean(n t)), n = (x - mean)
  // r.
  std::size_t through_normalisation(const LayerNormalise& normalise, std::size_t x, std::size_t t) {
    const std::size_t near = difference(x, add(Columns{{0}}, {x}));  // as the operation itself
    const std::size_t d = difference(near, reduce(ReduceKind::mean, near));
    const std::size_t variance = reduce(ReduceKind::mean, product(d, d));
    const std::size_t r =
        unary(UnaryKind::reciprocal, unary(UnaryKind::square_root, sum(variance, constant(normalise.epsilon))));
    const std::size_t n = product(d, r);
    const std::size_t along = product(n, reduce(ReduceKind::mean, product(n, t)));
    return product(difference(difference(t, reduce(ReduceKind::mean, t)), along), r);
  }

  // The share of each feature in a minimum or maximum: 1, or as much less as there are equals.
  std::size_t shares(std::size_t x, std::size_t extreme) {
    const std::size_t equal = binary(BinaryKind::equal, x, extreme);
    return quotient(equal, reduce(ReduceKind::sum, equal));
  }

  // d(a mod b)/db, -floor(a/b).
  std::size_t modulo_by_divisor(std::size_t value) {
    const std::size_t a = number_[node(value).inputs[0]], b = number_[node(value).inputs[1]];
    return unary(UnaryKind::negate, unary(UnaryKind::floor, quotient(a, b)));
  }

  // d(a^b)/da and, where b is no constant, d(a^b)/db.
  std::size_t power_by_base(std::size_t value) {
    const std::size_t a = number_[node(value).inputs[0]], b = number_[node(value).inputs[1]];
    if (const std::vector<double>* given = constants(node(value).inputs[1])) {
      std::vector<double> less = *given;
      bool square = true;
      for (double& exponent : less) {
        square = square && exponent == 2;
        exponent = exponent == 0 ? 0 : exponent - 1;
      }
      if (square) return sum(a, a);
      return product(b, binary(BinaryKind::power, a, add(Constant{less}, {})));
    }
    // b a^0 where b is 0, as for constants: 0 a^-1 were NaN at 0, where the function is 1 on either side.
    const std::size_t zero = constant(0);
    const std::size_t less = where(binary(BinaryKind::equal, b, zero), zero, difference(b, constant(1)));
    return product(b, binary(BinaryKind::power, a, less));
  }
  std::size_t power_by_exponent(std::size_t value) {
    const std::size_t a = number_[node(value).inputs[0]];
    const std::size_t zero = constant(0);
    return where(binary(BinaryKind::equal, a, zero), zero, product(number_[value], unary(UnaryKind::log, a)));
  }

  // The numbers that a value is, whatever the sample; null where it is none such.
  static const std::vector<double>* constants_in(const Graph& graph, std::size_t value) {
    if (value < graph.inputs.size()) return nullptr;
    const auto* constant = std::get_if<Constant>(&graph.nodes[value - graph.inputs.size()].operation);
    return constant ? &constant->values : nullptr;
  }

  const Graph& graph_;
  Chains chains_;
  std::vector<std::size_t> widths_;  // of the graph's values
  std::vector<bool> depends_;        // on an input port, as far as derivatives go
  std::vector<std::size_t> number_;  // in the new graph, of each value of the old
  Graph made_;
  std::vector<std::size_t> made_widths_;
  std::string name_;  // of the node whose derivative is being made
};

}  // namespace lockstep::graph

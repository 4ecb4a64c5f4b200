// sinh, cosh and ceil out of functions that graphs have, for whatever builds one.
#pragma once

#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

// `graph` makes values from values: number(double), unary(UnaryKind, x), binary(BinaryKind, a, b), select(condition, a,
// b) and activate(Activation, x).

// e^(x/2): half of its square overflows only where sinh and cosh do, unlike e^x.
template <class Graph, class Value>
Value exp_of_half(Graph& graph, const Value& x) {
  return graph.unary(UnaryKind::exp, graph.binary(BinaryKind::multiply, x, graph.number(0.5)));
}

// With m = sign(x) (1 - e^-|x|), which elu's e^x - 1 gives without cancellation and with the sign of a zero, sinh(x) =
// m (1 - |m| / 2) e^|x|. elu reads x on one side and -x on the other for its derivative, which is 1 at 0 from there.
template <class Graph, class Value>
Value sinh_of(Graph& graph, const Value& x) {
  const auto elu = [&](const Value& argument) { return graph.activate({ActivationKind::elu, 1}, argument); };
  const Value negative = graph.binary(BinaryKind::less, x, graph.number(0));
  const Value right = graph.unary(UnaryKind::negate, elu(graph.unary(UnaryKind::negate, x)));
  const Value m = graph.select(negative, elu(x), right);
  const Value half = graph.binary(BinaryKind::multiply, graph.unary(UnaryKind::absolute, m), graph.number(0.5));
  const Value factor = graph.binary(BinaryKind::subtract, graph.number(1), half);
  const Value root = exp_of_half(graph, graph.unary(UnaryKind::absolute, x));
  const Value product = graph.binary(BinaryKind::multiply, m, factor);
  return graph.binary(BinaryKind::multiply, graph.binary(BinaryKind::multiply, product, root), root);
}

// (e^x + e^-x) / 2, each as the square of a root.
template <class Graph, class Value>
Value cosh_of(Graph& graph, const Value& x) {
  const auto half_of_square = [&](const Value& root) {
    return graph.binary(BinaryKind::multiply, graph.binary(BinaryKind::multiply, root, graph.number(0.5)), root);
  };
  const Value rising = half_of_square(exp_of_half(graph, x));
  const Value falling = half_of_square(exp_of_half(graph, graph.unary(UnaryKind::negate, x)));
  return graph.binary(BinaryKind::add, rising, falling);
}

// Of -0 and of what lies between -1 and 0: -0.
template <class Graph, class Value>
Value ceil_of(Graph& graph, const Value& x) {
  return graph.unary(UnaryKind::negate, graph.unary(UnaryKind::floor, graph.unary(UnaryKind::negate, x)));
}

}  // namespace lockstep::nn::detail

// sinh, cosh, ceil, asin, acos and atan2 out of functions that graphs have, for whatever builds one.
#pragma once

#include <numbers>

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

template <class Graph, class Value>
Value twice_the_arctangent(Graph& graph, const Value& x) {
  return graph.binary(BinaryKind::multiply, graph.unary(UnaryKind::arctangent, x), graph.number(2));
}

// 2 atan(x / (1 + sqrt((1 - x) (1 + x)))): 1 - x is exact where the root is small, and the quotient is at most 1.
template <class Graph, class Value>
Value asin_of(Graph& graph, const Value& x) {
  const Value one = graph.number(1);
  const Value less = graph.binary(BinaryKind::subtract, one, x), more = graph.binary(BinaryKind::add, one, x);
  const Value cosine = graph.unary(UnaryKind::square_root, graph.binary(BinaryKind::multiply, less, more));
  return twice_the_arctangent(graph, graph.binary(BinaryKind::divide, x, graph.binary(BinaryKind::add, one, cosine)));
}

// 2 atan(sqrt((1 - x) / (1 + x))), which keeps its digits where it tends to 0.
template <class Graph, class Value>
Value acos_of(Graph& graph, const Value& x) {
  const Value one = graph.number(1);
  const Value less = graph.binary(BinaryKind::subtract, one, x), more = graph.binary(BinaryKind::add, one, x);
  const Value square = graph.binary(BinaryKind::divide, less, more);
  return twice_the_arctangent(graph, graph.unary(UnaryKind::square_root, square));
}

// The angle of (x, y) in C's quadrants: atan(y / x), by pi or -pi more where x < 0; where |x| < |y| it is atan(-x / y)
// and pi/2 or -pi/2. No quotient exceeds 1, so that derivatives are finite but at (0, 0), whose angle is 0: the divisor
// is 1 there. A zero of either sign counts as positive.
template <class Graph, class Value>
Value atan2_of(Graph& graph, const Value& y, const Value& x) {
  constexpr double kPi = std::numbers::pi;
  const Value zero = graph.number(0);
  const Value width = graph.unary(UnaryKind::absolute, x), height = graph.unary(UnaryKind::absolute, y);
  const Value steep = graph.binary(BinaryKind::less, width, height);
  const Value below = graph.binary(BinaryKind::less, y, zero), left = graph.binary(BinaryKind::less, x, zero);
  const Value rise = graph.select(steep, graph.unary(UnaryKind::negate, x), y);
  const Value not_zero = graph.select(graph.binary(BinaryKind::equal, x, zero), graph.number(1), x);
  const Value slope = graph.binary(BinaryKind::divide, rise, graph.select(steep, y, not_zero));
  const Value quarter = graph.select(below, graph.number(-kPi / 2), graph.number(kPi / 2));
  const Value half = graph.select(below, graph.number(-kPi), graph.number(kPi));
  const Value start = graph.select(steep, quarter, graph.select(left, half, zero));
  return graph.binary(BinaryKind::add, graph.unary(UnaryKind::arctangent, slope), start);
}

}  // namespace lockstep::nn::detail

// Functions out of those that graphs have, for whatever builds one: tan, sinh and cosh, asin, acos and atan2, asinh,
// acosh and atanh, expm1, log1p and logarithms, ceil, trunc and sign.
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
Value trunc_of(Graph& graph, const Value& x) {
  const Value negative = graph.binary(BinaryKind::less, x, graph.number(0));
  return graph.select(negative, ceil_of(graph, x), graph.unary(UnaryKind::floor, x));
}

// (0 < x) - (x < 0), and NaN of NaN.
template <class Graph, class Value>
Value sign_of(Graph& graph, const Value& x) {
  const Value zero = graph.number(0);
  const Value above = graph.binary(BinaryKind::less, zero, x);
  const Value below = graph.binary(BinaryKind::less, x, zero);
  const Value sign = graph.binary(BinaryKind::subtract, above, below);
  return graph.select(graph.binary(BinaryKind::equal, x, x), sign, x);
}

template <class Graph, class Value>
Value tan_of(Graph& graph, const Value& x) {
  const Value sine = graph.activate({ActivationKind::sin}, x);
  return graph.binary(BinaryKind::divide, sine, graph.unary(UnaryKind::cosine, x));
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

// elu, or where x is positive (1 - e^-x) e^x, by which the one overflows where the other does.
template <class Graph, class Value>
Value expm1_of(Graph& graph, const Value& x) {
  const auto elu = [&](const Value& argument) { return graph.activate({ActivationKind::elu, 1}, argument); };
  const Value m = graph.unary(UnaryKind::negate, elu(graph.unary(UnaryKind::negate, x)));
  const Value positive = graph.binary(BinaryKind::less, graph.number(0), x);
  return graph.select(positive, graph.binary(BinaryKind::multiply, m, graph.unary(UnaryKind::exp, x)), elu(x));
}

template <class Graph, class Value>
Value log_by_base(Graph& graph, const Value& x, double log_of_base) {
  return graph.binary(BinaryKind::divide, graph.unary(UnaryKind::log, x), graph.number(log_of_base));
}

// log(1 + x). With u = 1 + x as it is rounded, log(u) x / (u - 1) makes up for the rounding, as log(1 + x) / x hardly
// varies from there to x; it is x where u is 1, and log(u) above 1, where the rounding shows no more.
template <class Graph, class Value>
Value log1p_of(Graph& graph, const Value& x) {
  const Value one = graph.number(1);
  const Value u = graph.binary(BinaryKind::add, one, x);
  const Value tiny = graph.binary(BinaryKind::equal, u, one), large = graph.binary(BinaryKind::less, one, x);
  const Value step = graph.select(tiny, one, graph.binary(BinaryKind::subtract, u, one));
  const Value correction = graph.select(large, one, graph.binary(BinaryKind::divide, x, step));
  const Value logarithm = graph.unary(UnaryKind::log, u);
  return graph.select(tiny, x, graph.binary(BinaryKind::multiply, logarithm, correction));
}

// f(|x|) with the sign of x. At 0, of either sign, its derivative is f's, which |x| has none for.
template <class Graph, class Value, class Function>
Value odd_of(Graph& graph, const Value& x, const Function& f) {
  const Value negative = graph.binary(BinaryKind::less, x, graph.number(0));
  const Value y = f(graph.select(negative, graph.unary(UnaryKind::negate, x), x));
  return graph.select(negative, graph.unary(UnaryKind::negate, y), y);
}

// f(x), and log(2 x), which both inverses tend to, where the square of x could overflow. f is of 2 there, where its
// derivative is finite.
template <class Graph, class Value, class Function>
Value or_logarithm(Graph& graph, const Value& x, const Function& f) {
  const Value one = graph.number(1), huge = graph.binary(BinaryKind::less, graph.number(0x1p30), x);
  const Value logarithm = graph.unary(UnaryKind::log, graph.select(huge, x, one));
  const Value of_huge = graph.binary(BinaryKind::add, logarithm, graph.number(std::numbers::ln2));
  return graph.select(huge, of_huge, f(graph.select(huge, graph.number(2), x)));
}

// log1p(x + x^2 / (1 + sqrt(1 + x^2))) of positive x.
template <class Graph, class Value>
Value asinh_of(Graph& graph, const Value& x) {
  const auto of_small = [&](const Value& a) {
    const Value one = graph.number(1);
    const Value hypotenuse = graph.unary(UnaryKind::square_root,
                                         graph.binary(BinaryKind::add, one, graph.binary(BinaryKind::multiply, a, a)));
    const Value slope = graph.binary(BinaryKind::divide, a, graph.binary(BinaryKind::add, one, hypotenuse));
    return log1p_of(graph, graph.binary(BinaryKind::multiply, a, graph.binary(BinaryKind::add, one, slope)));
  };
  return odd_of(graph, x, [&](const Value& a) { return or_logarithm(graph, a, of_small); });
}

// log1p(x - 1 + sqrt((x - 1) (x + 1))): x - 1 is exact where the result tends to 0. One root for each factor: both are
// negative below -1.
template <class Graph, class Value>
Value acosh_of(Graph& graph, const Value& x) {
  return or_logarithm(graph, x, [&](const Value& a) {
    const Value one = graph.number(1);
    const Value less = graph.binary(BinaryKind::subtract, a, one), more = graph.binary(BinaryKind::add, a, one);
    const Value root = graph.binary(BinaryKind::multiply, graph.unary(UnaryKind::square_root, less),
                                    graph.unary(UnaryKind::square_root, more));
    return log1p_of(graph, graph.binary(BinaryKind::add, less, root));
  });
}

// log1p(2 x / (1 - x)) / 2 of positive x.
template <class Graph, class Value>
Value atanh_of(Graph& graph, const Value& x) {
  return odd_of(graph, x, [&](const Value& a) {
    const Value twice = graph.binary(BinaryKind::add, a, a);
    const Value rest = graph.binary(BinaryKind::subtract, graph.number(1), a);
    const Value logarithm = log1p_of(graph, graph.binary(BinaryKind::divide, twice, rest));
    return graph.binary(BinaryKind::multiply, logarithm, graph.number(0.5));
  });
}

}  // namespace lockstep::nn::detail

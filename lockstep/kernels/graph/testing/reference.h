// A graph evaluated for one sample, one number at a time: the plain text of docs/numerics.md, which plans must match
// bit for bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <variant>
#include <vector>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/math/math.h"

namespace lockstep::graph::testing {

template <class T>
using Vector = std::vector<T>;

template <class T>
T smaller(T a, T b) {
  return b != b ? b : b < a ? b : a;
}
template <class T>
T larger(T a, T b) {
  return b != b ? b : b > a ? b : a;
}

template <class T>
T reference_unary(UnaryKind kind, T x) {
  switch (kind) {
    case UnaryKind::square_root:
      return std::sqrt(x);
    case UnaryKind::exp:
      return math::exp(x);
    case UnaryKind::log:
      return math::log(x);
    case UnaryKind::absolute:
      return std::fabs(x);
    case UnaryKind::negate:
      return -x;
    case UnaryKind::reciprocal:
      return T(1) / x;
    case UnaryKind::erf:
      return math::erf(x);
    case UnaryKind::floor:
      return std::floor(x);
    case UnaryKind::round:
      return std::nearbyint(x);
    case UnaryKind::arctangent:
      return math::atan(x);
    case UnaryKind::cosine:
      break;
  }
  return math::cos(x);
}

template <class T>
T reference_binary(BinaryKind kind, T a, T b) {
  switch (kind) {
    case BinaryKind::add:
      return a + b;
    case BinaryKind::subtract:
      return a - b;
    case BinaryKind::multiply:
      return a * b;
    case BinaryKind::divide:
      return a / b;
    case BinaryKind::minimum:
      return smaller(a, b);
    case BinaryKind::maximum:
      return larger(a, b);
    case BinaryKind::less:
      return a < b ? T(1) : T(0);
    case BinaryKind::less_or_equal:
      return a <= b ? T(1) : T(0);
    case BinaryKind::equal:
      return a == b ? T(1) : T(0);
    case BinaryKind::modulo:
      return math::modulo(a, b);
    case BinaryKind::power:
      break;
  }
  return math::pow(a, b);
}

template <class T>
T reference_reduce(ReduceKind kind, const Vector<T>& x) {
  T acc = x[0];
  for (std::size_t i = 1; i < x.size(); ++i) {
    acc = kind == ReduceKind::minimum   ? smaller(acc, x[i])
          : kind == ReduceKind::maximum ? larger(acc, x[i])
                                        : acc + x[i];
  }
  return kind == ReduceKind::mean ? acc / static_cast<T>(x.size()) : acc;
}

template <class T>
Vector<T> reference_operation(const Operation& operation, const std::vector<Vector<T>>& read) {
  const Vector<T> x = read.empty() ? Vector<T>() : read[0];
  const auto element = [](const Vector<T>& v, std::size_t i) { return v[v.size() == 1 ? 0 : i]; };
  Vector<T> y = x;
  std::visit(
      [&]<class Op>(const Op& op) {
        if constexpr (std::is_same_v<Op, Dense>) {
          y.assign(op.outputs, 0);
          for (std::size_t j = 0; j < op.outputs; ++j) {
            y[j] = static_cast<T>(op.bias[j]);
            for (std::size_t k = 0; k < op.inputs; ++k) {
              y[j] = std::fma(static_cast<T>(op.weights[j * op.inputs + k]), x[k], y[j]);
            }
          }
        } else if constexpr (std::is_same_v<Op, Activate>) {
          for (T& v : y) v = activate(op.activation, v);
        } else if constexpr (std::is_same_v<Op, Standardise>) {
          for (std::size_t i = 0; i < y.size(); ++i) y[i] = (x[i] - T(op.shift[i])) / T(op.scale[i]);
        } else if constexpr (std::is_same_v<Op, Rescale>) {
          for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::fma(x[i], T(op.scale[i]), T(op.shift[i]));
        } else if constexpr (std::is_same_v<Op, Constant>) {
          y.assign(op.values.begin(), op.values.end());
        } else if constexpr (std::is_same_v<Op, Concatenate>) {
          for (std::size_t i = 1; i < read.size(); ++i) y.insert(y.end(), read[i].begin(), read[i].end());
        } else if constexpr (std::is_same_v<Op, Columns>) {
          y.clear();
          for (const std::size_t index : op.indices) y.push_back(x[index]);
        } else if constexpr (std::is_same_v<Op, Unary>) {
          for (T& v : y) v = reference_unary(op.kind, v);
        } else if constexpr (std::is_same_v<Op, Clip>) {
          for (T& v : y) {
            const T above = T(op.minimum) > v ? T(op.minimum) : v;
            v = T(op.maximum) < above ? T(op.maximum) : above;
          }
        } else if constexpr (std::is_same_v<Op, DeadZone>) {
          for (T& v : y) v = v > T(op.upper) ? v - T(op.bias) : v < T(op.lower) ? v + T(op.bias) : v == v ? T(0) : v;
        } else if constexpr (std::is_same_v<Op, Interpolate>) {
          const T first = T(op.knots.front()), last = T(op.knots.back());
          const T above = first > x[0] ? first : x[0], c = last < above ? last : above;
          std::size_t knot = 0;
          while (knot + 1 < op.knots.size() && T(op.knots[knot + 1]) <= c) ++knot;
          y.assign(op.outputs, 0);
          for (std::size_t j = 0; j < op.outputs; ++j) {
            for (std::size_t p = 0; p < op.powers(); ++p) {
              const T coefficient = T(op.coefficients[(j * op.powers() + p) * op.knots.size() + knot]);
              y[j] = p == 0 ? coefficient : std::fma(y[j], c - T(op.knots[knot]), coefficient);
            }
          }
        } else if constexpr (std::is_same_v<Op, Binary>) {
          y.resize(std::max(read[0].size(), read[1].size()));
          for (std::size_t i = 0; i < y.size(); ++i) {
            y[i] = reference_binary(op.kind, element(read[0], i), element(read[1], i));
          }
        } else if constexpr (std::is_same_v<Op, Choose>) {
          y.resize(op.mask.size());
          for (std::size_t i = 0; i < y.size(); ++i) y[i] = element(read[op.mask[i] != 0 ? 0 : 1], i);
        } else if constexpr (std::is_same_v<Op, Select>) {
          y.resize(std::max({read[0].size(), read[1].size(), read[2].size()}));
          for (std::size_t i = 0; i < y.size(); ++i) y[i] = element(read[element(read[0], i) != 0 ? 1 : 2], i);
        } else if constexpr (std::is_same_v<Op, Softmax>) {
          const T most = reference_reduce(ReduceKind::maximum, x);
          Vector<T> e;
          for (const T v : x) e.push_back(math::exp(v - most));
          const T sum = reference_reduce(ReduceKind::sum, e);
          for (std::size_t i = 0; i < y.size(); ++i) {
            y[i] = op.kind == SoftmaxKind::plain ? e[i] / sum : x[i] - most - math::log(sum);
          }
        } else if constexpr (std::is_same_v<Op, Chain>) {
          for (std::size_t i = 0; i < y.size(); ++i) {
            const T v = read[1][i];
            switch (op.activation.kind) {
              case ActivationKind::identity:
                break;
              case ActivationKind::relu:
                y[i] = 0 < v ? x[i] : T(0);
                break;
              case ActivationKind::tanh:
                y[i] = x[i] * std::fma(-v, v, T(1));
                break;
              case ActivationKind::sigmoid:
                y[i] = x[i] * std::fma(-v, v, v);
                break;
              default:
                y[i] = x[i] * activate_derivative(op.activation, v);
            }
          }
        } else if constexpr (std::is_same_v<Op, Reduce>) {
          y = {reference_reduce(op.kind, x)};
        } else {
          static_assert(std::is_same_v<Op, LayerNormalise>);
          Vector<T> d;
          for (const T v : x) d.push_back(v - x[0]);
          const T mean = reference_reduce(ReduceKind::mean, d);
          T squares = 0;
          for (T& v : d) {
            v -= mean;
            squares = std::fma(v, v, squares);
          }
          const T rest = reference_reduce(ReduceKind::mean, d);
          const T r = T(1) / std::sqrt(squares / static_cast<T>(x.size()) + T(op.epsilon));
          for (std::size_t i = 0; i < y.size(); ++i) {
            y[i] = std::fma((d[i] - rest) * r, T(op.scale[i]), T(op.shift[i]));
          }
        }
      },
      operation);
  return y;
}

// One vector for each input port; returns one for each output port.
template <class T>
std::vector<Vector<T>> reference(const Graph& graph, std::vector<Vector<T>> values) {
  for (const Node& node : graph.nodes) {
    std::vector<Vector<T>> read;
    for (const std::size_t input : node.inputs) read.push_back(values[input]);
    values.push_back(reference_operation(node.operation, read));
  }
  std::vector<Vector<T>> outputs;
  for (const Port& port : graph.outputs) outputs.push_back(values[port.value]);
  return outputs;
}

}  // namespace lockstep::graph::testing

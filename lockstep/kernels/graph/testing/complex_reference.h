// A graph's directional derivative by complex steps (Squire & Trapp 1998): evaluated at x + i h v with h = 1e-100, the
// imaginary parts over h are J v to rounding, by formulas that have nothing in common with the library's.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>
#include <variant>
#include <vector>

#include "lockstep/kernels/graph/graph.h"

namespace lockstep::graph::testing {

using Complex = std::complex<double>;
using ComplexVector = std::vector<Complex>;
inline constexpr double kStep = 1e-100;

// Sums and products of the order of h^2 vanish: first order in the imaginary part is exact.
inline Complex with_slope(Complex x, double value, double slope) { return {value, slope * x.imag()}; }

inline Complex complex_erf(Complex x) {
  return with_slope(x, std::erf(x.real()), 2 / std::sqrt(std::acos(-1.0)) * std::exp(-x.real() * x.real()));
}

inline Complex complex_activation(const Activation& activation, Complex x) {
  using K = ActivationKind;
  const double re = x.real(), alpha = activation.alpha;
  const auto sigmoid = [](Complex z) { return 1.0 / (1.0 + std::exp(-z)); };
  switch (activation.kind) {
    case K::identity:
      return x;
    case K::relu:
      return re > 0 ? x : 0;
    case K::leaky_relu:
      return re < 0 ? alpha * x : x;
    case K::elu:
      return re < 0 ? alpha * (std::exp(x) - 1.0) : x;
    case K::selu:
      return 1.0507009873554805 * (re < 0 ? 1.6732632423543772 * (std::exp(x) - 1.0) : x);
    case K::celu:
      return re < 0 ? alpha * (std::exp(x / alpha) - 1.0) : x;
    case K::gelu:
      return 0.5 * x * (1.0 + complex_erf(x / std::sqrt(2.0)));
    case K::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case K::silu:
      return x * sigmoid(x);
    case K::mish:
      return x * std::tanh(std::log(1.0 + std::exp(x)));
    case K::softplus:
      return std::log(1.0 + std::exp(x));
    case K::softsign:
      return re < 0 ? x / (1.0 - x) : x / (1.0 + x);
    case K::sigmoid:
      return sigmoid(x);
    case K::hard_sigmoid:
      return re <= -3 ? 0 : re >= 3 ? 1 : x / 6.0 + 0.5;
    case K::hard_swish:
      return re <= -3 ? 0 : re >= 3 ? x : x * (x / 6.0 + 0.5);
    case K::tanh:
      return std::tanh(x);
    case K::sin:
      return std::sin(x);
    case K::square:
      break;
  }
  return x * x;
}

inline Complex complex_unary(UnaryKind kind, Complex x) {
  switch (kind) {
    case UnaryKind::square_root:
      return with_slope(x, std::sqrt(x.real()), 0.5 / std::sqrt(x.real()));
    case UnaryKind::exp:
      return std::exp(x);
    case UnaryKind::log:
      return with_slope(x, std::log(x.real()), 1 / x.real());
    case UnaryKind::absolute:
      return x.real() == 0 ? 0 : x.real() < 0 ? -x : x;
    case UnaryKind::negate:
      return -x;
    case UnaryKind::reciprocal:
      return 1.0 / x;
    case UnaryKind::erf:
      return complex_erf(x);
    case UnaryKind::floor:
      return std::floor(x.real());
    case UnaryKind::round:
      return std::nearbyint(x.real());
    case UnaryKind::arctangent:
      return with_slope(x, std::atan(x.real()), 1 / (1 + x.real() * x.real()));
    case UnaryKind::cosine:
      break;
  }
  return std::cos(x);
}

inline Complex complex_binary(BinaryKind kind, Complex a, Complex b) {
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
      return a.real() <= b.real() ? a : b;
    case BinaryKind::maximum:
      return b.real() <= a.real() ? a : b;
    case BinaryKind::less:
      return a.real() < b.real() ? 1 : 0;
    case BinaryKind::less_or_equal:
      return a.real() <= b.real() ? 1 : 0;
    case BinaryKind::equal:
      return a.real() == b.real() ? 1 : 0;
    case BinaryKind::modulo:
      return a - b * std::floor(a.real() / b.real());
    case BinaryKind::power:
      break;
  }
  const double x = a.real(), y = b.real(), value = std::pow(x, y);
  return {value,
          (y == 0 ? 0 : y * std::pow(x, y - 1) * a.imag()) + (b.imag() == 0 ? 0 : value * std::log(x) * b.imag())};
}

inline Complex complex_reduce(ReduceKind kind, const ComplexVector& x) {
  Complex acc = x[0];
  for (std::size_t i = 1; i < x.size(); ++i) {
    acc = kind == ReduceKind::minimum   ? complex_binary(BinaryKind::minimum, acc, x[i])
          : kind == ReduceKind::maximum ? complex_binary(BinaryKind::maximum, acc, x[i])
                                        : acc + x[i];
  }
  return kind == ReduceKind::mean ? acc / static_cast<double>(x.size()) : acc;
}

inline ComplexVector complex_operation(const Operation& operation, const std::vector<ComplexVector>& read) {
  const ComplexVector x = read.empty() ? ComplexVector() : read[0];
  const auto element = [&](std::size_t which, std::size_t i) { return read[which][read[which].size() == 1 ? 0 : i]; };
  ComplexVector y = x;
  std::visit(
      [&]<class Op>(const Op& op) {
        if constexpr (std::is_same_v<Op, Dense>) {
          y.assign(op.bias.begin(), op.bias.end());
          for (std::size_t j = 0; j < op.outputs; ++j) {
            for (std::size_t k = 0; k < op.inputs; ++k) y[j] += op.weights[j * op.inputs + k] * x[k];
          }
        } else if constexpr (std::is_same_v<Op, Activate>) {
          for (Complex& v : y) v = complex_activation(op.activation, v);
        } else if constexpr (std::is_same_v<Op, Standardise>) {
          for (std::size_t i = 0; i < y.size(); ++i) y[i] = (x[i] - op.shift[i]) / op.scale[i];
        } else if constexpr (std::is_same_v<Op, Rescale>) {
          for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * op.scale[i] + op.shift[i];
        } else if constexpr (std::is_same_v<Op, Constant>) {
          y.assign(op.values.begin(), op.values.end());
        } else if constexpr (std::is_same_v<Op, Concatenate>) {
          for (std::size_t i = 1; i < read.size(); ++i) y.insert(y.end(), read[i].begin(), read[i].end());
        } else if constexpr (std::is_same_v<Op, Columns>) {
          y.clear();
          for (const std::size_t index : op.indices) y.push_back(x[index]);
        } else if constexpr (std::is_same_v<Op, Unary>) {
          for (Complex& v : y) v = complex_unary(op.kind, v);
        } else if constexpr (std::is_same_v<Op, Clip>) {
          for (Complex& v : y) v = v.real() < op.minimum ? op.minimum : v.real() > op.maximum ? op.maximum : v;
        } else if constexpr (std::is_same_v<Op, DeadZone>) {
          for (Complex& v : y) v = v.real() > op.upper ? v - op.bias : v.real() < op.lower ? v + op.bias : 0;
        } else if constexpr (std::is_same_v<Op, Interpolate>) {
          Complex c = x[0].real() < op.knots.front() ? op.knots.front() : x[0];
          if (c.real() > op.knots.back()) c = op.knots.back();
          std::size_t knot = 0;
          while (knot + 1 < op.knots.size() && op.knots[knot + 1] <= c.real()) ++knot;
          y.assign(op.outputs, 0);
          for (std::size_t j = 0; j < op.outputs; ++j) {
            for (std::size_t p = 0; p < op.powers(); ++p) {
              y[j] = y[j] * (c - op.knots[knot]) + op.coefficients[(j * op.powers() + p) * op.knots.size() + knot];
            }
          }
        } else if constexpr (std::is_same_v<Op, Binary>) {
          y.resize(std::max(read[0].size(), read[1].size()));
          for (std::size_t i = 0; i < y.size(); ++i) y[i] = complex_binary(op.kind, element(0, i), element(1, i));
        } else if constexpr (std::is_same_v<Op, Choose>) {
          y.resize(op.mask.size());
          for (std::size_t i = 0; i < y.size(); ++i) y[i] = element(op.mask[i] != 0 ? 0 : 1, i);
        } else if constexpr (std::is_same_v<Op, Select>) {
          y.resize(std::max({read[0].size(), read[1].size(), read[2].size()}));
          for (std::size_t i = 0; i < y.size(); ++i) y[i] = element(element(0, i).real() != 0 ? 1 : 2, i);
        } else if constexpr (std::is_same_v<Op, Softmax>) {
          const Complex most = complex_reduce(ReduceKind::maximum, x);
          Complex sum = 0;
          for (const Complex v : x) sum += std::exp(v - most);
          for (std::size_t i = 0; i < y.size(); ++i) {
            y[i] = op.kind == SoftmaxKind::plain ? std::exp(x[i] - most) / sum
                                                 : x[i] - most - complex_unary(UnaryKind::log, sum);
          }
        } else if constexpr (std::is_same_v<Op, Reduce>) {
          y = {complex_reduce(op.kind, x)};
        } else if constexpr (std::is_same_v<Op, LayerNormalise>) {
          const Complex mean = complex_reduce(ReduceKind::mean, x);
          Complex sum = 0;
          for (const Complex v : x) sum += (v - mean) * (v - mean);
          const Complex variance = sum / static_cast<double>(x.size()) + op.epsilon;
          for (std::size_t i = 0; i < y.size(); ++i) {
            y[i] = (x[i] - mean) / complex_unary(UnaryKind::square_root, variance) * op.scale[i] + op.shift[i];
          }
        } else {
          static_assert(std::is_same_v<Op, Chain>);
          y.clear();  // no test differentiates derivatives
        }
      },
      operation);
  return y;
}

// J v for one sample: `x` and `v` hold a vector for each input port; returns one for each output port.
inline std::vector<std::vector<double>> complex_step(const Graph& graph, const std::vector<std::vector<double>>& x,
                                                     const std::vector<std::vector<double>>& v) {
  std::vector<ComplexVector> values;
  for (std::size_t p = 0; p < x.size(); ++p) {
    ComplexVector& port = values.emplace_back();
    for (std::size_t i = 0; i < x[p].size(); ++i) port.emplace_back(x[p][i], kStep * v[p][i]);
  }
  for (const Node& node : graph.nodes) {
    std::vector<ComplexVector> read;
    for (const std::size_t input : node.inputs) read.push_back(values[input]);
    values.push_back(complex_operation(node.operation, read));
  }
  std::vector<std::vector<double>> result;
  for (const Port& port : graph.outputs) {
    std::vector<double>& out = result.emplace_back();
    for (const Complex y : values[port.value]) out.push_back(y.imag() / kStep);
  }
  return result;
}

}  // namespace lockstep::graph::testing

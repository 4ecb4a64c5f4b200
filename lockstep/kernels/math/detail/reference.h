// The functions of function_table.h in a wider format, by the standard library: the truth that errors are measured
// against. R is double for float32 and long double (64 bits or more) for float64; its own error, a few of R's ulp, is
// below 0.01 ulp of the format under test, except where a comment says otherwise.
#pragma once

#include <cmath>
#include <limits>

#include "lockstep/kernels/math/detail/function_table.h"
#include "lockstep/kernels/math/format.h"

namespace lockstep::math {

template <class R>
R reference_sigmoid(R x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

// The normal distribution's Phi(x). x/sqrt2 is rounded, which the tail feels x^2 times: given back to first order.
template <class R>
R reference_phi(R x) {
  constexpr R root_half = R(0.707106781186547524400844362104849039284836L);
  constexpr R two_over_root_pi = R(1.12837916709551257389615890312154517L);
  const R a = -x * root_half;
  const R value = std::erfc(a) / 2;
  if (!(a > 2)) return value;
  // a (1 + d) is -x/sqrt2 exactly: a^2 (1 + 2 d) = x^2/2.
  const R d = (std::fma(x, x / 2, -a * a) - std::fma(a, a, -a * a)) / (2 * a * a);
  return value - two_over_root_pi * std::exp(-a * a) * a * d / 2;
}

template <class R>
R reference_tanh_gelu_argument(R x) {                         // 2u
  constexpr R c = R(1.59576912160573071175978423973752903L);  // 2 sqrt(2/pi)
  return c * (x + R(0.044715L) * x * x * x);
}

template <class R>
R reference_elementary(Elementary function, R x, R fixed) {
  using E = Elementary;
  switch (function) {
    case E::exp:
      return std::exp(x);
    case E::expm1:
      return std::expm1(x);
    case E::exp2:
      return std::exp2(x);
    case E::log:
      return std::log(x);
    case E::log2:
      return std::log2(x);
    case E::tanh:
      return std::tanh(x);
    case E::sigmoid:
      return reference_sigmoid(x);
    case E::softplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    case E::erf:
      return std::erf(x);
    case E::sin:
      return std::sin(x);
    case E::cos:
      return std::cos(x);
    case E::atan:
      return std::atan(x);
    case E::small_pow:
    case E::large_pow:
      return std::pow(x, fixed);
    case E::base_pow:
      return std::pow(fixed, x);
    case E::floor:
      return std::floor(x);
    case E::round:
      return std::rint(x);
    case E::modulo: {
      const R rest = std::fmod(x, fixed);
      return rest < 0 ? rest + fixed : rest;
    }
  }
  return x;
}

template <class R>
R reference_activation(ActivationKind kind, R alpha, R x) {
  using K = ActivationKind;
  constexpr R lambda = R(1.0507009873554804934193349852946L), selu_alpha = R(1.6732632423543772848170429916717L);
  switch (kind) {
    case K::identity:
      return x;
    case K::relu:
      return x < 0 ? R(0) : x;
    case K::leaky_relu:
      return x < 0 ? alpha * x : x;
    case K::elu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case K::selu:
      return x < 0 ? lambda * selu_alpha * std::expm1(x) : lambda * x;
    case K::celu:
      return x < 0 ? alpha * std::expm1(x / alpha) : x;
    case K::gelu:
      return std::isinf(x) ? (x < 0 ? -R(0) : x) : x * reference_phi(x);
    case K::gelu_tanh:
      return std::isinf(x) ? (x < 0 ? -R(0) : x) : x * reference_sigmoid(reference_tanh_gelu_argument(x));
    case K::silu:
      return std::isinf(x) ? (x < 0 ? -R(0) : x) : x * reference_sigmoid(x);
    case K::mish:
      return std::isinf(x) ? (x < 0 ? -R(0) : x) : x * std::tanh(x > 40 ? x : std::log1p(std::exp(x)));
    case K::softplus:
      return reference_elementary(Elementary::softplus, x, R(0));
    case K::softsign:
      return std::isinf(x) ? std::copysign(R(1), x) : x / (1 + std::fabs(x));
    case K::sigmoid:
      return reference_sigmoid(x);
    case K::hard_sigmoid:
      return x < -3 ? R(0) : x > 3 ? R(1) : (x + 3) / 6;
    case K::hard_swish:
      return x < -3 ? -R(0) : x > 3 ? x : x * (x + 3) / 6;
    case K::tanh:
      return std::tanh(x);
    case K::sin:
      return std::sin(x);
    case K::square:
      return x * x;
  }
  return x;
}

template <class R>
R reference_derivative(ActivationKind kind, R alpha, R x) {
  using K = ActivationKind;
  constexpr R lambda = R(1.0507009873554804934193349852946L), selu_alpha = R(1.6732632423543772848170429916717L);
  constexpr R root_two_pi_inverse = R(0.398942280401432677939946059934381868L);
  if (kind == K::identity) return 1;
  if (std::isnan(x)) return x;
  switch (kind) {
    case K::identity:
      return 1;
    case K::relu:
      return x > 0 ? 1 : 0;
    case K::leaky_relu:
      return x < 0 ? alpha : R(1);
    case K::elu:
      return x < 0 ? alpha * std::exp(x) : R(1);
    case K::selu:
      return x < 0 ? lambda * selu_alpha * std::exp(x) : lambda;
    case K::celu:
      return x < 0 ? std::exp(x / alpha) : R(1);
    case K::gelu:
      return std::isinf(x) ? R(x > 0) : reference_phi(x) + x * root_two_pi_inverse * std::exp(-x * x / 2);
    case K::gelu_tanh: {
      if (std::fabs(x) > 100) return R(x > 0);
      constexpr R c = R(1.59576912160573071175978423973752903L);
      const R v = reference_tanh_gelu_argument(x);
      const R s = reference_sigmoid(v), slope = c * (1 + 3 * R(0.044715L) * x * x);
      return s * (1 + x * slope * reference_sigmoid(-v));
    }
    case K::silu:
      return std::isinf(x) ? R(x > 0) : reference_sigmoid(x) * (1 + x * reference_sigmoid(-x));
    case K::mish: {
      if (x > 100) return 1;
      if (std::isinf(x)) return 0;
      const R t = std::tanh(std::log1p(std::exp(x))), s = 1 / std::cosh(std::log1p(std::exp(x)));
      return t + x * reference_sigmoid(x) * s * s;
    }
    case K::softplus:
      return reference_sigmoid(x);
    case K::softsign:
      return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x)));
    case K::sigmoid:
      return reference_sigmoid(x) * reference_sigmoid(-x);
    case K::hard_sigmoid:
      return std::fabs(x) < 3 ? R(1) / 6 : R(0);
    case K::hard_swish:
      return x <= -3 ? R(0) : x < 3 ? x / 3 + R(0.5) : R(1);
    case K::tanh:
      return 4 * reference_sigmoid(2 * x) * reference_sigmoid(-2 * x);
    case K::sin:
      return std::cos(x);
    case K::square:
      return 2 * x;
  }
  return x;
}

// entry(x) for a number x of format T; the constants are those of format T.
template <class T, class R>
R reference(const Entry& entry, T x) {
  if (entry.kind == Entry::Kind::elementary) {
    const T fixed = entry.elementary == Elementary::small_pow   ? T(kSmallExponent)
                    : entry.elementary == Elementary::large_pow ? T(kLargeExponent)
                                                                : T(kBase);
    return reference_elementary<R>(entry.elementary, R(x), R(fixed));
  }
  const R alpha = R(T(entry.activation.alpha));
  if (entry.kind == Entry::Kind::activation) return reference_activation<R>(entry.activation.kind, alpha, R(x));
  return reference_derivative<R>(entry.activation.kind, alpha, R(x));
}

// |y - truth| in ulp of format T at the truth: the spacing of T's numbers there, at least the denormal spacing.
// Infinity counts as the power of two that follows the largest finite number.
template <class T, class R>
double ulp_error(T y, R truth) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(truth) || std::isnan(y)) return std::isnan(truth) == std::isnan(y) ? 0 : 1e30;
  const R top = std::ldexp(R(1), Limits::max_exponent);
  const auto finite = [top](R v) { return v > top ? top : v < -top ? -top : v; };
  const R exact = finite(truth);
  const R difference = std::fabs(finite(R(y)) - exact);
  if (difference == 0) return 0;
  int exponent = Limits::min_exponent;
  if (exact != 0) std::frexp(exact, &exponent);
  exponent = exponent < Limits::min_exponent ? Limits::min_exponent : exponent;
  exponent = exponent > Limits::max_exponent ? Limits::max_exponent : exponent;
  return double(std::ldexp(difference, Limits::digits - exponent));
}

// Whether y meets the entry's bound.
template <class T, class R>
bool within_bound(const Entry& entry, T x, T y, R truth, double ulps) {
  if (ulps <= entry.ulps) return true;
  if (entry.elementary == Elementary::modulo && entry.kind == Entry::Kind::elementary && y == 0) {
    return std::fabs(x) > T(kBase) / std::numeric_limits<T>::epsilon();  // numbers are farther apart than the divisor
  }
  if (entry.absolute == 0 || !std::isfinite(truth) || !std::isfinite(y)) return false;
  const double scale = std::fmax(1.0, std::fabs(double(x)));
  return std::fabs(double(R(y) - truth)) <= entry.absolute * scale * double(std::numeric_limits<T>::epsilon()) / 2;
}

}  // namespace lockstep::math

// A number with a slope over any number type, dual and complex ones too: Jacobians of plain right-hand sides. For
// tests.
#pragma once

#include <cmath>
#include <complex>
#include <concepts>
#include <type_traits>

#include "lockstep/ode/dual.h"

namespace lockstep::ode::testing {

template <class N>
struct Jet {
  N value{}, slope{};

  Jet() = default;
  Jet(N v) : value(v) {}
  Jet(N v, N s) : value(v), slope(s) {}
  template <class Other>
  requires(std::is_arithmetic_v<Other> && !std::same_as<Other, N>) Jet(Other v) : value(static_cast<double>(v)) {}

  friend Jet operator+(Jet a, Jet b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Jet operator-(Jet a, Jet b) { return {a.value - b.value, a.slope - b.slope}; }
  friend Jet operator*(Jet a, Jet b) { return {a.value * b.value, a.value * b.slope + a.slope * b.value}; }
  friend Jet operator/(Jet a, Jet b) {
    const N q = a.value / b.value;
    return {q, (a.slope - q * b.slope) / b.value};
  }
};
template <class N>
Jet<N> exp(Jet<N> a) {
  using std::exp;
  const N e = exp(a.value);
  return {e, e * a.slope};
}
template <class N>
Jet<N> tanh(Jet<N> a) {
  using std::tanh;
  const N y = tanh(a.value);
  return {y, (N(1) - y * y) * a.slope};
}
template <class N>
Jet<N> sin(Jet<N> a) {
  using std::cos;
  using std::sin;
  return {sin(a.value), cos(a.value) * a.slope};
}
template <class N>
Jet<N> cos(Jet<N> a) {
  using std::cos;
  using std::sin;
  return {cos(a.value), N(-1) * sin(a.value) * a.slope};
}

// How large a number is, its slope apart.
template <class N>
double magnitude(const N& x) {
  if constexpr (requires { x.value; }) {
    return magnitude(x.value);
  } else {
    return static_cast<double>(std::abs(x));
  }
}

}  // namespace lockstep::ode::testing

// A number that carries a derivative along: what a right-hand side is called with when its derivative is wanted.
#pragma once

#include <cmath>
#include <concepts>

#include "lockstep/kernels/math/math.h"

namespace lockstep::ode {

// value + slope e with e^2 = 0. The value has the bits of the same operation on T. T is float or double.
template <class T>
struct Dual {
  T value = 0;
  T slope = 0;

  constexpr Dual() = default;
  constexpr Dual(T v, T s = 0) : value(v), slope(s) {}
  // A constant of another type is rounded to T, as in arithmetic on T... with which T is written out.
  template <class Other>
  requires(std::is_arithmetic_v<Other> && !std::same_as<Other, T>) constexpr Dual(Other v) : value(static_cast<T>(v)) {}

  friend constexpr Dual operator+(Dual a) { return a; }
  friend constexpr Dual operator-(Dual a) { return {-a.value, -a.slope}; }
  friend constexpr Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend constexpr Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
  friend constexpr Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.value * b.slope + a.slope * b.value}; }
  friend constexpr Dual operator/(Dual a, Dual b) {
    const T q = a.value / b.value;
    return {q, (a.slope - q * b.slope) / b.value};
  }
  constexpr Dual& operator+=(Dual b) { return *this = *this + b; }
  constexpr Dual& operator-=(Dual b) { return *this = *this - b; }
  constexpr Dual& operator*=(Dual b) { return *this = *this * b; }
  constexpr Dual& operator/=(Dual b) { return *this = *this / b; }
  friend constexpr bool operator==(Dual a, Dual b) { return a.value == b.value; }
  friend constexpr auto operator<=>(Dual a, Dual b) { return a.value <=> b.value; }
};

template <class T>
Dual<T> fma(Dual<T> a, Dual<T> b, Dual<T> c) {
  return {std::fma(a.value, b.value, c.value), std::fma(a.value, b.slope, std::fma(a.slope, b.value, c.slope))};
}
template <class T>
Dual<T> sqrt(Dual<T> a) {
  const T root = std::sqrt(a.value);
  return {root, a.slope / (root + root)};
}
template <class T>
Dual<T> abs(Dual<T> a) {
  return a.value < 0 ? -a : a;
}
template <class T>
Dual<T> exp(Dual<T> a) {
  const T e = math::exp(a.value);
  return {e, e * a.slope};
}
template <class T>
Dual<T> log(Dual<T> a) {
  return {math::log(a.value), a.slope / a.value};
}
template <class T>
Dual<T> tanh(Dual<T> a) {
  const T y = math::tanh(a.value);
  return {y, (T(1) - y * y) * a.slope};
}
template <class T>
Dual<T> sigmoid(Dual<T> a) {
  const T y = math::sigmoid(a.value);
  return {y, y * (T(1) - y) * a.slope};
}
template <class T>
Dual<T> sin(Dual<T> a) {
  return {math::sin(a.value), math::cos(a.value) * a.slope};
}
template <class T>
Dual<T> cos(Dual<T> a) {
  return {math::cos(a.value), -math::sin(a.value) * a.slope};
}
template <class T>
Dual<T> atan(Dual<T> a) {
  return {math::atan(a.value), a.slope / (T(1) + a.value * a.value)};
}
template <class T>
Dual<T> pow(Dual<T> a, T exponent) {
  return {math::pow(a.value, exponent), exponent * math::pow(a.value, exponent - 1) * a.slope};
}

}  // namespace lockstep::ode

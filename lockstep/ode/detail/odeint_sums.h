// The sums of a Runge-Kutta step as operations on one number of each array, in the order that tableau.h fixes, and the
// call of an odeint algebra over any number of arrays, for hosts and devices. Needs nothing of Boost.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>

#include "lockstep/kernels/lane/scalar_lane.h"

namespace lockstep::ode::detail {

// a b + c, rounded once for the numbers that have the same-bits contract; other number types do as they can.
template <class T>
LOCKSTEP_HOST_DEVICE T multiply_add(const T& a, const T& b, const T& c) {
  if constexpr (std::floating_point<T>) {
    return std::fma(a, b, c);
  } else {
    return a * b + c;
  }
}

// sum_j weights[j] k_j over j ascending without the zeros: the first a product, the others by multiply_add.
template <class T, class... K>
LOCKSTEP_HOST_DEVICE T weighted_sum(const double* weights, const K&... k) {
  T sum{};
  bool first = true;
  std::size_t j = 0;
  const auto add = [&](const T& k_j) {
    const double weight = weights[j++];
    if (weight == 0) return;
    sum = first ? T(static_cast<T>(weight) * k_j) : multiply_add(static_cast<T>(weight), k_j, sum);
    first = false;
  };
  (add(k), ...);
  return sum;
}

// y = y0 + h sum_j a_ij k_j.
template <class Method, int i, class Time>
struct StageSum {
  Time h;
  template <class T, class... K>
  LOCKSTEP_HOST_DEVICE void operator()(T& y, const T& y0, const K&... k) const {
    constexpr auto m = Method::coefficients();
    y = multiply_add(static_cast<T>(h), weighted_sum<T>(m.a[i], k...), y0);
  }
};

// error = h sum_j e_j k_j.
template <class Method, class Time>
struct ErrorSum {
  Time h;
  template <class T, class... K>
  LOCKSTEP_HOST_DEVICE void operator()(T& error, const T& k_first, const K&... k) const {
    constexpr auto m = Method::coefficients();
    error = static_cast<T>(h) * weighted_sum<T>(m.error, k_first, k...);
  }
};

// y(theta) = y0 + h sum_j p_j(theta) k_j; weights are evaluated in float64 by Horner's rule, as numerics-inl.h does.
template <class Method, class Time>
class InterpolantSum {
 public:
  InterpolantSum(Time h, Time theta) : h_(h) {
    constexpr auto m = Method::coefficients();
    const double x = static_cast<double>(theta);
    for (int j = 0; j < m.kStages; ++j) {
      double weight = m.interpolant[j][m.kInterpolantDegree - 1];
      for (int power = m.kInterpolantDegree - 2; power >= 0; --power) {
        weight = std::fma(weight, x, m.interpolant[j][power]);
      }
      weights_[j] = weight * x;
    }
  }
  template <class T, class... K>
  LOCKSTEP_HOST_DEVICE void operator()(T& y, const T& y0, const K&... k) const {
    y = multiply_add(static_cast<T>(h_), weighted_sum<T>(weights_, k...), y0);
  }

 private:
  Time h_;
  double weights_[decltype(Method::coefficients())::kStages];
};

// algebra.for_eachN(arrays..., operation) with N their number. Not called for_each: Thrust would find it.
template <class Algebra, class Operation, class... Arrays>
void apply_algebra(Algebra& algebra, Operation operation, Arrays&... arrays) {
  constexpr std::size_t n = sizeof...(Arrays);
  static_assert(n >= 3 && n <= 9, "methods of up to seven stages");
  if constexpr (n == 3) algebra.for_each3(arrays..., operation);
  if constexpr (n == 4) algebra.for_each4(arrays..., operation);
  if constexpr (n == 5) algebra.for_each5(arrays..., operation);
  if constexpr (n == 6) algebra.for_each6(arrays..., operation);
  if constexpr (n == 7) algebra.for_each7(arrays..., operation);
  if constexpr (n == 8) algebra.for_each8(arrays..., operation);
  if constexpr (n == 9) algebra.for_each9(arrays..., operation);
}

}  // namespace lockstep::ode::detail

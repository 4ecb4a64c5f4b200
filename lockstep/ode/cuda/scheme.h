// A Runge-Kutta method as one thread runs it, in two forms with the same interface and bits: CompiledScheme unrolls the
// stages with their weights as constants, so that they stay in registers; TableScheme reads any method from a table.
#pragma once

#include <utility>

#include "lockstep/ode/numerics.h"

namespace lockstep::ode::cuda {

inline constexpr int kMostStages = 26;  // Vern9: 17, and 9 of its interpolant
inline constexpr int kMostDegree = 9;

// An int known to the compiler. (std::integral_constant converts by a host function.)
template <int i>
struct Constant {
  static constexpr int value = i;
  LOCKSTEP_HOST_DEVICE constexpr operator int() const { return i; }
};

template <class F, int... i>
LOCKSTEP_HOST_DEVICE void static_for(std::integer_sequence<int, i...>, const F& f) {
  (f(Constant<i>()), ...);
}
// Calls f(Constant<0>) to f(Constant<count - 1>).
template <int count, class F>
LOCKSTEP_HOST_DEVICE void static_for(const F& f) {
  static_for(std::make_integer_sequence<int, count>(), f);
}

// Sums run over stages ascending and skip weights of zero (see tableau.h).
template <class Method>
struct CompiledScheme {
  using Numbers = decltype(Method::coefficients());
  static constexpr int kStages = Numbers::kStages;
  static constexpr int kAllStages = Numbers::kAllStages;
  static constexpr bool kCompiled = true;
  static constexpr bool kAdaptive = Method::kErrorOrder > 0;
  static constexpr bool kImplicit = requires { Method::implicit(); };  // linearly

  static LOCKSTEP_HOST_DEVICE constexpr int stages() { return kStages; }
  static LOCKSTEP_HOST_DEVICE constexpr int interpolant_stages() { return kAllStages - kStages; }
  static LOCKSTEP_HOST_DEVICE constexpr int error_order() { return Method::kErrorOrder; }
  static LOCKSTEP_HOST_DEVICE constexpr bool has_error3() { return Method::kHasError3; }

  // f(i) for the stages after the first, and for those that only the interpolant needs.
  template <class F>
  static LOCKSTEP_HOST_DEVICE void for_stages(const F& f) {
    static_for<kStages - 1>([&](auto i) { f(Constant<decltype(i)::value + 1>()); });
  }
  template <class F>
  static LOCKSTEP_HOST_DEVICE void for_interpolant_stages(const F& f) {
    static_for<kAllStages - kStages>([&](auto i) { f(Constant<decltype(i)::value + kStages>()); });
  }

  template <int i>
  static LOCKSTEP_HOST_DEVICE double stage_time(Constant<i>) {
    constexpr double c = Method::coefficients().c[i];
    return c;
  }
  // sum_j a_ij k_j of component c.
  template <int i, class T, int n>
  static LOCKSTEP_HOST_DEVICE T stage_sum(Constant<i>, const T (&k)[kAllStages][n], int c) {
    return weighted<i, Row<i>>(k, c);
  }
  template <class T, int n>
  static LOCKSTEP_HOST_DEVICE T error_sum(const T (&k)[kAllStages][n], int c) {
    return weighted<kStages, Error>(k, c);
  }
  template <class T, int n>
  static LOCKSTEP_HOST_DEVICE T error3_sum(const T (&k)[kAllStages][n], int c) {
    if constexpr (Method::kHasError3) return weighted<kStages, Error3>(k, c);
    return T(0);
  }

  // The interpolant's weights at theta, then sum_j w_j k_j of component c.
  template <class T>
  struct Weights {
    T of[kAllStages];
  };
  template <class T>
  static LOCKSTEP_HOST_DEVICE Weights<T> interpolant_weights(double theta) {
    using D = ScalarLane<double>;
    Weights<T> weights;
    static_for<kAllStages>([&](auto index) {
      constexpr int j = decltype(index)::value;
      if constexpr (interpolates(j)) {
        constexpr int degree = Numbers::kInterpolantDegree;
        double weight = interpolant_coefficient<j, degree - 1>();
        static_for<degree - 1>([&](auto m) {
          weight = D::fma(weight, theta, interpolant_coefficient<j, degree - 2 - decltype(m)::value>());
        });
        weights.of[j] = static_cast<T>(D::mul(weight, theta));
      }
    });
    return weights;
  }
  // The derivative of what interpolant_weights() multiplies, by theta.
  template <class T>
  static LOCKSTEP_HOST_DEVICE Weights<T> interpolant_slopes(double theta) {
    Weights<T> weights;
    static_for<kAllStages>([&](auto index) {
      constexpr int j = decltype(index)::value;
      if constexpr (interpolates(j)) {
        constexpr InterpolantRow row = interpolant_row(j);
        weights.of[j] =
            static_cast<T>(scalar::interpolant_slope<ScalarLane<double>>(row.of, Numbers::kInterpolantDegree, theta));
      }
    });
    return weights;
  }
  template <class T, int n>
  static LOCKSTEP_HOST_DEVICE T interpolant_sum(const Weights<T>& weights, const T (&k)[kAllStages][n], int c) {
    using L = ScalarLane<T>;
    T sum = 0;
    static_for<kAllStages>([&](auto index) {
      constexpr int j = decltype(index)::value;
      if constexpr (j == first_interpolating()) {
        sum = L::mul(weights.of[j], k[j][c]);
      } else if constexpr (interpolates(j)) {
        sum = L::fma(weights.of[j], k[j][c], sum);
      }
    });
    return sum;
  }

  // Of a linearly implicit method: 1/gamma, and component c of stage i's right-hand side, where `right` is f there and
  // f_t the derivative by time.
  template <class T>
  static LOCKSTEP_HOST_DEVICE T inverse_gamma() {
    constexpr double inverse = 1 / Method::implicit().gamma;
    return static_cast<T>(inverse);
  }
  template <int i, class T, int n>
  static LOCKSTEP_HOST_DEVICE T coupled(Constant<i>, const T (&k)[kAllStages][n], int c, T right, T h, T f_t) {
    using L = ScalarLane<T>;
    static_for<i>([&](auto index) {
      constexpr int j = decltype(index)::value;
      constexpr double weight = Method::implicit().coupling[i][j];
      if constexpr (weight != 0) right = L::fma(static_cast<T>(weight), k[j][c], right);
    });
    constexpr double by_time = Method::implicit().time_weights[i];
    if constexpr (by_time != 0) right = L::fma(L::mul(static_cast<T>(by_time), h), f_t, right);
    return right;
  }

 private:
  template <int i>
  struct Row {
    static LOCKSTEP_HOST_DEVICE constexpr double at(int j) { return Method::coefficients().a[i][j]; }
  };
  struct Error {
    static LOCKSTEP_HOST_DEVICE constexpr double at(int j) { return Method::coefficients().error[j]; }
  };
  struct Error3 {
    static LOCKSTEP_HOST_DEVICE constexpr double at(int j) { return Method::coefficients().error3[j]; }
  };

  template <int count, class Values>
  static LOCKSTEP_HOST_DEVICE constexpr int first_nonzero() {
    int j = 0;
    while (j < count && Values::at(j) == 0) ++j;
    return j;
  }
  template <int count, class Values, class T, int n>
  static LOCKSTEP_HOST_DEVICE T weighted(const T (&k)[kAllStages][n], int c) {
    using L = ScalarLane<T>;
    T sum = 0;
    static_for<count>([&](auto index) {
      constexpr int j = decltype(index)::value;
      constexpr double weight = Values::at(j);
      if constexpr (j == first_nonzero<count, Values>()) {
        sum = L::mul(static_cast<T>(weight), k[j][c]);
      } else if constexpr (weight != 0) {
        sum = L::fma(static_cast<T>(weight), k[j][c], sum);
      }
    });
    return sum;
  }

  static LOCKSTEP_HOST_DEVICE constexpr bool interpolates(int j) {
    const Numbers numbers = Method::coefficients();
    for (int m = 0; m < Numbers::kInterpolantDegree; ++m) {
      if (numbers.interpolant[j][m] != 0) return true;
    }
    return false;
  }
  static LOCKSTEP_HOST_DEVICE constexpr int first_interpolating() {
    int j = 0;
    while (!interpolates(j)) ++j;
    return j;
  }
  struct InterpolantRow {
    double of[Numbers::kInterpolantDegree];
  };
  static LOCKSTEP_HOST_DEVICE constexpr InterpolantRow interpolant_row(int j) {
    InterpolantRow row{};
    for (int m = 0; m < Numbers::kInterpolantDegree; ++m) row.of[m] = Method::coefficients().interpolant[j][m];
    return row;
  }
  template <int j, int m>
  static LOCKSTEP_HOST_DEVICE double interpolant_coefficient() {
    constexpr double p = Method::coefficients().interpolant[j][m];
    return p;
  }
};

// Any method as plain data, its weights rounded to T; made by make_method_table().
template <class T>
struct MethodTable {
  struct Sum {
    std::int32_t count;
    std::int32_t stage[kMostStages];  // ascending
    T weight[kMostStages];
  };
  std::int32_t stages, all_stages, error_order, has_error3;
  std::int32_t degree, interpolant_count;
  std::int32_t interpolant_stage[kMostStages];
  double interpolant[kMostStages][kMostDegree];  // rows as interpolant_stage
  double c[kMostStages];
  Sum rows[kMostStages];
  Sum error, error3;
};

template <class Number>
class TableScheme {
  // The stages k are whatever has k[stage][component].
 public:
  static constexpr int kAllStages = kMostStages;
  static constexpr bool kCompiled = false;  // but read from a table
  static constexpr bool kAdaptive = true;
  static constexpr bool kImplicit = false;

  explicit LOCKSTEP_HOST_DEVICE TableScheme(const MethodTable<Number>& table) : table_(&table) {}

  LOCKSTEP_HOST_DEVICE int stages() const { return table_->stages; }
  LOCKSTEP_HOST_DEVICE int interpolant_stages() const { return table_->all_stages - table_->stages; }
  LOCKSTEP_HOST_DEVICE int error_order() const { return table_->error_order; }
  LOCKSTEP_HOST_DEVICE bool has_error3() const { return table_->has_error3 != 0; }

  template <class F>
  LOCKSTEP_HOST_DEVICE void for_stages(const F& f) const {
    for (int i = 1; i < table_->stages; ++i) f(i);
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE void for_interpolant_stages(const F& f) const {
    for (int i = table_->stages; i < table_->all_stages; ++i) f(i);
  }

  LOCKSTEP_HOST_DEVICE double stage_time(int i) const { return table_->c[i]; }
  template <class K>
  LOCKSTEP_HOST_DEVICE Number stage_sum(int i, const K& k, int c) const {
    return weighted(table_->rows[i], k, c);
  }
  template <class K>
  LOCKSTEP_HOST_DEVICE Number error_sum(const K& k, int c) const {
    return weighted(table_->error, k, c);
  }
  template <class K>
  LOCKSTEP_HOST_DEVICE Number error3_sum(const K& k, int c) const {
    return weighted(table_->error3, k, c);
  }

  template <class T>
  struct Weights {
    T of[kAllStages];
  };
  template <class T>
  LOCKSTEP_HOST_DEVICE Weights<T> interpolant_weights(double theta) const {
    Weights<T> weights;
    for (int i = 0; i < table_->interpolant_count; ++i) {
      weights.of[i] =
          static_cast<T>(scalar::interpolant_weight<ScalarLane<double>>(table_->interpolant[i], table_->degree, theta));
    }
    return weights;
  }
  template <class K>
  LOCKSTEP_HOST_DEVICE Number interpolant_sum(const Weights<Number>& weights, const K& k, int c) const {
    using L = ScalarLane<Number>;
    Number sum = L::mul(weights.of[0], k[table_->interpolant_stage[0]][c]);
    for (int i = 1; i < table_->interpolant_count; ++i)
      sum = L::fma(weights.of[i], k[table_->interpolant_stage[i]][c], sum);
    return sum;
  }

 private:
  template <class K>
  static LOCKSTEP_HOST_DEVICE Number weighted(const typename MethodTable<Number>::Sum& sum, const K& k, int c) {
    using L = ScalarLane<Number>;
    Number result = L::mul(sum.weight[0], k[sum.stage[0]][c]);
    for (int i = 1; i < sum.count; ++i) result = L::fma(sum.weight[i], k[sum.stage[i]][c], result);
    return result;
  }

  const MethodTable<Number>* table_;
};

}  // namespace lockstep::ode::cuda

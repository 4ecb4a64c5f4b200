// Errors of the elementary functions, activations and derivatives against wider arithmetic, within the bounds stated in
// function_table.cpp. `math_check` measures the same over all float32 and many more float64.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

#include "lockstep/kernels/math/detail/function_table.h"
#include "lockstep/kernels/math/detail/reference.h"
#include "lockstep/kernels/math/detail/samples.h"
#include "lockstep/kernels/math/math.h"

namespace lockstep::math {
namespace {

template <class T, class R>
void expect_within_bounds(const std::vector<T>& x) {
  std::vector<T> y(x.size());
  for (const Entry& entry : function_table()) {
    evaluate(entry, best_cpu_target(), x.data(), y.data(), x.size());
    int failures = 0;
    for (std::size_t i = 0; i < x.size() && failures < 3; ++i) {
      const R truth = reference<T, R>(entry, x[i]);
      const double error = ulp_error<T, R>(y[i], truth);
      if (within_bound<T, R>(entry, x[i], y[i], truth, error)) continue;
      ++failures;
      ADD_FAILURE() << entry.name << " of " << std::hexfloat << x[i] << " is " << y[i] << ", truth " << double(truth)
                    << std::defaultfloat << " (" << error << " ulp, x = " << x[i] << ")";
    }
  }
}

TEST(MathAccuracy, float32_errors_are_within_bounds) { expect_within_bounds<float, double>(all_floats_by(16381)); }

TEST(MathAccuracy, float64_errors_are_within_bounds) {
  // long double must have bits to spare for it to be the truth.
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "long double is double here";
  expect_within_bounds<double, long double>(double_samples(60000, 7));
}

template <class T>
class MathValues : public testing::Test {};
using Formats = testing::Types<float, double>;
TYPED_TEST_SUITE(MathValues, Formats);

TYPED_TEST(MathValues, zeros_keep_their_sign) {
  const TypeParam zero = 0;
  for (const TypeParam y : {tanh(-zero), sin(-zero), atan(-zero), erf(-zero), expm1(-zero)}) {
    EXPECT_EQ(y, 0);
    EXPECT_TRUE(std::signbit(y));
  }
}

TYPED_TEST(MathValues, small_arguments_come_back_where_the_function_is_x) {
  for (const TypeParam x : {std::numeric_limits<TypeParam>::denorm_min(), std::numeric_limits<TypeParam>::min()}) {
    EXPECT_EQ(tanh(x), x);
    EXPECT_EQ(sin(x), x);
    EXPECT_EQ(atan(x), x);
    EXPECT_EQ(expm1(x), x);
    EXPECT_EQ(expm1(-x), -x);
  }
}

TYPED_TEST(MathValues, atan_is_odd_and_ends_at_half_pi) {
  using Limits = std::numeric_limits<TypeParam>;
  const auto half_pi = static_cast<TypeParam>(std::numbers::pi_v<long double> / 2);
  for (const TypeParam x : {Limits::infinity(), Limits::max(), TypeParam(1e17)}) {
    EXPECT_EQ(atan(x), half_pi);
    EXPECT_EQ(atan(-x), -half_pi);
  }
  for (TypeParam x = Limits::min(); x < Limits::max() / 2; x *= TypeParam(1.7)) EXPECT_EQ(atan(-x), -atan(x)) << x;
  EXPECT_TRUE(std::isnan(atan(Limits::quiet_NaN())));
}

TYPED_TEST(MathValues, powers_of_two_are_exact) {
  using Limits = std::numeric_limits<TypeParam>;
  for (int n = Limits::min_exponent - Limits::digits; n < Limits::max_exponent; ++n) {
    const TypeParam power = std::ldexp(TypeParam(1), n);
    EXPECT_EQ(exp2(TypeParam(n)), power) << n;
    EXPECT_EQ(log2(power), TypeParam(n)) << n;
    EXPECT_EQ(pow(TypeParam(2), TypeParam(n)), power) << n;
  }
}

TYPED_TEST(MathValues, forms_for_the_normal_range_give_the_same_bits) {
  using L = ScalarLane<TypeParam>;
  using Limits = std::numeric_limits<TypeParam>;
  const TypeParam low = Limits::min_exponent - 1, high = Limits::max_exponent - 1;
  for (int i = 0; i <= 10000; ++i) {
    const TypeParam x = low + (high - low) * TypeParam(i) / 10000;
    const TypeParam power = exp2(x);
    EXPECT_EQ(exp2_in_normal_range<L>(x), power) << x;
    EXPECT_EQ(log2_of_normal<L>(power), log2(power)) << power;
  }
}

// C's table of special values of pow, which the standard library follows.
TYPED_TEST(MathValues, pow_has_the_special_values_of_c) {
  const TypeParam infinity = std::numeric_limits<TypeParam>::infinity();
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  const TypeParam odd = std::numeric_limits<TypeParam>::digits == 24 ? 0x1p24f - 1 : 0x1p53 - 1;
  const std::vector<TypeParam> special = {0,   1,   2,       3,       TypeParam(0.5), infinity,
                                          nan, odd, odd + 1, 2 * odd, 1 - 1 / odd};
  for (const TypeParam magnitude_x : special) {
    for (const TypeParam magnitude_y : special) {
      for (const TypeParam x : {magnitude_x, -magnitude_x}) {
        for (const TypeParam y : {magnitude_y, -magnitude_y}) {
          const TypeParam expected = std::pow(x, y), found = pow(x, y);
          if (std::isnan(expected)) {
            EXPECT_TRUE(std::isnan(found)) << x << " " << y << " " << found;
          } else {
            EXPECT_LE((ulp_error<TypeParam, long double>(found, expected)), 2) << x << " " << y << " " << found;
            EXPECT_EQ(std::signbit(found), std::signbit(expected)) << x << " " << y;
          }
        }
      }
    }
  }
}

TYPED_TEST(MathValues, pow_is_accurate_over_both_arguments) {
  using Wide = std::conditional_t<sizeof(TypeParam) == 4, double, long double>;
  if (std::numeric_limits<Wide>::digits <= std::numeric_limits<TypeParam>::digits) GTEST_SKIP();
  std::mt19937_64 random(11);
  for (int i = 0; i < 200000; ++i) {
    const double u = double(random() >> 11) * 0x1p-53, v = double(random() >> 11) * 0x1p-53;
    const TypeParam x = TypeParam(std::exp((u - 0.5) * (i % 2 ? 0.01 : 1) * (sizeof(TypeParam) == 4 ? 170 : 1400)));
    // exponents that bring the result near the ends of the range: there the error of log2 counts most
    const double limit = (sizeof(TypeParam) == 4 ? 104 : 746) / std::fabs(std::log(double(x)));
    const TypeParam y = TypeParam((2 * v - 1) * limit);
    const Wide truth = std::pow(Wide(x), Wide(y));
    ASSERT_LE((ulp_error<TypeParam, Wide>(pow(x, y), truth)), 2.5) << std::hexfloat << x << " " << y;
  }
}

// Python's table of special values where both are finite; C's fmod is exact.
TYPED_TEST(MathValues, modulo_has_the_sign_of_the_divisor_and_no_error_beside_one_rounding) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  const T infinity = Limits::infinity();
  EXPECT_EQ(modulo(T(7), T(3)), 1);
  EXPECT_EQ(modulo(T(-7), T(3)), 2);
  EXPECT_EQ(modulo(T(7), T(-3)), -2);
  EXPECT_EQ(modulo(T(-7), T(-3)), -1);
  EXPECT_EQ(modulo(T(5), infinity), 5);
  EXPECT_EQ(modulo(T(-5), infinity), infinity);
  EXPECT_EQ(modulo(T(5), -infinity), -infinity);
  EXPECT_EQ(modulo(-Limits::denorm_min(), T(24)), 24);
  for (const T x : {T(0), -T(0), T(6), T(-6)}) {
    for (const T y : {T(3), T(-3)}) {
      EXPECT_EQ(modulo(x, y), 0);
      EXPECT_EQ(std::signbit(modulo(x, y)), y < 0) << x << " " << y;
    }
  }
  for (const auto& [x, y] : std::vector<std::pair<T, T>>{{1, 0},
                                                         {0, 0},
                                                         {infinity, 1},
                                                         {-infinity, 1},
                                                         {infinity, infinity},
                                                         {Limits::quiet_NaN(), 1},
                                                         {1, Limits::quiet_NaN()}}) {
    EXPECT_TRUE(std::isnan(modulo(x, y))) << x << " " << y;
  }
  std::mt19937_64 random(12);
  const auto some = [&](int from, int to) {  // magnitudes of 2^from to 2^to
    const double unit = 1 + double(random() >> 12) * 0x1p-52;
    return static_cast<T>(std::ldexp(random() % 2 == 0 ? unit : -unit, from + int(random() % unsigned(to - from))));
  };
  for (int i = 0; i < 400000; ++i) {
    const int least = i % 2 == 0 ? -20 : Limits::min_exponent;
    const T y = some(least, least + 40);
    T x = some(least - 4, least + 40 + Limits::digits);
    if (i % 3 == 0) x = static_cast<T>(std::floor(x / y)) * y;  // about a multiple
    if (i % 9 == 0) x = std::nextafter(x, i % 2 == 0 ? infinity : -infinity);
    const T quotient = std::fabs(x / y);
    T expected = std::fmod(x, y);
    if (expected != 0 && (expected < 0) != (y < 0)) expected += y;
    const T found = modulo(x, y);
    if (quotient < 1 / Limits::epsilon()) {
      ASSERT_EQ(found, expected) << std::hexfloat << x << " " << y;
    } else {
      ASSERT_TRUE(found == 0 || found == expected) << std::hexfloat << x << " " << y << " " << found;
    }
  }
  EXPECT_EQ(modulo(Limits::max(), Limits::denorm_min()), 0);
  EXPECT_EQ(modulo(-Limits::max(), Limits::min()), 0);
}

}  // namespace
}  // namespace lockstep::math

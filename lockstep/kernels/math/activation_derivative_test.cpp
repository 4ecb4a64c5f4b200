// The derivatives of the activations against finite differences of the activations in wider arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/math/detail/reference.h"

namespace lockstep {
namespace {

// The fourth-order difference (8 (f(x+h) - f(x-h)) - (f(x+2h) - f(x-2h))) / 12h is off by h^4 |f'''''| / 30, and no
// activation's fifth derivative exceeds 120 (5! for softsign; 16 for tanh). Rounding of f, 1.5 2^-64 (1 + |x|) / h, is
// far below the rounding of the derivative in float64, of which there are at most eight.
TEST(ActivationDerivative, agrees_with_finite_differences) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "long double is double here";
  const long double h = 0x1p-10L;
  for (const Activation& activation : all_activations()) {
    const auto f = [&](long double x) {
      return math::reference_activation<long double>(activation.kind, activation.alpha, x);
    };
    for (double x = -9.03; x < 9; x += 0.0371) {
      const bool at_kink = std::fabs(x) < 0.01 || std::fabs(std::fabs(x) - 3) < 0.01;
      if (at_kink) continue;
      const long double difference = (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
      const double bound = double(h * h * h * h) * 120 / 30 + 8 * (1 + std::fabs(x)) * 0x1p-53;
      EXPECT_NEAR(activate_derivative(activation, x), double(difference), bound) << to_string(activation) << " " << x;
    }
  }
}

TEST(ActivationDerivative, float32_is_the_rounded_float64_one_to_a_few_ulp) {
  for (const Activation& activation : all_activations()) {
    for (float x = -9; x < 9; x += 0.03125f) {
      // eight roundings of 2^-24 of terms of size up to |x|, and those of alpha
      const double bound = 10 * 0x1p-24 * (1 + std::fabs(double(x)));
      EXPECT_NEAR(activate_derivative(activation, x), activate_derivative(activation, double(x)), bound)
          << to_string(activation) << " " << x;
    }
  }
}

TEST(ActivationDerivative, saturates_at_infinity_and_keeps_nan) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Activation& activation : all_activations()) {
    const double nan_slope = activate_derivative(activation, std::numeric_limits<double>::quiet_NaN());
    if (activation.kind == ActivationKind::identity) {
      EXPECT_EQ(nan_slope, 1);
    } else {
      EXPECT_TRUE(std::isnan(nan_slope)) << to_string(activation);
    }
    if (activation.kind == ActivationKind::sin || activation.kind == ActivationKind::square) continue;
    for (const double x : {infinity, -infinity}) {
      const double slope = activate_derivative(activation, x);
      EXPECT_TRUE(slope >= -0.0 && slope <= 1.06) << to_string(activation) << " " << x << " " << slope;
    }
  }
}

TEST(Activation, stays_finite_or_right_at_infinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Activation& activation : all_activations()) {
    for (const float x : {infinity, -infinity}) {
      const double expected = math::reference_activation<double>(activation.kind, float(activation.alpha), double(x));
      const double y = activate(activation, x);
      const bool same = std::isnan(expected) ? std::isnan(y) : y == static_cast<float>(expected);
      EXPECT_TRUE(same) << to_string(activation) << "(" << x << ") = " << y << ", not " << expected;
    }
  }
}

}  // namespace
}  // namespace lockstep

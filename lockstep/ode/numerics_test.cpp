// Step control against its statement in docs/numerics.md.
#include "lockstep/ode/numerics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace lockstep::ode {
namespace {

// "Step size", with every bound taken in float64.
TEST(StepControl, next_step_is_the_stated_power_of_the_error_within_its_bounds) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double h = 0.37;
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> exponent(-70, 70);
  std::vector<double> errors = {0, 1e-320, 1e-31, 1e-30,    1e-4, 0.64, 1, 1.0000000000000002,
                                4, 1e30,   1e31,  infinity, nan};
  for (int i = 0; i < 2000; ++i) errors.push_back(std::exp2(exponent(random)));
  for (const int power : {3, 5, 7, 8, 9}) {
    const auto [beta1, beta2] = scalar::control_exponents(power);
    for (const double error : errors) {
      for (const double log_error_old : {-6.643856189774724, -1.5, 0.0, 2.25}) {
        for (const bool rejected : {false, true}) {
          const auto step = scalar::decide_step<ScalarLane<double>>(error, h, log_error_old, rejected, beta1, beta2);
          const bool accept = error <= 1;
          const double bounded = std::isnan(error) ? 1e30 : std::clamp(error, 1e-30, 1e30);
          const float log_error = 0.5f * math::log2(static_cast<float>(bounded));
          const float base = std::fma(-beta1, log_error, -0.32192809488736235f);
          const float with_memory = std::fma(beta2, static_cast<float>(log_error_old), base);
          const double most = accept && !rejected ? std::log2(10.0) : 0;
          const double kept = std::clamp<double>(accept ? with_memory : base, -std::log2(5.0), most);
          ASSERT_EQ(step.accept, accept) << error;
          ASSERT_EQ(step.h_next, h * static_cast<double>(math::exp2(static_cast<float>(kept)))) << error;
          ASSERT_EQ(step.log_error, std::max(static_cast<double>(log_error), -6.643856189774724)) << error;
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::ode

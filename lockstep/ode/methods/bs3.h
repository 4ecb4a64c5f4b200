// Bogacki and Shampine's pair of orders 3 and 2.
#pragma once

#include <string_view>

#include "lockstep/ode/methods/coefficients.h"

namespace lockstep::ode {

struct Bs3 {
  static constexpr std::string_view kName = "bs3";
  static constexpr std::string_view kTitle = "Bogacki-Shampine 3(2)";
  static constexpr std::string_view kSource =
      "Bogacki & Shampine 1989, A 3(2) pair of Runge-Kutta formulas, Appl. Math. Lett. 2(4), 321-325";
  static constexpr int kOrder = 3;
  static constexpr int kErrorOrder = 2;
  static constexpr int kInterpolantOrder = 3;
  static constexpr bool kHasError3 = false;

  // b_hat = (7/24, 1/4, 1/3, 1/8).
  static LOCKSTEP_HOST_DEVICE constexpr Coefficients<4, 0, 3> coefficients() {
    return with_hermite<4>({
        .c = {0.0, 0.5, 0.75, 1.0},
        .a = {{}, {0.5}, {0.0, 0.75}, {2.0 / 9, 1.0 / 3, 4.0 / 9}},
        .error = {-5.0 / 72, 1.0 / 12, 1.0 / 9, -1.0 / 8},
    });
  }
};

}  // namespace lockstep::ode

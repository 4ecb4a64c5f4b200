// The classical Runge-Kutta method, order 4, fixed steps only.
#pragma once

#include <string_view>

#include "lockstep/ode/methods/coefficients.h"

namespace lockstep::ode {

struct Rk4 {
  static constexpr std::string_view kName = "rk4";
  static constexpr std::string_view kTitle = "Runge-Kutta 4";
  static constexpr std::string_view kSource = "Kutta 1901; Hairer, Norsett & Wanner I, II.1, table 1.2";
  static constexpr int kOrder = 4;
  static constexpr int kErrorOrder = 0;
  static constexpr int kInterpolantOrder = 3;
  static constexpr bool kHasError3 = false;

  static LOCKSTEP_HOST_DEVICE constexpr Coefficients<5, 0, 3> coefficients() {
    return with_hermite<5>({
        .c = {0.0, 0.5, 0.5, 1.0, 1.0},
        .a = {{}, {0.5}, {0.0, 0.5}, {0.0, 0.0, 1.0}, {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6}},
    });
  }
};

}  // namespace lockstep::ode

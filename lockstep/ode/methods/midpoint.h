// The explicit midpoint rule, order 2, with Euler's method embedded.
#pragma once

#include <string_view>

#include "lockstep/ode/methods/coefficients.h"

namespace lockstep::ode {

struct Midpoint {
  static constexpr std::string_view kName = "midpoint";
  static constexpr std::string_view kTitle = "explicit midpoint 2(1)";
  static constexpr std::string_view kSource = "Runge 1895; Hairer, Norsett & Wanner I, II.1 (1.4)";
  static constexpr int kOrder = 2;
  static constexpr int kErrorOrder = 1;
  static constexpr int kInterpolantOrder = 2;
  static constexpr bool kHasError3 = false;

  static LOCKSTEP_HOST_DEVICE constexpr Coefficients<3, 0, 3> coefficients() {
    return with_hermite<3>({
        .c = {0.0, 0.5, 1.0},
        .a = {{}, {0.5}, {0.0, 1.0}},
        .error = {-1.0, 1.0, 0.0},
    });
  }
};

}  // namespace lockstep::ode

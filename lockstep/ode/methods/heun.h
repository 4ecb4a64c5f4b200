// Heun's method (the explicit trapezoidal rule), order 2, with Euler's method embedded.
#pragma once

#include <string_view>

#include "lockstep/ode/methods/coefficients.h"

namespace lockstep::ode {

struct Heun {
  static constexpr std::string_view kName = "heun";
  static constexpr std::string_view kTitle = "Heun 2(1)";
  static constexpr std::string_view kSource = "Heun 1900; Hairer, Norsett & Wanner I, II.1, table 1.1 (improved Euler)";
  static constexpr int kOrder = 2;
  static constexpr int kErrorOrder = 1;
  static constexpr int kInterpolantOrder = 2;
  static constexpr bool kHasError3 = false;

  static LOCKSTEP_HOST_DEVICE constexpr Coefficients<3, 0, 3> coefficients() {
    return with_hermite<3>({
        .c = {0.0, 1.0, 1.0},
        .a = {{}, {1.0}, {0.5, 0.5}},
        .error = {-0.5, 0.5, 0.0},
    });
  }
};

}  // namespace lockstep::ode

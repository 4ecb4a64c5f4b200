// Euler's method, order 1: y1 = y0 + h f(t, y0).
#pragma once

#include <string_view>

#include "lockstep/ode/methods/coefficients.h"

namespace lockstep::ode {

struct Euler {
  static constexpr std::string_view kName = "euler";
  static constexpr std::string_view kTitle = "Euler 1";
  static constexpr std::string_view kSource = "Euler 1768; Hairer, Norsett & Wanner I, II.1 (1.1)";
  static constexpr int kOrder = 1;
  static constexpr int kErrorOrder = 0;
  static constexpr int kInterpolantOrder = 1;
  static constexpr bool kHasError3 = false;

  static LOCKSTEP_HOST_DEVICE constexpr Coefficients<2, 0, 3> coefficients() {
    return with_hermite<2>({
        .c = {0.0, 1.0},
        .a = {{}, {1.0}},
    });
  }
};

}  // namespace lockstep::ode

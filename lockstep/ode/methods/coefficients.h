// The numbers of a Runge-Kutta method, usable at compile time: the integrator's template unrolls them, the runtime
// Tableau views the same arrays, and device code copies them into a local constexpr.
#pragma once

#include "lockstep/kernels/lane/scalar_lane.h"

namespace lockstep::ode {

// Laid out and named as Tableau (tableau.h), whose formulas these are. `all` counts every stage: the s stages of the
// step, the last one at (t + h, y1), and those that only the interpolant needs.
//
// A method is a struct with this as `static constexpr` function coefficients(), and constants kName, kTitle, kSource,
// kOrder, kErrorOrder (0: no embedded formula), kInterpolantOrder, kHasError3. Take the numbers by
// `constexpr auto m = Tsit5::coefficients();` inside a function: a static constexpr array does not reach device code.
template <int stages, int interpolant_stages, int interpolant_degree>
struct Coefficients {
  static constexpr int kStages = stages;
  static constexpr int kAllStages = stages + interpolant_stages;
  static constexpr int kInterpolantDegree = interpolant_degree;

  double c[kAllStages] = {};
  double a[kAllStages][kAllStages] = {};  // row i, columns j < i; row stages - 1 holds the weights b
  double error[stages] = {};              // b - b_hat, all zero without an embedded formula
  double error3[stages] = {};
  double interpolant[kAllStages][interpolant_degree] = {};  // p_jm, m = 1 first
};

// What a linearly implicit method has besides, as implicit(); laid out as Tableau's.
template <int stages>
struct ImplicitCoefficients {
  double gamma;
  double coupling[stages][stages] = {};
  double time_weights[stages] = {};
};

// Fills in the cubic Hermite interpolant through (y0, k_1) and (y1, k_s), for methods that have none of their own:
//   y(t + theta h) = y0 + (3 theta^2 - 2 theta^3)(y1 - y0) + h (theta - 2 theta^2 + theta^3) k_1
//                       + h (theta^3 - theta^2) k_s
// with y1 - y0 = h sum_j b_j k_j. It is of order min(3, the method's order): a cubic's own error is
// (h^4 / 384) max |y''''|, and y1 and k_s enter with the method's error.
template <int stages>
LOCKSTEP_HOST_DEVICE constexpr Coefficients<stages, 0, 3> with_hermite(Coefficients<stages, 0, 3> m) {
  for (int j = 0; j < stages; ++j) {
    const double b = m.a[stages - 1][j];
    m.interpolant[j][0] = 0;
    m.interpolant[j][1] = 3 * b;
    m.interpolant[j][2] = -2 * b;
  }
  m.interpolant[0][0] += 1;
  m.interpolant[0][1] -= 2;
  m.interpolant[0][2] += 1;
  m.interpolant[stages - 1][1] -= 1;
  m.interpolant[stages - 1][2] += 1;
  return m;
}

}  // namespace lockstep::ode

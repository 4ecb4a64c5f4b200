// Dormand and Prince's pair of orders 5 and 4, with a continuously differentiable interpolant of order 4.
#pragma once

#include <string_view>

#include "lockstep/ode/methods/coefficients.h"

namespace lockstep::ode {

struct Dopri5 {
  static constexpr std::string_view kName = "dopri5";
  static constexpr std::string_view kTitle = "Dormand-Prince 5(4)";
  static constexpr std::string_view kSource =
      "Dormand & Prince 1980, J. Comput. Appl. Math. 6, 19-26, table 2; interpolant: Shampine 1986, Math. Comp. 46, "
      "135-150, as in Hairer, Norsett & Wanner I, II.6";
  static constexpr int kOrder = 5;
  static constexpr int kErrorOrder = 4;
  static constexpr int kInterpolantOrder = 4;
  static constexpr bool kHasError3 = false;

  // b_hat = (5179/57600, 0, 7571/16695, 393/640, -92097/339200, 187/2100, 1/40).
  // The interpolant's weights are derived exactly by derive_interpolants.py.
  static LOCKSTEP_HOST_DEVICE constexpr Coefficients<7, 0, 4> coefficients() {
    return {
        .c = {0.0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1.0, 1.0},
        .a = {{},
              {1.0 / 5},
              {3.0 / 40, 9.0 / 40},
              {44.0 / 45, -56.0 / 15, 32.0 / 9},
              {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
              {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
              {35.0 / 384, 0.0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}},
        .error = {71.0 / 57600, 0.0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40},
        .interpolant = {{1.0, -8048581381.0 / 2820520608, 8663915743.0 / 2820520608, -12715105075.0 / 11282082432},
                        {},
                        {0.0, 131558114200.0 / 32700410799, -68118460800.0 / 10900136933, 87487479700.0 / 32700410799},
                        {0.0, -1754552775.0 / 470086768, 14199869525.0 / 1410260304, -10690763975.0 / 1880347072},
                        {0.0, 127303824393.0 / 49829197408, -318862633887.0 / 49829197408,
                         701980252875.0 / 199316789632},
                        {0.0, -282668133.0 / 205662961, 2019193451.0 / 616988883, -1453857185.0 / 822651844},
                        {0.0, 40617522.0 / 29380423, -110615467.0 / 29380423, 69997945.0 / 29380423}},
    };
  }
};

}  // namespace lockstep::ode

// The Runge-Kutta-Chebyshev method of order 2 with 8 stages, for diffusion and other decay without oscillation.
#pragma once

#include <string_view>

#include "lockstep/ode/methods/coefficients.h"

namespace lockstep::ode {

struct Rkc8 {
  static constexpr std::string_view kName = "rkc8";
  static constexpr std::string_view kTitle = "Runge-Kutta-Chebyshev 2, 8 stages";
  static constexpr std::string_view kSource =
      "Sommeijer, Shampine & Verwer 1998, RKC: An explicit solver for parabolic PDEs, J. Comput. Appl. Math. 88, "
      "315-326, section 2";
  static constexpr int kOrder = 2;
  static constexpr int kErrorOrder = 2;
  static constexpr int kInterpolantOrder = 2;
  static constexpr bool kHasError3 = false;

  // By derive_chebyshev.py.
  static LOCKSTEP_HOST_DEVICE constexpr Coefficients<9, 0, 3> coefficients() {
    return with_hermite<9>({
        .c = {0.0, 0.01210208698923665, 0.048524714177996954, 0.12919294198963005, 0.24169819029886813,
              0.38561718921334787, 0.5604155278458688, 0.7654546452325762, 1.0},
        .a = {{},
              {0.01210208698923665},
              {-0.04875800607308348, 0.09728272025108044},
              {-0.2153235512264597, 0.22986140427377508, 0.11465508894231467},
              {-0.46291603416330973, 0.362263709441842, 0.24054587638007738, 0.1018046386402585},
              {-0.7796134168966391, 0.492426587337286, 0.3672632561307068, 0.20691545827542387, 0.0986253043665703},
              {-1.15939080115921, 0.6202454491004601, 0.4926554186540176, 0.3117608817607107, 0.19781665182405453,
               0.09732792766583573},
              {-1.5978513004061217, 0.7457416017266526, 0.6160523409824257, 0.4151830931555293, 0.2958991967229397,
               0.19380466302501237, 0.09662505002613823},
              {-2.0910744853404233, 0.8688959361389966, 0.7371557858023302, 0.5166909918987697, 0.392173917791578,
               0.28851077878174436, 0.19148438274832774, 0.09616269217867678}},
        .error = {2.0728595882723386, -0.6951167489111973, -0.5897246286418641, -0.4133527935190157,
                  -0.3137391342332624, -0.2308086230253955, -0.1531875061986622, -0.07693015374294142, 0.4},
    });
  }
};

}  // namespace lockstep::ode

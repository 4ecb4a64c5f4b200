// Tsitouras' pair of orders 5 and 4, with a continuously differentiable interpolant of order 4.
#pragma once

#include <string_view>

#include "lockstep/ode/methods/coefficients.h"

namespace lockstep::ode {

struct Tsit5 {
  static constexpr std::string_view kName = "tsit5";
  static constexpr std::string_view kTitle = "Tsitouras 5(4)";
  static constexpr std::string_view kSource =
      "Tsitouras 2011, Runge-Kutta pairs of order 5(4) satisfying only the first column simplifying assumption, "
      "Comput. Math. Appl. 62, 770-775, table 1 and section 3";
  static constexpr int kOrder = 5;
  static constexpr int kErrorOrder = 4;
  static constexpr int kInterpolantOrder = 4;
  static constexpr bool kHasError3 = false;

  // The paper prints 16 digits. These are the doubles nearest to the method's coefficients in 80 digits (as SciML's
  // OrdinaryDiffEq.jl gives them), which satisfy every order condition to 1e-83. The interpolant's free weights are the
  // paper's b_2 and b_7; the others follow from the conditions of order 4 (derive_interpolants.py). The error
  // weights sum to zero because b_hat_7 = 1/66.
  static LOCKSTEP_HOST_DEVICE constexpr Coefficients<7, 0, 4> coefficients() {
    return {
        .c = {0.0, 0.161, 0.327, 0.9, 0.9800255409045097, 1.0, 1.0},
        .a = {{},
              {0.161},
              {-0.008480655492356989, 0.335480655492357},
              {2.8971530571054935, -6.359448489975075, 4.3622954328695815},
              {5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525},
              {5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383},
              {0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081,
               2.324710524099774}},
        .error = {0.0017800110522257714, 0.0008164344596567469, -0.007880878010261997, 0.1447110071732629,
                  -0.5823571654525552, 0.45808210592918697, -1.0 / 66},
        .interpolant = {{1.0, -2.763706197274826, 2.9132554618219126, -1.0530884977290216},
                        {0.0, 0.1317, -0.2234, 0.1017},
                        {0.0, 3.9302962368947516, -5.941033872131505, 2.490627285651253},
                        {0.0, -12.411077166933676, 30.33818863028232, -16.548102889244902},
                        {0.0, 37.50931341651104, -88.1789048947664, 47.37952196281928},
                        {0.0, -27.896526289197286, 65.09189467479366, -34.87065786149661},
                        {0.0, 1.5, -4.0, 2.5}},
    };
  }
};

}  // namespace lockstep::ode

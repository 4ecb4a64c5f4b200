// Turns a method's compile-time numbers into the runtime view every engine can read. Private to ode/methods.
#pragma once

#include "lockstep/ode/tableau.h"

namespace lockstep::ode {

// The spans live as long as the program.
template <class Method>
const Tableau& make_tableau() {
  static constexpr auto kNumbers = Method::coefficients();
  constexpr auto all = static_cast<std::size_t>(kNumbers.kAllStages);
  constexpr auto stages = static_cast<std::size_t>(kNumbers.kStages);
  constexpr auto degree = static_cast<std::size_t>(kNumbers.kInterpolantDegree);
  static constexpr Tableau kTableau{
      .name = Method::kName,
      .title = Method::kTitle,
      .source = Method::kSource,
      .order = Method::kOrder,
      .error_order = Method::kErrorOrder,
      .stages = kNumbers.kStages,
      .interpolant_stages = kNumbers.kAllStages - kNumbers.kStages,
      .interpolant_degree = kNumbers.kInterpolantDegree,
      .interpolant_order = Method::kInterpolantOrder,
      .a = {&kNumbers.a[0][0], all * all},
      .c = {kNumbers.c, all},
      .error = {kNumbers.error, Method::kErrorOrder > 0 ? stages : 0},
      .error3 = {kNumbers.error3, Method::kHasError3 ? stages : 0},
      .interpolant = {&kNumbers.interpolant[0][0], all * degree},
  };
  return kTableau;
}

}  // namespace lockstep::ode

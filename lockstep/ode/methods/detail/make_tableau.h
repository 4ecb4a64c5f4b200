// Turns a method's compile-time numbers into the runtime view every engine can read. Private to ode/methods.
#pragma once

#include "lockstep/ode/tableau.h"

namespace lockstep::ode {

// They live as long as the program, and so do views of them.
template <class Method>
inline constexpr auto kNumbersOf = Method::coefficients();
template <class Method>
inline constexpr auto kImplicitNumbersOf = Method::implicit();

template <class Method>
constexpr Tableau tableau_of() {
  constexpr const auto& numbers = kNumbersOf<Method>;
  constexpr auto all = static_cast<std::size_t>(numbers.kAllStages);
  constexpr auto stages = static_cast<std::size_t>(numbers.kStages);
  constexpr auto degree = static_cast<std::size_t>(numbers.kInterpolantDegree);
  Tableau tableau{
      .name = Method::kName,
      .title = Method::kTitle,
      .source = Method::kSource,
      .order = Method::kOrder,
      .error_order = Method::kErrorOrder,
      .stages = numbers.kStages,
      .interpolant_stages = numbers.kAllStages - numbers.kStages,
      .interpolant_degree = numbers.kInterpolantDegree,
      .interpolant_order = Method::kInterpolantOrder,
      .a = {&numbers.a[0][0], all * all},
      .c = {numbers.c, all},
      .error = {numbers.error, Method::kErrorOrder > 0 ? stages : 0},
      .error3 = {numbers.error3, Method::kHasError3 ? stages : 0},
      .interpolant = {&numbers.interpolant[0][0], all * degree},
  };
  if constexpr (requires { Method::implicit(); }) {
    constexpr const auto& more = kImplicitNumbersOf<Method>;
    tableau.gamma = more.gamma;
    tableau.coupling = {&more.coupling[0][0], stages * stages};
    tableau.time_weights = {more.time_weights, stages};
  }
  return tableau;
}

template <class Method>
const Tableau& make_tableau() {
  static constexpr Tableau kTableau = tableau_of<Method>();
  return kTableau;
}

}  // namespace lockstep::ode

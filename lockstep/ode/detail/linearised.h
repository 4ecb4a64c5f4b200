// Least squares of parameters, linearised about a fit: which of them the data determine, and how well.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/ode/detail/least_squares.h"

namespace lockstep::ode::detail {

struct Linearised {
  std::vector<std::vector<double>> undetermined;  // ParameterUncertainty's, [direction][kept parameter]
  std::size_t rank = 0;                           // how many combinations the data determine
  // [kept parameter]; of those that are not determined NaN.
  std::vector<double> errors;        // for measurements of deviation 1
  std::vector<double> step;          // to the least sum of squares
  std::vector<double> correlations;  // [kept parameter][kept parameter]
};

// Of rows [by parameter..., residual], of which the columns `kept` and the last are looked at; the others stay where
// they are. `effects` [parameter]: what each has by itself, in which directions and `smallest` are measured. `values`
// [parameter].
//
// With the rows' singular values s_k in these units and right vectors v_k, directions with s_k <= smallest s_0 are the
// null space, along which the data say nothing. A parameter is determined where its unit vector has no part in it, and
// has its variance from the others alone, the pseudo-inverse's: sum over these of (v_k)_i^2 / s_k^2. Rows that are good
// to `smallest` turn the null space by that over the least s_k of the others (Davis & Kahan, SIAM J. Numer. Anal. 7
// (1970) 1): a part up to it, and up to 1e-3, is none.
Linearised linearise(const Rows& all, std::span<const double> effects, std::span<const std::size_t> kept,
                     std::span<const double> values, double smallest);

}  // namespace lockstep::ode::detail

// How solves vary with the weights of a right-hand side: by differences, a column for each weight.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/core/run_control.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode::detail {

// The right-hand side at other weights than its own.
Rhs at_weights(Rhs rhs, std::span<const double> weights);

// What columns are good to, relative to their lengths: see weight_columns().
inline constexpr double kColumnsAreGoodTo = 1e-4;

// [trajectory][time][component][weight]: derivatives of the saved states by each of `weights`, at which `problem.rhs`
// is solved in float64. Central differences over 1e-3 of a weight, or of 1 where it is smaller: what is left out is
// their square, 1e-6, times a third derivative that is of the size of the first, as weights of nets are made to be of
// about 1. Adaptive solves take a hundredth of their tolerances, so that a solution of 1e-6 is good to 1e-8 and the
// quotient to 1e-5. Nothing where a solve does not get to its end at one of them.
// Throws Error (cancelled) when control.cancel is requested.
std::optional<std::vector<double>> weight_columns(Problem problem, std::span<const double> weights, Options options,
                                                  const RunControl& control);

}  // namespace lockstep::ode::detail

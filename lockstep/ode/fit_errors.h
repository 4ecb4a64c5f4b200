// How far solves lie from trajectories that a right-hand side was fitted to, or that were kept from the fit.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lockstep/ode/fit.h"
#include "lockstep/train/errors.h"

namespace lockstep::ode {

// States at the data's points, [trajectory][point][component], of solves with these weights. They begin at
// `initial_states` [trajectory][component], or at the data's first points where there are none, and have the resets of
// FitOptions. NaN where a solve did not get there. `unresolved`, if given, is set as Gradients::unresolved. Throws
// Error (invalid_argument, unsupported), as FitLoss, and (cancelled) when control.cancel is requested.
std::vector<double> fitted_states(const Rhs& rhs, std::span<const double> weights, const TrajectoryData& data,
                                  const Options& options, std::span<const double> initial_states = {},
                                  const std::vector<Reset>& resets = {}, const RunControl& control = {},
                                  std::optional<UnresolvedDerivatives>* unresolved = nullptr);

struct FitErrors {
  // Of all points but the first ones, where the solves begin. `largest_row` is a point, counted through the
  // trajectories.
  std::vector<train::ColumnErrors> components;
  // [trajectory]: root of the mean square over points and components, each in units of its spread, those that do not
  // vary left out. Infinite where the solve did not reach the end.
  std::vector<double> trajectories;
  // With thresholds, numbers whose errors are beyond theirs: how many, of how many that were compared, and some that
  // are farthest, these first. First points are among them where the solves did not begin at them.
  struct Outlier {
    std::size_t row, component;  // row: a point, counted through the trajectories
    double size;                 // of the error, in thresholds
  };
  std::vector<Outlier> outliers;
  std::size_t beyond = 0, compared = 0;
};

// `states` as fitted_states() has them; `spreads` [component]: train::column_spreads() of the training data.
// `thresholds` [component]: huber_thresholds() of these, or none.
FitErrors fit_errors(const TrajectoryData& data, std::span<const double> states, std::span<const double> spreads,
                     std::span<const double> thresholds = {});

}  // namespace lockstep::ode

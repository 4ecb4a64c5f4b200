// How good a fit to trajectories is: errors of each component, the worst trajectories, curves for a picture.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lockstep/cli/training_data.h"
#include "lockstep/cli/training_task.h"
#include "lockstep/ode/fit_errors.h"

namespace lockstep::cli {

// One kind of data: as the file has them, as the library takes them, and where their solves begin; empty: at the first
// points.
struct JudgedTrajectories {
  const TrajectoryTable& table;
  ode::TrajectoryData data;
  std::vector<double> starts;
};

// What their solves are made of.
struct FittedEquations {
  const ode::Rhs& rhs;
  std::span<const double> weights;
  const ode::Options& options;
  const std::vector<ode::Reset>& resets;  // as ode::fitted_states() has them
  RunControl control = {};
  std::optional<double> huber_threshold = {};  // of the loss, in standard deviations
  std::vector<double> thresholds = {};         // [component], ode::huber_thresholds() with it; or none
  // [component], in the data's unit, where the data alone say them: ode::measurement_errors(); or none.
  std::vector<double> found_errors = {};
};

// `validation` may have no trajectories.
Judgement judge_fit(const FittedEquations& equations, const JudgedTrajectories& training,
                    const JudgedTrajectories& validation);

}  // namespace lockstep::cli

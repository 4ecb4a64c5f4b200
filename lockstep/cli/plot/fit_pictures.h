// Pictures of how good a fit is, as gnuplot scripts: data over fitted curves, predicted over true.
#pragma once

#include <string>
#include <vector>

#include "lockstep/cli/plot/figures.h"

namespace lockstep::cli {

struct FittedTrajectory {
  std::string title;  // "validation, median: trajectory 3"
  bool is_validation = false;
  std::vector<double> times, data;         // [point], [point][component]; NaN where not measured
  std::vector<double> sigma;               // as data, their standard deviations; or empty
  std::vector<double> curve_times, curve;  // likewise, finer; NaN where the solve did not get there
};
struct FittedCurves {
  std::vector<std::string> names;       // [component]: those shown
  std::vector<std::string> units = {};  // [component], or empty
  std::string time_name, time_unit = {};
  std::vector<FittedTrajectory> trajectories;
};
// A column for each trajectory, a row for each component; one axis for all of a row.
Figure fitted_curves(const FittedCurves& curves, const std::string& title, const std::string& subtitle);

struct PredictedOutput {
  std::string name, unit;
  std::string summary;  // above its panel: "RMS 2.1 %, validation 3.4 %"
  std::vector<double> training_true, training_predicted, validation_true, validation_predicted;
};
// A panel for each output, of `total` there are: what is on the diagonal is right.
Figure predicted_over_true(const std::vector<PredictedOutput>& outputs, std::size_t total, const std::string& title,
                           const std::string& subtitle);

}  // namespace lockstep::cli

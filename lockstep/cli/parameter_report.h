// What a training says of the parameters it found: standard errors, 95 % intervals, correlations, and what they hold
// for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/fit_report.h"
#include "lockstep/ode/parameter_uncertainty.h"

namespace lockstep::cli {

// Where trajectories start: at the data's first points, taken to be exact; as the training file says, some of them or
// all; or where the fit has them, all others than those that the file says.
enum class StartsOf { data, data_and_file, file, fit };
constexpr bool are_exact(StartsOf starts) { return starts == StartsOf::data || starts == StartsOf::data_and_file; }

struct ParameterReport {
  std::vector<std::string> names;   // [trained parameter]; none: no parameters were trained
  std::vector<std::string> units;   // likewise, each empty where it is not known; or none
  ode::ParameterUncertainty found;  // where `refused` is empty
  std::string refused;              // why there are no errors
  bool unconverged = false;         // that is it: the fit ended far from the least sum of squares
  std::string unexplained;          // what of the data the fit does not explain; empty where it does
  std::vector<std::string> jumps;   // those that move a jump: derivatives do not see what that does
  bool jumps_at_states = false;     // the right-hand side does, which derivatives do not see either
  StartsOf starts = StartsOf::fit;
  std::optional<double> huber_threshold = {};  // of the loss, in standard deviations
  bool stated_errors = false;  // sigma is the size of measurement errors, not their ratio
  bool implied_errors = false;  // sigma is given, and nothing says which of the two it is
};

inline constexpr const char* kParametersKey = "training_parameters";             // in a model's metadata
inline constexpr const char* kParametersNotesKey = "training_parameters_notes";  // likewise

// As the metadata hold it: name,value,standard_error,lower,upper and a column of correlations with each parameter.
std::string to_csv(const ParameterReport& report);
void store(const ParameterReport& report, std::map<std::string, std::string>& metadata);

// Errors presuppose a fit: takes them away where it explains little of any data, and has them say so where of some.
void presuppose_fit(ParameterReport& report, const FitReport& fit);
// They presuppose that it ended at the least sum of squares: takes them away where that is more than a standard error
// off, beside nets more than two, and from `fit` what it says of sigma, as neither the model nor sigma is to blame
// then.
void presuppose_minimum(ParameterReport& report, FitReport& fit);

enum class Notes { all, harms };  // harms: what is amiss with the fit or the model, alone

// For people: what the figures hold for, or why there are none.
std::vector<std::string> note_lines(const ParameterReport& report, Notes which = Notes::all);
// The same below a table of the parameters. None where none were trained.
std::vector<std::string> table_lines(const ParameterReport& report);

}  // namespace lockstep::cli

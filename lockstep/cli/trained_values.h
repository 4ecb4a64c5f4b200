// Parameters that a training found: their values, and a built-in system with them as a problem file has it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/cli/parameter_report.h"
#include "lockstep/cli/training_file.h"
#include "lockstep/cli/training_task.h"
#include "lockstep/ode/trained_parameters.h"

namespace lockstep::cli {

// `names` of all parameters; `numbers` are what training moved, one for each of `trained`.
template <class T>
std::vector<TrainedValue> trained_values(const std::vector<std::string>& names,
                                         std::span<const ode::TrainedParameter> trained, std::span<const T> numbers);

// The beginning of a problem file: the system or the model that was written, a system's net if there is one and all its
// parameters with the trained values, and resets; before it, as comments, how well the data determine the parameters.
std::string trained_problem_text(const TrainingFile& file, const std::vector<TrainedValue>& values,
                                 const ParameterReport& report);

}  // namespace lockstep::cli

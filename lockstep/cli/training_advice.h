// What the numbers that a training learns from let one expect: columns that will not be learned as they stand, and what
// to write about them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/cli/training_data.h"
#include "lockstep/cli/training_file.h"

namespace lockstep::cli {

// Sentences for people, none where there is nothing to say.
std::vector<std::string> advice(const TrainingFile& file, const RegressionTable& table);
std::vector<std::string> advice(const TrainingFile& file, const TrajectoryTable& table);

}  // namespace lockstep::cli

// What the numbers that a training learns from let one expect: columns that will not be learned as they stand, and what
// to write about them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/training_data.h"
#include "lockstep/cli/training_file.h"
#include "lockstep/train/training.h"

namespace lockstep::cli {

// Sentences for people, none where there is nothing to say. `nets` are those that training starts from: one that the
// file names has its own normalisation.
std::vector<std::string> advice(const TrainingFile& file, const RegressionTable& table,
                                const std::vector<nn::Model>& nets);
std::vector<std::string> advice(const TrainingFile& file, const TrajectoryTable& table,
                                const std::vector<nn::Model>& nets);
// Of the above, what to say against states, or inputs of nets in equations, of a size that nets do not learn from;
// empty where there are none, or where they are normalised.
std::string normalise_advice(const TrainingFile& file, const TrajectoryTable& table,
                             const std::vector<nn::Model>& nets);
// Says of states that are called otherwise than the components that they are, by their places, which they are.
std::optional<std::string> renamed_note(const std::vector<std::string>& components,
                                        const std::vector<std::string>& states);

// Of a training whose last phase ended so; empty but where float32's rounding ended it.
std::string advice_on_end(const TrainingFile& file, const train::IterationReport& last);

}  // namespace lockstep::cli

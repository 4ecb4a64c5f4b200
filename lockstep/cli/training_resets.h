// [[resets]] of a training file: what the library takes of them, and how a problem file has them again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/training_data.h"
#include "lockstep/cli/training_file.h"
#include "lockstep/nn/equations.h"
#include "lockstep/ode/problem.h"

namespace lockstep::cli {

struct ResetsToTrain {
  std::vector<ode::Reset> untrained, trained;  // all parameters are a trajectory's; without those trained
  std::string text;                            // "1 reset: v = -e * v where x falls through 0", "" for none: for people
};

// Beside a right-hand side with all its parameters, over states as the data call them.
struct UntrainedRhs {
  const ode::Rhs& function;
  const std::vector<std::string>& states;
  const std::vector<std::string>& parameters;
  const std::vector<ode::TrainedParameter>& trained;
};
// `system` where there are equations, whose names resets read. Throws Error naming file, line and key, as make_reset(),
// and for a reset that calls a net which is trained.
ResetsToTrain resets_to_train(const TrainingFile& file, const UntrainedRhs& rhs, const nn::Equations* system);

// What to do about measurements of states that resets change, where these have no sigma; for people.
std::optional<std::string> jump_advice(const TrainingFile& file, const TrajectoryTable& data);

// As tables of a problem file over the model that training writes, "" for none. Where one reads what that does not
// tell, a definition, a net or a table, a comment says so instead.
std::string resets_as_tables(const TrainingFile& file);

}  // namespace lockstep::cli

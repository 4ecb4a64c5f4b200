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
  bool reads_time = false;                     // one of them
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

// States that are measured behind the first points: those that resets change at once, and whether there are others.
struct JumpingStates {
  std::vector<std::size_t> jumping;
  bool others = false;
  bool wait() const { return !jumping.empty() && others; }  // until the others are met
};
JumpingStates jumping_states(const TrainingFile& file, const TrajectoryTable& data);

// Of a file that names none: ode::growing_phases(), in which states that jump do not count where others are measured,
// and then whole trajectories of all. `weights` of components, or none.
std::vector<ode::FitPhase> phases_with_resets(const TrainingFile& file, const TrajectoryTable& data,
                                              std::size_t longest, std::vector<double> weights);

// What to do about measurements of states that resets change, where these neither wait nor have a sigma; for people.
std::optional<std::string> jump_advice(const TrainingFile& file, const TrajectoryTable& data);

// As tables of a problem file over the model that training writes, "" for none. Where one reads what that does not
// tell, a definition, a net or a table, a comment says so instead.
std::string resets_as_tables(const TrainingFile& file);

}  // namespace lockstep::cli

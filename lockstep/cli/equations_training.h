// A net that equations call, to be trained inside them.
#pragma once

#include <vector>

#include "lockstep/cli/training_data.h"
#include "lockstep/cli/training_file.h"
#include "lockstep/nn/model.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::cli {

struct EquationsToTrain {
  nn::Model net;  // what training starts from: inputs and outputs as the equations call it
  ode::Rhs rhs;   // the equations with it; its weights are the net's
  std::vector<double> parameters;
};

// Of a file with equations. Inputs are scaled, where that is asked for, by what the equations hand the net over the
// data.
EquationsToTrain equations_to_train(const TrainingFile& file, const TrajectoryTable& data);

}  // namespace lockstep::cli

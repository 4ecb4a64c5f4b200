// Equations with what is to be trained in them: nets that they call, parameters of their own.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/cli/training_data.h"
#include "lockstep/cli/training_file.h"
#include "lockstep/cli/training_task.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/guarded_calls.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/time_features.h"
#include "lockstep/ode/state_function.h"
#include "lockstep/ode/trained_parameters.h"

namespace lockstep::cli {

struct EquationsToTrain {
  // What training starts from, one for each of the file's nets: inputs and outputs as the equations call them.
  std::vector<nn::Model> nets;
  std::vector<ode::TrainedParameter> trained;
  std::vector<std::string> parameter_names() const;
  ode::Rhs untrained;                 // all parameters are a trajectory's, its weights the nets'
  ode::Rhs rhs;                       // its weights are the nets', then the trained parameters
  std::vector<double> parameters;     // the others
  nn::Equations system;               // with all nets, those that are kept first
  std::vector<nn::KnownTimes> times;  // of nets that are kept and tables, where they read the time
  std::vector<nn::Feature> states;    // with their range in the data, where no net's range says it better
  std::optional<nn::TimeFeature> time_feature;
  bool reads_time = false;
};

// Of a file with equations. Inputs are scaled, where that is asked for, by what the equations hand the nets over the
// data.
EquationsToTrain equations_to_train(const TrainingFile& file, const TrajectoryTable& data);

// The right-hand side with these nets and values: a model that stands by itself.
nn::Model trained_equations(const TrainingFile& file, const EquationsToTrain& equations,
                            const std::vector<nn::Model>& nets, const std::vector<TrainedValue>& values);

}  // namespace lockstep::cli

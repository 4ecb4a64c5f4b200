// The key `starts` of a training file: components whose starts are numbers, or expressions of parameters.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/cli/toml_value.h"
#include "lockstep/nn/equations.h"
#include "lockstep/ode/given_starts.h"
#include "lockstep/ode/trained_parameters.h"

namespace lockstep::cli {

struct StartsSection {
  std::string where;
  std::vector<nn::Equation> of;  // by the names of states

  bool has(const std::string& state) const;
  // Whether its start is a number, whatever these parameters are.
  bool is_number(const std::string& state, const std::vector<std::string>& parameters) const;
  std::string where_of(const std::string& state) const;  // what messages call its start
  // Throws Error for a start of something else.
  void require_among(const std::vector<std::string>& states) const;
};

StartsSection read_starts(const TomlValue& data);

// What the library takes; nothing where no starts are given. Throws Error naming what is none of the states, or of the
// parameters, and the start that reads the time.
struct StartsToTrain {
  std::optional<ode::GivenStarts> untrained, trained;  // all parameters are a trajectory's; without those trained
};
StartsToTrain starts_to_train(const StartsSection& section, const std::vector<std::string>& states,
                              const std::vector<std::string>& parameters,
                              const std::vector<ode::TrainedParameter>& trained);

}  // namespace lockstep::cli

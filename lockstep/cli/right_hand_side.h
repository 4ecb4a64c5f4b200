// The right-hand side a problem file names: a model, a built-in system, their sum, or equations.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/cli/problem_file.h"
#include "lockstep/nn/guarded_calls.h"
#include "lockstep/nn/time_features.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::cli {

// What results keep of a model. Made when first asked for: of a solve in memory nobody may ever ask, and it takes
// longer than a few steps of a wide net. Many threads may ask at once.
class StoredModel {
 public:
  explicit StoredModel(std::shared_ptr<const nn::Model> model) : model_(std::move(model)) {}
  const std::string& digest() const;
  const std::vector<std::byte>& bytes() const;  // as safetensors, else as a plan file

 private:
  std::shared_ptr<const nn::Model> model_;
  mutable std::once_flag digest_once_, bytes_once_;
  mutable std::string digest_;
  mutable std::vector<std::byte> bytes_;
};

struct NamedRhs {
  ode::Rhs function;
  std::string title;                                      // "Lorenz 1963", "net lorenz_tanh_3_100_3"
  std::vector<std::string> component_names;               // [component]
  std::vector<std::string> component_units;               // [component]; empty where any is unknown
  std::vector<std::string> parameter_names;               // [parameter]
  std::vector<std::optional<double>> default_parameters;  // [parameter]
  // Of a built-in system without a net; empty otherwise.
  std::vector<double> default_initial_state;
  std::optional<double> default_end_time;
  // Of the net: what it was trained on and what to do outside; no range where the model does not say.
  ode::Range range;
  ode::GuardAction guard = ode::GuardAction::ignore;
  std::vector<nn::KnownTimes> times;                          // of nets and tables that read the time
  std::optional<nn::TimeFeature> time_feature;                // of those tables
  std::vector<std::string> notes;                             // for people: what the guard does not look at
  std::shared_ptr<const StoredModel> stored;                  // of the model, or none
  bool reads_time = false;
  nn::Equations names;    // what an expression may name: texts are those of definitions alone
  std::string equations;  // as text, a line for each; empty where there are none
};

// What load_rhs() makes of a model in memory, for the next problem with it: who solves again and again need not wait
// for it each time.
struct KeptNet {
  struct Made {
    std::string name;  // the model's, or what the problem calls it
    ode::Rhs function;
    std::shared_ptr<const StoredModel> stored;
  };
  std::mutex mutex;
  std::optional<Made> made[2];  // without and with time as an input
};

// Of the ports of a model that is a right-hand side, the state's, then the parameters' and the time's.
std::vector<nn::Feature> rhs_features(std::vector<nn::Port> ports);

// Throws Error naming the field of the problem file: an unreadable model, an unknown system, shapes that do not fit.
NamedRhs load_rhs(const ProblemFile& file);

}  // namespace lockstep::cli

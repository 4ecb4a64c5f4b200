// TRAIN.toml: data, a net and how to train it as a text file. docs/training_file.md is the reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/cli/given_starts.h"
#include "lockstep/cli/impulses_section.h"
#include "lockstep/cli/known_parameters.h"
#include "lockstep/cli/measurement_sigma.h"
#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/resets_section.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/system_info.h"
#include "lockstep/ode/trained_parameters.h"
#include "lockstep/train/initialise.h"
#include "lockstep/train/table.h"
#include "lockstep/train/training.h"

namespace lockstep::cli {

struct NetSection {
  std::string where;
  std::string called = "net";                         // by the equations
  std::optional<Given<std::filesystem::path>> start;  // a model to go on from; then neither of the next two
  std::shared_ptr<const nn::Model> loaded;  // what `start` names, where a caller has it in memory; else it is read
  std::vector<std::size_t> hidden;          // widths of the hidden layers
  std::vector<Activation> activations;      // one for each layer, the last among them
  train::Initialisation initialisation = train::Initialisation::glorot_uniform;
  std::uint64_t seed = 1;  // of the initial weights
  std::string name;        // of the model
};

enum class Normalisation { none, standard, min_max };

struct DataSection {
  std::string where;
  Given<std::filesystem::path> file;  // CSV, or HDF5 by its content
  // Columns of a CSV, in order; the name of one dataset [sample, feature] of an HDF5 file.
  std::vector<std::string> inputs;
  std::vector<std::string> targets;
  // Of a neural ODE instead: columns of a CSV, or datasets time and state of an HDF5 file.
  std::vector<std::string> states;
  std::string time;
  std::string trajectory;  // column of a CSV that says of which one a row is
  std::string where_inputs, where_targets, where_states, where_time, where_trajectory;
  Normalisation normalisation = Normalisation::none;
  double validation = 0;                 // share of rows or trajectories kept from training
  std::vector<Given<std::string>> held;  // or trajectories, by what their column calls them, without one by number
  std::string where_held;                // the list of these
  std::optional<Given<std::filesystem::path>> validation_file;    // or a file with rows or trajectories of their own
  std::vector<std::pair<std::string, Given<std::string>>> units;  // of columns, by name
  SigmaSection sigma;                                             // of states or targets
  std::optional<train::MissingNumbers>
      missing;           // of those: as_nan of trajectories, refuse of a regression if not given
  StartsSection starts;  // of a neural ODE's states, those that start neither at the data nor free
  KnownParameters parameters;  // of a neural ODE, each trajectory's own
};

// Net and, where named, built-in system: du/dt = system(u) + net(u). Or equations that call nets by name.
struct OdeSection {
  std::optional<EquationsSection> equations;
  std::optional<Given<std::string>> system;
  std::vector<double> parameters;              // of the system; empty: its own
  std::vector<ode::TrainedParameter> trained;  // those of them that training finds, their starts among them
  bool with_time = false;                      // time is the net's last input
};

// Of a regression, over rows and targets. A neural ODE's is the sum of squares over points and components, averaged
// over trajectories, for which mean_squared stands, or huber.
enum class LossKind { mean_squared, sum_squared, mean_absolute, mean_huber, huber };

// A phase and what the task makes of it.
struct TrainingPhase {
  train::Phase phase;
  std::size_t batch = 0;             // rows, or trajectories, in a step; 0: all
  std::size_t segment = 0;           // of a neural ODE: intervals solved at a time (multiple shooting); 0: all
  std::size_t horizon = 0;           // and: points of each trajectory used; 0: all
  std::optional<double> dt;          // and: fixed steps in this phase
  std::optional<double> continuity;  // and: free states at the segments' starts, with this weight of the gaps
  std::string where;
};

struct TrainingOutput {
  std::string where;
  std::filesystem::path stem;  // "net": net.h5, net.safetensors, net_checkpoint.h5, net_loss.png
  bool overwrite = false;
  double checkpoint_seconds = 30;  // between checkpoints
};

struct TrainingFile {
  std::filesystem::path path;
  // One; with equations several, in the order of the file, or none where there are parameters to be trained.
  std::vector<NetSection> nets;
  std::uint64_t seed = 1;  // of split and shuffling
  DataSection data;
  std::vector<ImpulsesSection> impulses;  // of a neural ODE's states
  std::vector<ResetSection> resets;       // likewise
  std::optional<OdeSection> ode;  // absent: a regression
  LossKind loss = LossKind::mean_squared;
  // Of mean_huber: in sigma, else in spreads of normalised targets, else in their unit. Of huber: in sigma, else in
  // ode::measurement_errors().
  double huber_threshold = 1;
  std::vector<TrainingPhase> phases;  // empty: those that ode::recommended_phases or noisy_phases give
  bool noisy = false;                 // of these, which
  std::optional<double> target;       // of the recommended ones
  ode::FailedTrajectories failed = ode::FailedTrajectories::stop;
  ode::Options options;     // method, precision, threads, target
  std::string where_atol;   // where it is given; empty: it follows from the size of the data
  TrainingOutput output;
};

// Relative paths to read are relative to the file's folder, the output's to the current one. Throws Error (file) when
// it cannot be read, (invalid_argument) with file, line and key for everything else.
TrainingFile read_training_file(const std::filesystem::path& path);
TrainingFile parse_training_file(std::string_view text, const std::filesystem::path& path);

// Whether first points of training data may lack numbers: each phase frees the states that its solves start from.
ode::FirstPoints first_points(const TrainingFile& file);

// What is known of the system that `ode` names. Throws Error naming file, line and key.
ode::SystemInfo system_of(const OdeSection& ode);

// What is said beside a file, on the command line or as arguments, and goes before what the file says.
struct TrainingOverrides {
  std::optional<std::filesystem::path> output;  // the stem, or what ends in .h5 or .safetensors
  std::string where_output;                     // for messages: "--output"
  bool overwrite = false;                       // true; else as the file says
  std::optional<std::uint64_t> seed;  // of split and shuffling, and from it those of the nets, each the next number
  std::optional<int> threads;
};
void override_with(const TrainingOverrides& given, TrainingFile& file);

// Of everything that decides the trained bits, output and threads left out.
std::string options_digest(const TrainingFile& file);
// The same option by option, a line for each, "phase 2: rate = 0.01": to name what differs.
std::string options_list(const TrainingFile& file);
// Of a neural ODE's adaptive steps the tolerances, into a model's metadata.
void store_tolerances(const TrainingFile& file, std::map<std::string, std::string>& metadata);

}  // namespace lockstep::cli

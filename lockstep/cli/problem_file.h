// PROBLEM.toml: an ensemble, its method and its output as a text file. docs/problem_file.md is the reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/cli/ensemble_values.h"
#include "lockstep/cli/equations_section.h"
#include "lockstep/cli/event_section.h"
#include "lockstep/cli/impulses_section.h"
#include "lockstep/cli/resets_section.h"
#include "lockstep/core/error.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/options.h"

namespace lockstep::nn {
struct Model;
}

namespace lockstep::cli {

// A field and where the user wrote it: "lorenz.toml:7: time.span", or "--trajectories".
template <class T>
struct Given {
  T value{};
  std::string where;
};

struct KeptNet;  // right_hand_side.h

// The sections of the file.
struct RightHandSide {
  std::optional<Given<std::filesystem::path>> model;
  std::shared_ptr<const nn::Model> loaded;  // what `model` names, where a caller has it in memory; else it is read
  // Where a caller made `loaded` of equations: what their expressions may name beside components and parameters.
  std::shared_ptr<const nn::Equations> written;
  std::shared_ptr<KeptNet> kept;            // of `loaded` alone, what earlier problems made of it; or none
  std::optional<Given<std::string>> system;
  std::optional<EquationsSection> equations;  // then neither of these two
  std::optional<Given<std::string>> activations;
  bool with_time = false;
  std::optional<Given<ode::GuardAction>> guard;  // else flag, where the model says what it was trained on
  std::vector<std::string> components;           // names for the net's components, where its file has none
  std::vector<std::string> parameters;           // and for its parameters
  std::vector<std::pair<std::string, Given<std::string>>> units;  // of components, by name
  std::string where;                             // of the section
};

struct Ensemble {
  std::optional<Given<std::size_t>> trajectories;
  bool takes_the_first = false;  // --trajectories: of what is listed the first so many count
  std::uint64_t seed = 1;
  std::optional<EnsembleValues> initial_state;
  std::optional<EnsembleValues> parameters;
  std::vector<GridAxis> grid;  // every combination of its values, the last axis' fastest; or none
};

struct EvenlySpaced {  // both ends among them
  std::size_t points = 0;
};
struct Every {  // from the start
  double interval = 0;
};
struct Times {
  std::vector<double> times;
};
struct TimeSection {
  std::string unit;
  std::optional<EnsembleValues> span;  // two columns: start and end
  std::optional<Given<std::variant<EvenlySpaced, Every, Times, EnsembleValues::Spread, EnsembleValues::Dataset,
                                   EnsembleValues::Table>>>
      save;  // else the end alone; a spread says how many points
};

struct Output {
  std::optional<Given<std::filesystem::path>> file;
  bool overwrite = false;
  std::optional<Given<std::vector<std::string>>> components;  // names of those to store; else all
  std::optional<Given<std::size_t>> every;                    // of the save points, from the first
  bool events = false;                                        // which resets struck, and when
};

// What a file says, read and checked key by key, but with no model loaded and nothing drawn yet.
struct ProblemFile {
  std::filesystem::path path;
  RightHandSide rhs;
  Ensemble ensemble;
  TimeSection time;
  std::optional<EventSection> event;
  std::vector<ResetSection> resets;
  std::vector<ImpulsesSection> impulses;
  ode::Options options;
  Output output;
  // Where each field of Options and Problem was written, by the name that ode's errors use ("options.rtol").
  std::map<std::string, std::string, std::less<>> where_of;
};

// Paths to read (model, datasets) are relative to the file's folder; the output's is relative to the current one.
// Throws Error (file) when it cannot be read, (invalid_argument) with file, line and key for everything else.
ProblemFile read_problem_file(const std::filesystem::path& path);
ProblemFile parse_problem_file(std::string_view text, const std::filesystem::path& path);

// The files that solving it reads: the problem file itself, the model, and what the ensemble and the save points name.
std::vector<std::filesystem::path> input_files(const ProblemFile& file);

// Sections [method] and [run] alone, into options and where_of: for files that share them.
class TomlValue;
void read_solver_sections(const TomlValue& file, ProblemFile& problem);
// The library speaks of "options.rtol"; the user wrote "lorenz.toml:9: method.rtol", or should have.
Error in_users_words(const Error& error, const ProblemFile& file);

// Flags of the command line, which win over the file.
struct ProblemOverrides {
  std::optional<std::filesystem::path> output;
  std::optional<std::size_t> trajectories;
  std::optional<std::uint64_t> seed;
  std::optional<std::string> method;
  std::optional<double> rtol;
  std::vector<double> atol;  // one for every component, or one for each; empty: as the file says
  std::optional<double> dt;  // chooses fixed steps
  std::optional<std::string> precision;
  std::optional<std::string> matrix_precision;
  std::optional<int> threads;
  std::optional<std::string> cpu_target;
  std::optional<std::string> device;
  std::optional<std::string> engine;
  std::optional<std::string> guard;
  bool overwrite = false;
};
void apply(const ProblemOverrides& overrides, ProblemFile& file);

}  // namespace lockstep::cli

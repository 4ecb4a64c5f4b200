// Training ranges of the nets that equations call, of a model that was made of them: what the model's inputs tell of
// them, and calls that see the nearest point of their range.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep::nn {

// By its name, as ode::net() takes it: of a right-hand side with other inputs beside it.
bool is_time(const Port& port);
// Whether a model with other inputs reads it.
bool has_time_port(const Model& model);

// The table that is called, or none where a net is.
const Interpolate* called_table(const Model& model, const GuardedCall& call);

bool is_bounded(const Feature& feature);
bool is_bounded(const Port& port);  // has a feature with a range

// Does the net know its range, or that of a net that it calls?
bool knows_range(const Model& net);

// Of a net or a table that reads the time as it is, or of a table that reads a multiple of it, at which times it knows
// something.
struct KnownTimes {
  std::string name;  // "wind"; of a multiple "wind(t * 24)"
  double minimum, maximum;
  bool is_table = false;
  // Of a table of steps, which keeps its last value: where that begins, and how long its steps are at most. Not where
  // that value is 0, as behind the last of several doses.
  struct LastStep {
    double time, longest;
  };
  std::optional<LastStep> last_step = {};
};

// What a model's inputs alone can tell of the calls.
struct WatchedInputs {
  std::vector<Port> inputs;  // the model's, with ranges narrowed to those of the calls that read a feature as it is
  std::vector<KnownTimes> times;
  // The calls' inputs with a range that are something else: "training range of drag's input v^2", "range of k's input
  // T + 1" of a table; of several that read the same "range of sun's and wind's input x^2". A table that reads
  // what the time, numbers and parameters make alone, t - lag, is none of them for who solves: it keeps its ends.
  std::vector<std::string> other;
};
enum class Watch {
  all_inputs,
  state_and_parameters,  // who solves: the time, of a port "t" or "time" beside others, is no input to be watched
};
// Throws Error (model) for an invalid model.
WatchedInputs watched_inputs(const Model& model, Watch watch);

// Of each feature of the first input port: does an output show something made of it, other than the feature as it is?
// Throws Error (model) for an invalid model.
std::vector<bool> shown_otherwise(const Model& model);

// The model, in which the calls of nets see their inputs brought into the range, element by element; NaN stays NaN.
// Tables keep their ends anyway. The input ports' own ranges are not looked at. Its calls have no range any more.
// Throws Error (model) for an invalid model.
Model with_clamped_calls(const Model& model);

// The net with its own inputs brought into their range, and those of its calls. It has no range any more.
Model with_clamped_inputs(const Model& net);

}  // namespace lockstep::nn

// Training ranges of the nets that equations call, of a model that was made of them: what the model's inputs tell of
// them, and calls that see the nearest point of their range.
#pragma once

#include <string>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep::nn {

// By its name, as ode::net() takes it: of a right-hand side with other inputs beside it.
bool is_time(const Port& port);

bool is_bounded(const Feature& feature);
bool is_bounded(const Port& port);  // has a feature with a range

// Does the net know its range, or that of a net that it calls?
bool knows_range(const Model& net);

// What a model's inputs alone can tell of the calls.
struct WatchedInputs {
  std::vector<Port> inputs;    // the model's, with ranges narrowed to those of the calls that read a feature as it is
  std::vector<Feature> times;  // of the nets that read the time as it is what they know of it, under their names
  std::vector<std::string> other;  // the calls' inputs with a range that are something else: "drag's input v^2"
};
enum class Watch {
  all_inputs,
  state_and_parameters,  // who solves: the time, of a port "t" or "time" beside others, is no input to be watched
};
// Throws Error (model) for an invalid model.
WatchedInputs watched_inputs(const Model& model, Watch watch);

// The model, in which the calls see their inputs brought into the range, element by element; NaN stays NaN. The input
// ports' own ranges are not looked at. Its calls have no range any more. Throws Error (model) for an invalid model.
Model with_clamped_calls(const Model& model);

// The net with its own inputs brought into their range, and those of its calls. It has no range any more.
Model with_clamped_inputs(const Model& net);

}  // namespace lockstep::nn

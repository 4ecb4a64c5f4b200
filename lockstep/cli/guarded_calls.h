// Training ranges of the nets that equations call.
#pragma once

#include <string>
#include <vector>

#include "lockstep/nn/equations.h"
#include "lockstep/nn/model.h"
#include "lockstep/ode/guard.h"

namespace lockstep::cli {

// What can be told of them by the state alone: inputs that are a component or a parameter as it is.
struct WatchedCalls {
  ode::Range range;                // [component], then [parameter]: what all such calls were trained on
  std::vector<std::string> other;  // inputs with a range that are something else: "drag's input v^2"
};
WatchedCalls watched_calls(const nn::Equations& system);

// Does any of the nets know its range?
bool has_ranges(const nn::Equations& system);

// The net with its inputs brought into their range, element by element; NaN stays NaN.
nn::Model with_clamped_inputs(const nn::Model& net);

}  // namespace lockstep::cli

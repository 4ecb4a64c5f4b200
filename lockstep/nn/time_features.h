// How quickly what a model reads of the time changes, as far as its tables tell: longer steps would pass over it.
#pragma once

#include <optional>
#include <string>

#include "lockstep/nn/model.h"

namespace lockstep::nn {

struct TimeFeature {
  double width = 0;   // of the time
  std::string table;  // as equations call it: "rain"
};

// Of tables that are read at the time of a port is_time() beside others, or at a multiple of it plus a constant, the
// shortest stretch from before a rise of a column to after the fall that follows it, or the other way round; of steps
// the shortest that is kept. None where nothing comes and goes.
std::optional<TimeFeature> shortest_time_feature(const Model& model);

}  // namespace lockstep::nn

// Multiplies scalings that stand between layers into the layers beside them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

// In float64, so that each weight is rounded once: a Rescale that one Dense reads goes into that Dense; a Rescale of a
// Dense that another node reads goes into the Dense before it; neighbouring scalings become one. A Standardise that
// reads an input port stays, any other becomes a Rescale; so does a Rescale that an output port shows. Returns a
// sentence for each node that went.
std::vector<std::string> fold_rescale(Model& model);

}  // namespace lockstep::nn::detail

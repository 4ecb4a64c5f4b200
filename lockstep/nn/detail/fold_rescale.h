// Multiplies scalings that stand between layers into the layers beside them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

// In float64, so that each weight is rounded once: a Rescale that one Dense reads goes into that Dense; a Rescale of a
// Dense that another node reads goes into the Dense before it; neighbouring scalings become one. A Standardise that
// reads an input port stays, any other becomes a Rescale. A Rescale of an input port that one Dense reads becomes a
// Standardise if it has a term (input_scaling.h), and one that an output port shows stays. Returns a sentence for each
// node that went.
std::vector<std::string> fold_rescale(Model& model);

}  // namespace lockstep::nn::detail

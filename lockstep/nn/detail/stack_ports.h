// The names of a stack's two ports, which Model::from_mlp() calls x and y.
#pragma once

#include <string>

#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

// An empty one stays what it is.
inline void name_ports(Model& stack, const std::string& input, const std::string& output) {
  if (!input.empty()) stack.inputs.at(0).name = stack.nodes.at(0).inputs.at(0) = input;
  if (!output.empty()) stack.outputs.at(0).name = output;
}

}  // namespace lockstep::nn::detail

// Whether a net's own names say that its inputs and outputs stand in another order than the components that it is
// taken for.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep::cli {

// A net in a right-hand side takes the components, and gives their derivatives, by position. Throws Error
// (invalid_argument) where the names of its inputs, or of its outputs ("x", "dx", "dx_dt", "x_dot"), are those of all
// components in another order. Names that are none of components say nothing.
void require_component_order(const std::vector<std::string>& components, std::span<const nn::Feature> inputs,
                             std::span<const nn::Feature> outputs, const std::string& where,
                             const std::filesystem::path& net);

}  // namespace lockstep::cli

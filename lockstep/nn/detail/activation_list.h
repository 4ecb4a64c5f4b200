// Which activation each layer of a stack has, from what a file and its reader say.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/kernels/activation.h"
#include "lockstep/nn/safetensors.h"

namespace lockstep::nn::detail {

// Parts between commas, without blanks around them; none for an empty text.
std::vector<std::string> split_list(const std::string& text);

// Throws Error (model) naming the field, the known names and the nearest of them.
Activation known_activation(const std::string& name, const std::string& field);

// One for each of the layers. `in_file` is the file's own list, empty when it has none. Throws Error (model) when
// neither says, when the number is not that of the layers, or when a name is unknown.
std::vector<Activation> choose_activations(std::size_t layers, const std::string& in_file, const ReadOptions& options,
                                           const std::string& source);

}  // namespace lockstep::nn::detail

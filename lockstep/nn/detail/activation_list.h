// Which activation each layer of a stack has, from what a file and its reader say.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/nn/safetensors.h"

namespace lockstep::nn::detail {

// Parts between commas, without blanks around them; none for an empty text.
std::vector<std::string> split_list(const std::string& text);

// Throws Error naming the field, the known names and the nearest of them.
Activation known_activation(const std::string& name, const std::string& field, ErrorKind kind = ErrorKind::model);

// One for each of the layers. `in_file` is the file's own list, empty when it has none. Throws Error (model) when
// neither says, and when the file's number is not that of the layers or a name of its is unknown; (invalid_argument)
// where that is so of the options', or when the two contradict each other.
std::vector<Activation> choose_activations(std::size_t layers, const std::string& in_file, const ReadOptions& options,
                                           const std::string& source);

// Of a file that says all of its activations itself: those of `options`, if any, are the same. Throws as
// choose_activations(), and (invalid_argument) for any activations where the model is no plain stack.
void require_agreement(const Model& model, const ReadOptions& options, const std::string& source);

}  // namespace lockstep::nn::detail

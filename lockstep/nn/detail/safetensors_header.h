// The JSON header of a safetensors file, read event by event: strict in structure, flat in memory.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/nn/detail/safetensors_container.h"

namespace lockstep::nn::detail {

// Throws Error (model) where the text is no JSON, names a key twice, or has another structure than
// {NAME: {"dtype": "...", "shape": [...], "data_offsets": [begin, end]}, "__metadata__": {KEY: "..."}}.
// Sizes and offsets are taken as they stand: checking them is the caller's part.
Container parse_header(std::string_view json, const std::string& source);

}  // namespace lockstep::nn::detail

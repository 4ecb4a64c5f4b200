// Names and training ranges for a net that another tool trained, as `import` takes them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep::cli {

struct GivenRanges {
  std::vector<std::string> inputs, outputs;   // names of the features of all ports, in their order; none as they are
  std::optional<std::filesystem::path> data;  // what the net was trained on: a CSV, or HDF5 as of `import --check`
  std::vector<std::string> ranges;            // "NAME=LOW:HIGH", after those of the data
};

// Puts them into the model. Returns what was taken from where, a line each. Throws Error (invalid_argument) naming the
// flag, or file and column. Adds to the notes what was taken in silence otherwise.
std::vector<std::string> take_ranges(nn::Model& model, const GivenRanges& given, std::vector<std::string>& notes);

}  // namespace lockstep::cli

// HDF5 files that are neither models nor results: what they hold, and which commands can read it.
#pragma once

#include <string>
#include <vector>

#include "lockstep/core/hdf5.h"

namespace lockstep::cli {

// The names of all datasets in a group and, to a depth that suits a message, in the groups in it: "x", "run/x".
std::vector<std::string> dataset_names(const hdf5::Group& group);

// Datasets with shapes and types, then uses, a line each with what names the file: "datasets", "  x  1,000 x 3,
// float64".
std::vector<std::string> data_file_lines(const hdf5::File& file);

}  // namespace lockstep::cli

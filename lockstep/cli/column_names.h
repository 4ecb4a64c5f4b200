// The names that an HDF5 file gives to the columns of a dataset, as result files and netCDF-4 have them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/core/hdf5.h"

namespace lockstep::cli {

// Of the last dimension: the strings of its dimension scale, else those of the dataset `coordinate` beside it where
// these are as many. None where they are no strings, or where one is empty.
// `path` is what the file calls the dataset: "x", "run/x".
std::vector<std::string> column_names(const hdf5::File& file, const std::string& path, const std::string& coordinate);

// MATLAB's -v7.3 files have dimensions in reverse, and an attribute by which they are known.
bool is_by_matlab(const hdf5::Dataset& dataset);
inline constexpr const char* kTransposeInMatlab =
    "MATLAB writes dimensions in reverse: transpose it there, x = x.', and save it";

// Whether columns are taken in their order although the file names them: as many as are wanted, none of these names
// among them, and one side's names made up by Lockstep for what had none, as u0, u1, ...
bool go_by_position(const std::vector<std::string>& wanted, const std::vector<std::string>& found);

// "x0", "x1", ...
std::vector<std::string> numbered(const std::string& prefix, std::size_t n);

}  // namespace lockstep::cli

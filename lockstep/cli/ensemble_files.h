// Numbers of an ensemble that lie in files: HDF5 datasets, and columns of CSV tables.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/cli/ensemble_values.h"
#include "lockstep/core/hdf5.h"

namespace lockstep::cli {

// The values with their files read. A dataset of one dimension is one row for all, unless it is for a single column.
// Columns that the file names (column_names.h) go by their names; `coordinate` is the dataset that may name them.
// Throws Error: (file) for a file that cannot be read, (invalid_argument) for what it should hold and does not.
enum class Filled { columns, single_column };
EnsembleValues load_files(EnsembleValues values, const std::string& coordinate, Filled filled = Filled::columns);

// Throws Error (invalid_argument) that lists the file's datasets and suggests the nearest.
hdf5::Dataset dataset_named(const hdf5::File& file, const std::string& name, const std::string& where);

// One column of numbers: the only one asked for, or `by_default`.
std::vector<double> read_column(const EnsembleValues::Table& source, const std::string& by_default,
                                const std::string& where);

}  // namespace lockstep::cli

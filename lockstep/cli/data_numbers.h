// Numbers of a data file as it has them: datasets of HDF5, columns of a CSV.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {

// Numbers of an HDF5 dataset: finite ones, or NaN where they may be missing.
struct Numbers {
  std::string name;  // "data.h5: state"
  hdf5::Shape shape;
  std::vector<double> values;
};
// `where` is what names the dataset, `remedy` what helps against a number that is not finite.
Numbers read_numbers(const hdf5::File& file, const std::string& name, const std::string& where,
                     train::MissingNumbers missing = train::MissingNumbers::refuse,
                     const std::string& remedy = "repair the row or leave it out");

// Of a number in a dataset: ", trajectory 3, point 7, component 0" of three dimensions, ", row 3, column 7" of two.
std::string place_text(const hdf5::Shape& shape, std::size_t at);
std::string shape_text(const hdf5::Shape& shape);  // "[3, 100]"

// The columns of all parts, [row][column], row by row.
std::vector<double> side_by_side(const std::vector<Numbers>& parts, std::size_t rows);

// Samples by features out of one dataset [sample, feature] or several, side by side, of [sample] each or that shape.
struct Samples {
  std::vector<std::string> names;
  std::size_t rows = 0;
  std::vector<double> values;  // [sample][feature]
};

// A single dataset's features are numbered after `prefix`.
Samples read_samples(const hdf5::File& file, const std::vector<std::string>& names, const std::string& prefix,
                     const std::string& where, train::MissingNumbers missing = train::MissingNumbers::refuse,
                     const std::string& remedy = "repair the row or leave it out");

// [row][name]. `where` is what names the columns.
std::vector<double> take_columns(const train::Table& table, const std::vector<std::string>& names,
                                 const std::string& where);

// The columns of a net that names no inputs: x0, x1, .. where these are there, else as many as there are inputs, in
// their order, of which a note tells.
struct UnnamedColumns {
  std::vector<std::string> names;
  std::string note;
};
// Nothing where they are more or fewer.
std::optional<UnnamedColumns> columns_for_unnamed(const train::Table& table, std::size_t inputs,
                                                  const std::string& model);

}  // namespace lockstep::cli

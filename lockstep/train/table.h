// Tables of numbers with named columns, read strictly: what is no number is an error that names line and column.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::train {

struct Table {
  std::string source;                // file name, for messages
  std::vector<std::string> columns;  // names, all different
  std::size_t rows = 0;
  std::vector<double> values;      // [row][column]
  std::vector<std::size_t> lines;  // [row]: where it stands in the file, from 1

  double operator()(std::size_t row, std::size_t column) const { return values[row * columns.size() + column]; }
  // Throws Error (invalid_argument) that lists the columns and suggests the nearest.
  std::size_t column(const std::string& field, std::string_view name) const;
};

// The first line that is neither empty nor begins with '#' names the columns; every later one holds a finite number
// for each, written as C++ writes them ("1.5", "-2e-3"). The separator is the first of tab, ';' and ',' that the line
// of names has. Spaces and quotes around fields are dropped; a byte order mark and CR before LF as well.
// Throws Error: (file) when the file cannot be read, (invalid_argument) naming file, line and column otherwise.
// as_nan: an empty field, "nan", "NA", "N/A" or "null" is a NaN.
enum class MissingNumbers { refuse, as_nan };
Table read_csv(const std::filesystem::path& path, MissingNumbers missing = MissingNumbers::refuse);
Table parse_csv(std::string_view text, const std::string& source, MissingNumbers missing = MissingNumbers::refuse);

// Least and greatest of column `column` of values [row][columns]; mean and standard deviation (of the population), in
// float64 and rows ascending. NaNs are passed over; the first row has none.
struct ColumnStatistics {
  double minimum = 0, maximum = 0, mean = 0, deviation = 0;
};
ColumnStatistics column_statistics(std::span<const double> values, std::size_t columns, std::size_t column);

}  // namespace lockstep::train

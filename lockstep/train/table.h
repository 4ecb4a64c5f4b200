// Tables of numbers with named columns, read strictly: what is no number in a column that is used is an error that
// names line and column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::train {

struct Table {
  std::string source;                // file name, for messages
  std::vector<std::string> columns;  // names, all different but for empty ones
  std::size_t rows = 0;
  std::vector<double> values;        // [row][column]; NaN where a column has a fault
  std::vector<std::size_t> lines;    // [row]: where it stands in the file, from 1
  std::vector<std::uint32_t> texts;  // [row][column]: 0 for numbers, else a text's own number; empty without texts
  std::vector<std::vector<std::string>> words;  // [column]: the texts that these numbers, from 1, stand for

  // The first field of a column that is no number.
  struct Fault {
    std::size_t line;
    std::string found, remedy;
    bool is_missing = false;  // empty, NaN or a word for that
  };
  std::vector<std::optional<Fault>> faults;  // [column]

  double operator()(std::size_t row, std::size_t column) const { return values[row * columns.size() + column]; }
  // A column of numbers. Throws Error (invalid_argument): naming line and column of the first field that is none, or of
  // an unknown name, listing the columns and suggesting the nearest.
  std::size_t column(const std::string& field, std::string_view name) const;
  // Of a column of numbers or texts, [row]: 0, 1, ..., the next one where a row differs from that before it; NaN where
  // the number is missing. Throws Error as column() of an unknown name.
  std::vector<double> runs(const std::string& field, std::string_view name) const;
  // The text in a row of a column; empty where that is a number.
  std::string text(std::size_t row, std::size_t column) const;

  // The place of a column, whatever it holds. Throws Error as column() of an unknown name.
  std::size_t index(const std::string& field, std::string_view name) const;
};

// The first line that is neither empty nor begins with '#' names the columns; every later one holds a field for each,
// in columns that are used a finite number, written as C++ writes them ("1.5", "-2e-3"). The separator is the first of
// tab, ';' and ',' that the line of names has, and has no meaning within quotes. Spaces and quotes around fields are
// dropped; a byte order mark and CR before LF as well; CR alone ends the lines of a file without LF.
// Throws Error: (file) when the file cannot be read, (invalid_argument) naming file, line and column otherwise.
// as_nan: an empty field, "nan", "NA", "N/A" or "null" is a NaN.
enum class MissingNumbers { refuse, as_nan };
Table read_csv(const std::filesystem::path& path, MissingNumbers missing = MissingNumbers::refuse);
Table parse_csv(std::string_view text, const std::string& source, MissingNumbers missing = MissingNumbers::refuse);

// What to do about a file whose columns are separated by blanks, and so are one column; "" for others.
std::string advice_on_blanks(const Table& table);

// Least and greatest of column `column` of values [row][columns]; mean and standard deviation (of the population), in
// float64 and rows ascending. NaNs are passed over; of nothing else all are NaN.
struct ColumnStatistics {
  double minimum = 0, maximum = 0, mean = 0, deviation = 0;
};
ColumnStatistics column_statistics(std::span<const double> values, std::size_t columns, std::size_t column);

}  // namespace lockstep::train

// Numbers for every trajectory as a problem file describes them: one row for all, a list of rows, a distribution, an
// even spread, a dataset or table in a file, or any of these name by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/cli/toml_value.h"

namespace lockstep::train {
struct Table;
}

namespace lockstep::cli {

struct EnsembleValues {
  struct Shared {
    std::vector<double> row;
  };
  struct Rows {
    std::vector<double> values;  // [row][column]
    std::size_t rows = 0;
    std::size_t columns = 0;
    bool by_matlab = false;
    bool may_be_none = false;  // of an array in memory, of which a filter may leave no row
  };
  // Vectors hold a number a column, or one for all columns.
  struct Normal {
    std::vector<double> mean;
    std::vector<double> deviation;  // >= 0
  };
  struct LogNormal {  // median exp(sigma z), z normal
    std::vector<double> median;  // > 0
    std::vector<double> sigma;   // >= 0, the standard deviation of the logarithm
  };
  struct Box {  // uniform in [low, high)
    std::vector<double> low;
    std::vector<double> high;
  };
  // From the first trajectory to the last, i of n: low + (high - low) i / (n - 1), or low (high / low)^(i / (n - 1)),
  // which is rounded to 15 digits so that decades are the numbers people write.
  enum class Spacing { linear, logarithmic };
  struct Spread {
    std::vector<double> low;
    std::vector<double> high;
    Spacing spacing = Spacing::linear;       // logarithmic: low and high above 0
    std::optional<std::size_t> points = {};  // n, of which the first are taken; else the number of trajectories
  };
  struct Dataset {  // [row][column], or [column] for one row for all; of one column: [row]
    std::filesystem::path file;
    std::string dataset;
    std::vector<std::string> columns;  // which of those that the file names, in order; empty: by their names
  };
  struct Table {  // named columns: of a CSV, or of a dataset in a file that names them
    enum class Rows { of_csv, of_dataset, one_for_all };
    std::filesystem::path file;
    std::vector<std::string> columns;             // which of it, in order; empty: those called as the columns to fill
    std::shared_ptr<const train::Table> content;  // once it is read
    Rows rows = Rows::of_csv;
  };
  struct Named {
    std::vector<std::string> names;
    std::vector<EnsembleValues> columns;  // one for each name
  };

  std::variant<Shared, Rows, Normal, LogNormal, Box, Spread, Dataset, Table, Named> source;
  std::string where;  // names the value in messages
};

// Paths in the file are relative to `folder`.
EnsembleValues parse_ensemble_values(const TomlValue& value, const std::filesystem::path& folder);

// The same for a single column, whose array is a number for each trajectory.
EnsembleValues parse_column_values(const TomlValue& value, const std::filesystem::path& folder);

// A component or parameter of which an ensemble takes every value together with every value of the other axes.
struct GridAxis {
  std::string name;
  std::string where;
  EnsembleValues values;  // of one column, which say how many they are: once files are read, by listed_rows
};

// {alpha = {linspace = [0, 1, 11]}, x = [1, 2, 5]}, in order. Throws Error (invalid_argument) for an axis that does not
// say how many values it has.
std::vector<GridAxis> parse_grid(const TomlValue& value, const std::filesystem::path& folder);

// {file = "x.h5", dataset = "u0"}, or {file = "x.csv"}, columns = ["a", "b"] beside them where those have other names.
std::variant<EnsembleValues::Dataset, EnsembleValues::Table> parse_file(const TomlValue& table,
                                                                        const std::filesystem::path& folder);

// What to write in place of a distribution or spread that goes by another name elsewhere, or is none of ours; empty for
// other words.
std::string advice_on_source(std::string_view name);

// What the columns are called and hold where the file is silent.
struct ColumnNames {
  std::string what;                             // "component" or "parameter"
  std::vector<std::string> names;               // [column]
  std::vector<std::optional<double>> defaults;  // [column]; empty: every column must be given
  std::vector<std::string> parameters = {};     // of components: what may be given among them by mistake
};

// A matrix [row][column]; one row stands for all trajectories.
struct EnsembleMatrix {
  std::vector<double> values;
  std::size_t rows = 1;
};

// A row, so many times.
std::vector<double> repeated(std::vector<double> row, std::size_t times);

// The files that the values name.
std::vector<std::filesystem::path> files_of(const EnsembleValues& values);

// How many trajectories the values list, if they do, or say to be spread over; ensemble_files.h reads what lies in
// files first. Throws Error (invalid_argument) where columns list different numbers.
std::optional<std::size_t> listed_rows(const EnsembleValues& values);

// Whether they are rows of which there may be none, and there is none.
bool list_nothing(const EnsembleValues& values);

// Where values are spread over all trajectories, whose number they do not say; empty: nowhere.
std::string where_spread(const EnsembleValues& values);

// Random numbers depend on (seed, stream, trajectory, column) alone: trajectory i is the same in an ensemble of any
// size. Where rows are listed, the first `trajectories` are taken. Throws Error (invalid_argument) where sizes or names
// do not fit, (file) for a dataset that cannot be read.
struct RandomStream {
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
};
EnsembleMatrix draw(const EnsembleValues& values, std::size_t trajectories, const ColumnNames& columns,
                    RandomStream random);

}  // namespace lockstep::cli

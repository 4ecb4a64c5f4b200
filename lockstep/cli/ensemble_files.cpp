#include "lockstep/cli/ensemble_files.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "lockstep/cli/column_names.h"
#include "lockstep/cli/meant_numbers.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/names.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

using Values = EnsembleValues;

train::Table read_table(const std::filesystem::path& path, const std::string& where) {
  if (hdf5::File::recognises(path)) {
    refuse(where, "an HDF5 file without the name of a dataset: " + path.string(), "dataset = \"..\" beside file",
           "`lockstep info` or h5ls lists what it holds");
  }
  return train::read_csv(path);
}

// A dataset whose columns have names is a table of them.
Values named_columns(const Values::Dataset& source, const std::string& where, std::vector<std::string> names,
                     const hdf5::Shape& shape, std::vector<double> numbers) {
  train::Table table;
  table.source = source.file.string() + ":/" + source.dataset;
  table.columns = std::move(names);
  table.rows = shape.size() == 1 ? 1 : shape[0];
  table.values = std::move(numbers);
  table.faults.resize(table.columns.size());
  return {Values::Table{source.file, source.columns, std::make_shared<const train::Table>(std::move(table)),
                        shape.size() == 1 ? Values::Table::Rows::one_for_all : Values::Table::Rows::of_dataset},
          where};
}

Values load_dataset(const Values::Dataset& source, const std::string& where, const std::string& coordinate,
                    Filled filled) {
  const hdf5::File file = hdf5::File::open(source.file);
  const MeantNumbers meant(dataset_named(file, source.dataset, where));
  const hdf5::Shape shape = meant.dataset().shape();
  if (shape.empty() || shape.size() > 2) {
    refuse(where, source.dataset + " with " + counted_text(shape.size(), "dimension"),
           "one or two: [trajectory, column] or [column]");
  }
  std::vector<double> numbers = meant.read<double>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isfinite(numbers[i])) continue;
    refuse(where, number_text(numbers[i]) + " at element " + std::to_string(i) + " of " + meant.dataset().name(),
           "finite numbers");
  }
  // A single column's own dataset is that column, whatever it is called.
  const bool is_column = filled == Filled::single_column && (shape.size() == 1 || shape[1] == 1);
  if (!is_column || !source.columns.empty()) {
    std::vector<std::string> names = column_names(file, source.dataset, coordinate);
    if (!names.empty()) return named_columns(source, where, std::move(names), shape, std::move(numbers));
    if (!source.columns.empty()) {
      refuse(where, "columns of " + meant.dataset().name() + ", which names none",
             "a dimension scale of strings along its last dimension",
             "leave columns out: they are taken in their order");
    }
  }
  if (shape.size() == 1 && filled == Filled::columns) return {Values::Shared{std::move(numbers)}, where};
  return {Values::Rows{std::move(numbers), shape[0], shape.size() == 1 ? 1 : shape[1], is_by_matlab(meant.dataset())},
          where};
}

}  // namespace

EnsembleValues load_files(EnsembleValues values, const std::string& coordinate, Filled filled) {
  if (auto* named = std::get_if<Values::Named>(&values.source)) {
    for (EnsembleValues& column : named->columns) {
      column = load_files(std::move(column), coordinate, Filled::single_column);
    }
  } else if (auto* table = std::get_if<Values::Table>(&values.source)) {
    table->content = std::make_shared<const train::Table>(read_table(table->file, values.where));
  } else if (const auto* dataset = std::get_if<Values::Dataset>(&values.source)) {
    return load_dataset(*dataset, values.where, coordinate, filled);
  }
  return values;
}

hdf5::Dataset dataset_named(const hdf5::File& file, const std::string& name, const std::string& where) {
  if (!file.has(name)) {
    const std::vector<std::string> names = file.datasets();
    const std::vector<std::string_view> known(names.begin(), names.end());
    refuse(where, "\"" + name + "\", which " + file.path().string() + " does not have", "one of " + list_text(known),
           did_you_mean(name, known));
  }
  return file.dataset(name);
}

std::vector<double> read_column(const EnsembleValues::Table& source, const std::string& by_default,
                                const std::string& where) {
  if (source.columns.size() > 1) refuse(where, counted_text(source.columns.size(), "column"), "one");
  const train::Table table = read_table(source.file, where);
  const bool has_default = std::ranges::find(table.columns, by_default) != table.columns.end();
  if (source.columns.empty() && !has_default && !table.columns.empty()) {
    const std::vector<std::string_view> known(table.columns.begin(), table.columns.end());
    const std::string blanks = train::advice_on_blanks(table);
    refuse(where, "no column \"" + by_default + "\" in " + source.file.string(), "one of " + list_text(known),
           !blanks.empty() ? blanks : "name the column, as in columns = \"" + table.columns.front() + "\"");
  }
  const std::size_t column = table.column(where, source.columns.empty() ? by_default : source.columns.front());
  std::vector<double> numbers(table.rows);
  for (std::size_t row = 0; row < table.rows; ++row) numbers[row] = table(row, column);
  return numbers;
}

}  // namespace lockstep::cli

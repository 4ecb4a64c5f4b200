// The files of [rhs] tables.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/cli/column_names.h"
#include "lockstep/cli/data_numbers.h"
#include "lockstep/cli/function_tables.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

std::vector<nn::Feature> named(const std::vector<std::string>& names) {
  std::vector<nn::Feature> features;
  for (const std::string& name : names) features.push_back({name});
  return features;
}

void load_csv(const TableSection& section, nn::FunctionTable& content) {
  const train::Table table = train::read_csv(section.file);
  if (table.columns.size() < 2) {
    refuse(section.where, section.file.string() + " with " + counted_text(table.columns.size(), "column"),
           "two or more: what the function is of, and its values");
  }
  const std::string at = section.at.empty() ? table.columns.front() : section.at;
  std::vector<std::string> columns = section.columns;
  if (columns.empty()) {
    std::ranges::copy_if(table.columns, std::back_inserter(columns), [&](const std::string& one) { return one != at; });
  }
  content.input = {at};
  content.at = take_columns(table, {at}, section.where + ".at");
  content.values = take_columns(table, columns, section.where + ".columns");
  content.outputs = named(columns);
}

// Of columns of a dataset that the file names these names, where all are told apart by them; else the numbered ones.
std::vector<std::string> names_of(const hdf5::File& file, const std::vector<std::string>& datasets,
                                  std::vector<std::string> numbered) {
  if (datasets.size() == 1 && numbered.size() == 1) return datasets;
  std::vector<std::string> names;
  std::size_t at = 0;  // of the dataset's first column
  for (const std::string& dataset : datasets) {
    const hdf5::Shape shape = file.dataset(dataset).shape();
    const std::size_t columns = shape.size() == 2 ? shape[1] : 1;
    std::vector<std::string> own = shape.size() == 2 ? column_names(file, dataset, "") : std::vector<std::string>();
    if (own.empty()) {
      const auto first = numbered.begin() + static_cast<std::ptrdiff_t>(at);
      own.assign(first, first + static_cast<std::ptrdiff_t>(columns));
    }
    names.insert(names.end(), own.begin(), own.end());
    at += columns;
  }
  const std::set<std::string> each(names.begin(), names.end());
  return each.size() == names.size() ? names : numbered;
}

void load_hdf5(const TableSection& section, nn::FunctionTable& content) {
  if (section.at.empty() || section.columns.empty()) {
    refuse(section.where, "an HDF5 file without the names of its datasets: " + section.file.string(),
           "at = \"..\" and columns = [\"..\"] beside file", "`lockstep info` lists what it holds");
  }
  const hdf5::File file = hdf5::File::open(section.file);
  Samples knots = read_samples(file, {section.at}, section.at, section.where + ".at");
  Samples values = read_samples(file, section.columns, section.columns.front(), section.where + ".columns");
  if (knots.names.size() != 1) {
    refuse(section.where + ".at", counted_text(knots.names.size(), "column") + " in " + section.at, "one");
  }
  if (knots.values.size() != values.rows) {
    refuse(section.where + ".columns", counted_text(values.rows, "row") + " of values",
           count_text(knots.values.size()) + ", one for each number in " + section.at);
  }
  values.names = names_of(file, section.columns, std::move(values.names));
  content.input = {section.at};
  content.at = std::move(knots.values);
  content.values = std::move(values.values);
  content.outputs = named(values.names);
}

}  // namespace

nn::Model load_table(const TableSection& section) {
  nn::FunctionTable content = section.content;
  if (!section.file.empty()) (hdf5::File::recognises(section.file) ? load_hdf5 : load_csv)(section, content);
  return nn::table_model(content);
}

}  // namespace lockstep::cli

#include "lockstep/cli/function_tables.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "lockstep/cli/data_numbers.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

constexpr const char* kExample = "{ file = \"weather.csv\", at = \"hour\", columns = [\"rain\"] }";

std::vector<nn::Feature> named(const std::vector<std::string>& names) {
  std::vector<nn::Feature> features;
  for (const std::string& name : names) features.push_back({name});
  return features;
}

void read_numbers(const TomlValue& table, TableSection& section) {
  const TomlValue *at = table.find("at"), *values = table.find("values");
  if (at == nullptr || !at->is_array()) {
    throw table.error(at == nullptr ? "values without the numbers they belong to" : "at: " + at->describe(),
                      "a list of as many", "add at = [0, 1, 2]");
  }
  nn::FunctionTable& content = section.content;
  content.at = at->numbers();
  std::vector<std::pair<std::string, const TomlValue*>> columns;
  if (values->is_table()) {
    for (const auto& [name, column] : values->table()) columns.emplace_back(name, &column);
  } else {
    columns.emplace_back("", values);
  }
  content.values.resize(content.at.size() * columns.size());
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const auto& [name, column] = columns[j];
    const std::vector<double> numbers = column->numbers();
    if (numbers.size() != content.at.size()) {
      throw column->error(counted_text(numbers.size(), "number"),
                          std::to_string(content.at.size()) + ", one for each of at");
    }
    content.outputs.push_back({name});
    for (std::size_t i = 0; i < numbers.size(); ++i) content.values[i * columns.size() + j] = numbers[i];
  }
}

TableSection read_section(const std::string& name, const TomlValue& table, const std::filesystem::path& folder) {
  static constexpr std::array<std::string_view, 5> kKeys{"file", "at", "columns", "values", "interpolation"};
  static constexpr std::array<std::string_view, 3> kInterpolations{"linear", "previous", "pchip"};
  TableSection section;
  section.name = name;
  section.where = table.where();
  if (!table.is_table()) throw table.error(table.describe(), std::string("a table of numbers: ") + kExample);
  table.allow_only(kKeys);
  if (const TomlValue* interpolation = table.find("interpolation")) {
    section.content.interpolation = *nn::parse_interpolation(interpolation->one_of(kInterpolations));
  }
  const TomlValue *file = table.find("file"), *values = table.find("values");
  if ((file == nullptr) == (values == nullptr)) {
    throw table.error(file == nullptr ? "neither file nor values" : "file and values", "one of them",
                      std::string("write ") + kExample + ", or { at = [0, 1], values = [2, 3] }");
  }
  if (values != nullptr) {
    if (const TomlValue* columns = table.find("columns")) {
      throw columns->error("columns beside values", "names in values", "write values = { rain = [1, 2] }");
    }
    read_numbers(table, section);
    return section;
  }
  section.file = folder / file->text();
  if (const TomlValue* at = table.find("at")) section.at = at->text();
  if (const TomlValue* columns = table.find("columns")) {
    section.columns = columns->is_text() ? std::vector{columns->text()} : columns->texts();
  }
  return section;
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
  if (section.columns.size() == 1 && values.names.size() == 1) values.names = section.columns;
  content.input = {section.at};
  content.at = std::move(knots.values);
  content.values = std::move(values.values);
  content.outputs = named(values.names);
}

}  // namespace

std::vector<TableSection> read_table_sections(const TomlValue& tables, const std::filesystem::path& folder) {
  if (!tables.is_table()) throw tables.error(tables.describe(), std::string("a table: { weather = ") + kExample + " }");
  std::vector<TableSection> sections;
  for (const auto& [name, table] : tables.table()) sections.push_back(read_section(name, table, folder));
  return sections;
}

nn::Model load_table(const TableSection& section) {
  nn::FunctionTable content = section.content;
  if (!section.file.empty()) (hdf5::File::recognises(section.file) ? load_hdf5 : load_csv)(section, content);
  return nn::table_model(content);
}

}  // namespace lockstep::cli

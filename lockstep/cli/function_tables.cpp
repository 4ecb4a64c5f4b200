#include "lockstep/cli/function_tables.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

constexpr const char* kExample = "{ file = \"weather.csv\", at = \"hour\", columns = [\"rain\"] }";

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
  static constexpr std::array<std::string_view, 4> kInterpolations{"linear", "previous", "pchip", "spline"};
  TableSection section;
  section.name = name;
  section.where = table.where();
  if (!table.is_table()) throw table.error(table.describe(), std::string("a table of numbers: ") + kExample);
  for (const char* key : {"periodic", "period", "repeat", "cyclic"}) {
    if (const TomlValue* value = table.find(key)) {
      throw value->error("an unknown key", "one of " + list_text(kKeys),
                         "what comes again is called at the time within its period: " + name + "(t % 24)");
    }
  }
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

}  // namespace

std::vector<TableSection> read_table_sections(const TomlValue& tables, const std::filesystem::path& folder) {
  if (!tables.is_table()) throw tables.error(tables.describe(), std::string("a table: { weather = ") + kExample + " }");
  std::vector<TableSection> sections;
  for (const auto& [name, table] : tables.table()) sections.push_back(read_section(name, table, folder));
  return sections;
}

}  // namespace lockstep::cli

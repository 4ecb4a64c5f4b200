#include "lockstep/cli/impulses_section.h"

#include <array>
#include <string_view>
#include <utility>

#include "lockstep/cli/event_section.h"
#include "lockstep/cli/file_keys.h"

namespace lockstep::cli {
namespace {

ImpulsesSection read_table(const TomlValue& table, const std::filesystem::path& folder) {
  if (!table.is_table()) throw table.error(table.describe(), "a table with component, change and times");
  table.allow_only(kImpulsesKeys);
  ImpulsesSection section;
  section.where = table.where();
  static constexpr std::array<std::string_view, 3> kWhen{"times", "every", "file"};
  std::string_view given;
  for (const std::string_view key : kWhen) {
    const TomlValue* value = table.find(key);
    if (value == nullptr) continue;
    if (!given.empty()) {
      throw value->error(std::string(key) + " beside " + std::string(given), "one of them",
                         "write a table of [[impulses]] for each");
    }
    given = key;
    section.where = value->where();
  }
  if (given.empty()) {
    throw table.error("no times", "when states change",
                      "add times = [0, 24], every = 24, or file = \"doses.csv\" with a column time");
  }
  if (const TomlValue* component = table.find("component")) {
    section.component_where = component->where();
    section.component = name_or_index(*component);
  } else if (given != "file") {
    throw table.error("no component", "the component that changes", "add component = \"x\"");
  }
  for (const auto& [key, target] : {std::pair{"change", &section.change}, std::pair{"factor", &section.factor}}) {
    if (const TomlValue* value = table.find(key)) *target = parse_column_values(*value, folder);
  }
  if (!section.change && !section.factor && given != "file") {
    throw table.error("neither change nor factor", "what happens to the component",
                      "add change = 100, which is added to it, or factor = 0.5, which multiplies it before");
  }
  for (const char* key : {"from", "until"}) {
    const TomlValue* value = table.find(key);
    if (value != nullptr && given != "every") {
      throw value->error(std::string(key) + " without every", "every, the time from one to the next",
                         "add every = 24, or remove this key");
    }
  }
  if (given == "times") {
    const TomlValue& times = *table.find("times");
    section.times = times.is_array() ? times.numbers() : std::vector{times.number()};
    if (section.times.empty()) throw times.error("no times", "at least one", "remove the table");
  } else if (given == "every") {
    const TomlValue& every = *table.find("every");
    section.every.emplace().interval = every.number();
    if (!(every.number() > 0)) throw every.error(every.describe(), "a number greater than 0");
    if (const TomlValue* from = table.find("from")) section.every->from = from->number();
    if (const TomlValue* until = table.find("until")) {
      section.every->until = until->number();
      if (section.every->from && *section.every->until < *section.every->from)
        throw until->error(until->describe(), "a time that is not before from");
    }
  } else {
    section.file = folder / table.find("file")->text();
  }
  return section;
}

}  // namespace

std::vector<ImpulsesSection> read_impulses(const TomlValue& tables, const std::filesystem::path& folder) {
  if (!tables.is_array() || tables.array().empty()) {
    throw tables.error(tables.is_table() ? "a single table" : tables.describe(), "tables: [[impulses]]",
                       "write [[impulses]] above each");
  }
  std::vector<ImpulsesSection> sections;
  for (const TomlValue& table : tables.array()) sections.push_back(read_table(table, folder));
  return sections;
}

std::vector<std::filesystem::path> files_of(const std::vector<ImpulsesSection>& sections) {
  std::vector<std::filesystem::path> files;
  for (const ImpulsesSection& section : sections) {
    if (section.file) files.push_back(*section.file);
    for (const auto* values : {&section.change, &section.factor}) {
      if (!*values) continue;
      for (auto& file : files_of(**values)) files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace lockstep::cli

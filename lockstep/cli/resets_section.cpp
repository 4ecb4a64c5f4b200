#include "lockstep/cli/resets_section.h"

#include "lockstep/cli/equations_section.h"
#include "lockstep/cli/file_keys.h"

namespace lockstep::cli {
namespace {

constexpr const char* kRemedy = "add to = { v = \"-0.9 * v\" }, or to = {} where nothing changes";

ResetSection read_table(const TomlValue& table) {
  if (!table.is_table()) throw table.error(table.describe(), "a table with component and to");
  table.allow_only(problem_keys::kResets);
  ResetSection section{read_event(table), {}};
  const TomlValue* to = table.find("to");
  if (to == nullptr) throw table.error("no new state", "what components become", kRemedy);
  section.to = expressions_of(*to);
  return section;
}

}  // namespace

std::vector<ResetSection> read_resets(const TomlValue& tables) {
  if (!tables.is_array() || tables.array().empty()) {
    throw tables.error(tables.is_table() ? "a single table" : tables.describe(), "tables: [[resets]]",
                       "write [[resets]] above each");
  }
  std::vector<ResetSection> sections;
  for (const TomlValue& table : tables.array()) sections.push_back(read_table(table));
  return sections;
}

}  // namespace lockstep::cli

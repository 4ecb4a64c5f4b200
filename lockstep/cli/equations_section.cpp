#include "lockstep/cli/equations_section.h"

#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

// A text, or a number.
std::string expression_text(const TomlValue& value) {
  if (value.is_number()) return number_text(value.number());
  if (!value.is_text()) throw value.error(value.describe(), "an expression in quotes");
  return value.text();
}

std::vector<nn::Equation> equations_of(const TomlValue& table) {
  if (!table.is_table()) throw table.error(table.describe(), "a table of expressions by name");
  std::vector<nn::Equation> equations;
  for (const auto& [name, value] : table.table()) equations.push_back({name, expression_text(value), value.where()});
  return equations;
}

void read_parameters(const TomlValue& value, nn::Equations& system) {
  if (value.is_array()) {
    for (std::string& name : value.texts()) system.parameters.push_back({std::move(name), {}});
    return;
  }
  if (!value.is_table()) throw value.error(value.describe(), "names, or a table of names and values");
  for (const auto& [name, number] : value.table()) {
    const double given =
        number.is_number() ? number.number() : nn::constant_expression({name, expression_text(number), number.where()});
    system.parameters.push_back({name, given});
  }
}

}  // namespace

EquationsSection read_equations(const TomlValue& rhs, const std::filesystem::path& folder) {
  EquationsSection section;
  const TomlValue& equations = *rhs.find("equations");
  section.where = equations.where();
  section.system.equations = equations_of(equations);
  if (section.system.equations.empty()) throw equations.error("no equations", "one for each component of the state");
  if (const TomlValue* definitions = rhs.find("definitions")) section.system.definitions = equations_of(*definitions);
  if (const TomlValue* parameters = rhs.find("parameters")) read_parameters(*parameters, section.system);
  if (const TomlValue* models = rhs.find("models")) {
    if (!models->is_table()) throw models->error(models->describe(), "a table: { closure = \"closure.h5\" }");
    for (const auto& [name, file] : models->table()) section.nets.push_back({name, folder / file.text(), file.where()});
  }
  return section;
}

}  // namespace lockstep::cli

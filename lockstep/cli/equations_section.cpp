#include "lockstep/cli/equations_section.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

// A text, or a number.
std::string expression_text(const TomlValue& value) {
  if (value.is_number()) return number_text(value.number());
  if (!value.is_text()) throw value.error(value.describe(), "an expression in quotes");
  return value.text();
}

void read_parameters(const TomlValue& value, EquationsSection& section, ParametersMay parameters) {
  nn::Equations& system = section.system;
  const auto require_new = [&system](const std::string& name, const TomlValue& at) {
    const auto has = [&name](const std::vector<nn::Equation>& of) {
      return std::ranges::find(of, name, &nn::Equation::name) != of.end();
    };
    if (!has(system.equations) && !has(system.definitions)) return;
    throw at.error("the name \"" + name + "\" a second time", "names that differ", "choose another name");
  };
  if (value.is_array()) {
    for (const std::string& name : value.texts()) require_new(name, value);
    for (std::string& name : value.texts()) system.parameters.push_back({std::move(name), {}});
    return;
  }
  if (!value.is_table()) throw value.error(value.describe(), "names, or a table of names and values");
  for (const auto& [name, given] : value.table()) {
    require_new(name, given);
    if (!given.is_table()) {
      system.parameters.push_back({name, number_of(given)});
      continue;
    }
    if (parameters != ParametersMay::be_trained) {
      throw given.error("a parameter to be trained", "its value: a training file finds it", "write " + name + " = 1");
    }
    section.trained.push_back(trained_parameter(given, system.parameters.size()));
    system.parameters.push_back({name, section.trained.back().start});
  }
}

}  // namespace

std::vector<NamedFile> files_of(const EquationsSection& equations) {
  std::vector<NamedFile> files;
  for (const auto& net : equations.nets) files.push_back({net.name, net.path});
  for (const TableSection& table : equations.tables) {
    if (!table.file.empty()) files.push_back({table.name, table.file});
  }
  return files;
}

std::vector<nn::Equation> expressions_of(const TomlValue& table) {
  if (!table.is_table()) throw table.error(table.describe(), "a table of expressions by name");
  std::vector<nn::Equation> expressions;
  for (const auto& [name, value] : table.table()) expressions.push_back({name, expression_text(value), value.where()});
  return expressions;
}

double number_of(const TomlValue& value) {
  if (value.is_number()) return value.number();
  return nn::constant_expression({value.key(), expression_text(value), value.where()});
}

ode::TrainedParameter trained_parameter(const TomlValue& table, std::size_t parameter) {
  static constexpr std::array<std::string_view, 6> kKeys{"start", "scale", "positive", "min", "max", "unit"};
  table.allow_only(kKeys);
  ode::TrainedParameter trained{.parameter = parameter};
  const TomlValue* start = table.find("start");
  if (start == nullptr) throw table.error("no start", "a number to begin with", "add start = 1");
  trained.start = number_of(*start);
  if (const TomlValue* positive = table.find("positive"); positive != nullptr && positive->boolean()) {
    trained.law = ode::ParameterLaw::positive;
  }
  if (const TomlValue* scale = table.find("scale")) trained.scale = number_of(*scale);
  for (const auto& [key, bound] : {std::pair{"min", &trained.min}, {"max", &trained.max}}) {
    const TomlValue* value = table.find(key);
    if (value == nullptr) continue;
    if (trained.law == ode::ParameterLaw::positive) {
      throw value->error(std::string(key) + " beside positive = true", "one of them",
                         "write min = 0 instead of positive");
    }
    *bound = number_of(*value);
  }
  if (trained.min || trained.max) trained.law = ode::ParameterLaw::bounded;
  if (const TomlValue* unit = table.find("unit")) trained.unit = unit->text();
  trained.validate(table.where());
  return trained;
}

EquationsSection read_equations(const TomlValue& rhs, const std::filesystem::path& folder, ParametersMay may) {
  EquationsSection section;
  const TomlValue& equations = *rhs.find("equations");
  section.where = equations.where();
  section.system.equations = expressions_of(equations);
  if (section.system.equations.empty()) throw equations.error("no equations", "one for each component of the state");
  if (const TomlValue* definitions = rhs.find("definitions")) section.system.definitions = expressions_of(*definitions);
  if (const TomlValue* parameters = rhs.find("parameters")) read_parameters(*parameters, section, may);
  if (const TomlValue* models = rhs.find("models")) {
    if (!models->is_table()) throw models->error(models->describe(), "a table: { closure = \"closure.h5\" }");
    for (const auto& [name, file] : models->table()) {
      section.nets.push_back({name, folder / file.text(), file.where(), nullptr});
    }
  }
  if (const TomlValue* tables = rhs.find("tables")) section.tables = read_table_sections(*tables, folder);
  return section;
}

}  // namespace lockstep::cli

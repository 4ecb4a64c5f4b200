// Equations in a problem or training file: [rhs.equations], the definitions, parameters and nets beside them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/cli/function_tables.h"
#include "lockstep/cli/toml_value.h"
#include "lockstep/nn/equations.h"
#include "lockstep/ode/trained_parameters.h"

namespace lockstep::cli {

struct EquationsSection {
  nn::Equations system;  // its nets are not loaded yet
  struct NetFile {
    std::string name;
    std::filesystem::path path;
    std::string where;
    std::shared_ptr<const nn::Model> loaded;  // where a caller has it in memory; else it is read
  };
  std::vector<NetFile> nets;
  std::vector<TableSection> tables;
  std::vector<ode::TrainedParameter> trained;  // those of the parameters that training finds, their starts for values
  std::string where;
};

// Of the section [rhs], whose keys were checked; paths are relative to `folder`. Throws Error naming file, line and
// key.
enum class ParametersMay { be_given, be_trained };
EquationsSection read_equations(const TomlValue& rhs, const std::filesystem::path& folder,
                                ParametersMay parameters = ParametersMay::be_given);

// Of the nets and tables that are read, by name.
struct NamedFile {
  std::string name;
  std::filesystem::path path;
};
std::vector<NamedFile> files_of(const EquationsSection& equations);

// A table of texts, or numbers, by name.
std::vector<nn::Equation> expressions_of(const TomlValue& table);

// A number, or an expression of numbers; and { start = 1 } with what goes beside it.
double number_of(const TomlValue& value);
ode::TrainedParameter trained_parameter(const TomlValue& table, std::size_t parameter);

// The system with its nets and tables, read from their files.
nn::Equations load_nets(const EquationsSection& section);

}  // namespace lockstep::cli

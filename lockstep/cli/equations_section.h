// Equations in a problem or training file: [rhs.equations], the definitions, parameters and nets beside them.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/cli/toml_value.h"
#include "lockstep/nn/equations.h"

namespace lockstep::cli {

struct EquationsSection {
  nn::Equations system;  // its nets are not loaded yet
  struct NetFile {
    std::string name;
    std::filesystem::path path;
    std::string where;
  };
  std::vector<NetFile> nets;
  std::string where;
};

// Of the section [rhs], whose keys were checked; paths are relative to `folder`. Throws Error naming file, line and
// key.
EquationsSection read_equations(const TomlValue& rhs, const std::filesystem::path& folder);

// The system with its nets, read from their files.
nn::Equations load_nets(const EquationsSection& section);

}  // namespace lockstep::cli

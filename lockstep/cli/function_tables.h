// Functions given as numbers in a problem or training file, which its equations call: [rhs] tables.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/cli/toml_value.h"
#include "lockstep/nn/table_model.h"

namespace lockstep::cli {

struct TableSection {
  std::string name, where;
  std::filesystem::path file;        // a CSV or HDF5 file; empty: the numbers stand in `content`
  std::string at;                    // the column or dataset of the knots; empty: the first column
  std::vector<std::string> columns;  // of the values; empty: all others
  nn::FunctionTable content;
};

// Throws Error naming file, line and key.
std::vector<TableSection> read_table_sections(const TomlValue& tables, const std::filesystem::path& folder);

// With its file read. Throws Error: (file) for one that cannot be read, (invalid_argument) for numbers that do not fit.
nn::Model load_table(const TableSection& section);

}  // namespace lockstep::cli

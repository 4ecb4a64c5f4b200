// [[impulses]] in a problem file: what happens to states all at once, doses or harvests.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/cli/ensemble_values.h"
#include "lockstep/cli/toml_value.h"

namespace lockstep::cli {

// Again and again.
struct RepeatedTimes {
  double interval = 0;
  std::optional<double> from, until;  // else the ends of each span
};

// One of the tables. Of times, every and file it has one; a file's columns give what the table does not.
struct ImpulsesSection {
  std::optional<std::variant<std::string, std::size_t>> component;  // name or index
  std::string component_where;
  std::optional<EnsembleValues> change, factor;  // of one column; 0 and 1 where they are absent
  std::vector<double> times;
  std::optional<RepeatedTimes> every;
  std::optional<std::filesystem::path> file;
  std::string where;  // of the key that says when
};

// Throws Error (invalid_argument) naming file, line and key. Files lie relative to `folder`.
std::vector<ImpulsesSection> read_impulses(const TomlValue& tables, const std::filesystem::path& folder);

// The files that the tables name.
std::vector<std::filesystem::path> files_of(const std::vector<ImpulsesSection>& sections);

}  // namespace lockstep::cli

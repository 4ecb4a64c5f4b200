// [[resets]] in a problem file: states that change where an event happens, and go on.
#pragma once

#include <vector>

#include "lockstep/cli/event_section.h"
#include "lockstep/cli/toml_value.h"
#include "lockstep/nn/equations.h"

namespace lockstep::cli {

// One of the tables.
struct ResetSection {
  EventSection event;
  std::vector<nn::Equation> to;  // components by name, and what they become; others keep theirs, all where it is empty
};

// Throws Error (invalid_argument) naming file, line and key.
std::vector<ResetSection> read_resets(const TomlValue& tables);

}  // namespace lockstep::cli

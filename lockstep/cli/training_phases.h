// How a training file says to train: its sections [training] and [[phase]].
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lockstep/cli/toml_value.h"
#include "lockstep/cli/training_file.h"

namespace lockstep::cli {

// Loss, phases and target into `training`, whose `ode` says already what is trained. Throws Error (invalid_argument)
// naming file, line and key.
void read_phases(const TomlValue& file, TrainingFile& training);

// A section, null where absent; its keys are checked.
const TomlValue* section(const TomlValue& file, std::string_view name, std::span<const std::string_view> keys);

// An integer, which must not be below `least`.
std::int64_t at_least(const TomlValue& value, std::int64_t least);

}  // namespace lockstep::cli

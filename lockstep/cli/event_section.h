// Where something happens to a trajectory, in a problem file: [event], and each of [[resets]].
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "lockstep/cli/toml_value.h"
#include "lockstep/nn/equations.h"
#include "lockstep/ode/problem.h"

namespace lockstep::cli {

struct EventSection {
  std::optional<nn::Equation> function;  // an expression whose sign changes; else
  std::variant<std::string, std::size_t> component;
  double value = 0;
  ode::TerminalEvent::Direction direction = ode::TerminalEvent::Direction::either;
  std::string where;
};

// Of a table whose keys were checked. Throws Error (invalid_argument) naming file, line and key.
EventSection read_event(const TomlValue& table);

// "rising", "falling", "either", and back, where it is one of these.
std::string to_string(ode::TerminalEvent::Direction direction);
std::optional<ode::TerminalEvent::Direction> parse_direction(std::string_view name);

// A component's name, or its index from 0.
std::variant<std::string, std::size_t> name_or_index(const TomlValue& value);

}  // namespace lockstep::cli

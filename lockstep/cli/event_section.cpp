#include "lockstep/cli/event_section.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace lockstep::cli {
namespace {

using Direction = ode::TerminalEvent::Direction;

constexpr std::array kDirections{Direction::rising, Direction::falling, Direction::either};
constexpr std::array<std::string_view, 3> kDirectionNames{"rising", "falling", "either"};

}  // namespace

EventSection read_event(const TomlValue& table) {
  EventSection event;
  const TomlValue* component = table.find("component");
  const TomlValue* function = table.find("function");
  if (function == nullptr && component == nullptr) {
    throw table.error("no component", "the component that triggers the event",
                      "add component = \"x\", or function = \"x^2 + y^2 - 1\"");
  }
  event.where = (function != nullptr ? function : component)->where();
  if (function != nullptr) {
    for (const char* key : {"component", "value"}) {
      if (const TomlValue* value = table.find(key)) {
        throw value->error(std::string(key) + " beside a function", "one of them", "remove one of them");
      }
    }
    event.function = nn::Equation{"event", function->text(), event.where};
  } else {
    event.component = name_or_index(*component);
  }
  if (const TomlValue* value = table.find("value")) event.value = value->number();
  if (const TomlValue* direction = table.find("direction")) {
    event.direction = *parse_direction(direction->one_of(kDirectionNames));
  }
  return event;
}

std::string to_string(Direction direction) {
  return std::string(
      kDirectionNames[static_cast<std::size_t>(std::ranges::find(kDirections, direction) - kDirections.begin())]);
}

std::optional<Direction> parse_direction(std::string_view name) {
  const auto found = std::ranges::find(kDirectionNames, name);
  if (found == kDirectionNames.end()) return std::nullopt;
  return kDirections[static_cast<std::size_t>(found - kDirectionNames.begin())];
}

std::variant<std::string, std::size_t> name_or_index(const TomlValue& value) {
  if (value.is_text()) return value.text();
  const std::int64_t index = value.integer();
  if (index < 0) throw value.error(value.describe(), "a name, or an index from 0");
  return static_cast<std::size_t>(index);
}

}  // namespace lockstep::cli

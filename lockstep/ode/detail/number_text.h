// Numbers in error messages.
#pragma once

#include <charconv>
#include <string>

namespace lockstep::ode::detail {

// The shortest text that reads back as this number: 1e-09 stays that, where std::to_string would print 0.000000.
inline std::string number_text(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

}  // namespace lockstep::ode::detail

// What people write where TOML wants something else: formulas without quotes, numbers as other languages spell them.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::cli {

// What to write, for a text that is not TOML on that line, counted from 1; empty where nothing is known. `problem` is
// what the parser says.
std::string toml_advice(std::string_view text, unsigned line, std::string_view problem);

}  // namespace lockstep::cli

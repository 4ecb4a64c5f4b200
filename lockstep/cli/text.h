// Numbers, lists and sizes as people read them, for messages and summaries.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/core/text.h"

namespace lockstep::cli {

std::string count_text(std::int64_t value);                      // "10,000"
template <std::unsigned_integral U>
std::string count_text(U value) {
  return count_text(static_cast<std::int64_t>(value));
}
std::string counted_text(std::size_t count, const std::string& noun);  // "1 trajectory", "10,000 trajectories"
std::string size_text(std::uint64_t bytes);                      // "12.1 MB" (powers of ten)
std::string seconds_text(double seconds);                        // "85 ms", "1.24 s", "3 min 20 s", "2 h 05 min"
std::string rate_text(double per_second);                        // "52,300", "0.31"
std::string list_text(std::span<const std::string_view> words);  // "a, b, c"; of very many the first
std::string one_line(std::string_view text);                     // line breaks and runs of spaces become one space
std::string with_unit(const std::string& name,
                      const std::string& unit);  // "rate (rad/s)"; the name where there is none
// At most so many characters of UTF-8, the last an ellipsis where some are left out.
std::string shortened(const std::string& text, std::size_t most);
std::string csv_field(const std::string& text);  // in quotes where a table's field needs them
std::string toml_key(const std::string& name);   // in quotes where a key of a file of ours needs them

// "did you mean \"tsit5\"?" for the nearest of the choices, or what others call one, "" when none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> choices);

}  // namespace lockstep::cli

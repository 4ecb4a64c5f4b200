// Small work on text that more than one room needs. Numbers are written and read without the C library's printf and
// strtod, which follow the host program's locale: in a German one they would write "0,5" and read 0.5 as 0.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

// Without blanks, tabs and carriage returns at its ends.
inline std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  return first == text.npos ? std::string_view{} : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// "4,194,304"
inline std::string grouped_digits(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, ",");
  return digits;
}

// The shortest text that reads back as this number: 1e-09 stays that, where std::to_string would print 0.000000.
std::string number_text(std::floating_point auto value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// As printf's %.*g: at most so many significant digits (at most 17), "24.5", "1.3e-07".
inline std::string rounded_text(double value, int digits) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits).ptr};
}

// As printf's %.*f and %.*e: so many decimals (at most 17), "0.50", "1.3e-07".
inline std::string fixed_text(double value, int decimals) {
  char text[340];  // 309 digits before the point
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, decimals).ptr};
}
inline std::string scientific_text(double value, int decimals) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, decimals).ptr};
}

}  // namespace lockstep

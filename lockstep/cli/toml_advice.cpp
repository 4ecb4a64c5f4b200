#include "lockstep/cli/toml_advice.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

#include "lockstep/core/text.h"

namespace lockstep::cli {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Without its comment: a # outside quotes begins one.
std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote != 0) {
      if (line[i] == quote) quote = 0;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#') {
      return line.substr(0, i);
    }
  }
  return line;
}

// Signs and spaces that word processors and web pages put in the place of those on the keyboard.
std::string advice_on_characters(std::string_view line) {
  for (const std::string_view sign : {"\u2212", "\u2013", "\u2014"}) {
    if (contains(line, sign)) return "write the minus sign of the keyboard, -, in the place of " + std::string(sign);
  }
  for (const std::string_view quote : {"\u201c", "\u201d", "\u201e", "\u2018", "\u2019"}) {
    if (contains(line, quote))
      return "write the straight quotes of the keyboard, in the place of " + std::string(quote);
  }
  if (contains(line, "\u00a0")) return "write plain spaces in the place of those that do not break (U+00A0)";
  return {};
}

// With digits on both sides of its point, as TOML wants them.
std::string with_digits(std::string_view digits) {
  std::string whole(digits);
  if (whole.starts_with('.')) whole.insert(0, "0");
  if (const std::size_t point = whole.find('.');
      point != whole.npos && (point + 1 == whole.size() || !is_digit(whole[point + 1]))) {
    whole.insert(point + 1, "0");
  }
  return whole;
}

// "1,000,000" and "1'000": one to three digits that begin with no 0, then threes.
bool has_thousands(std::string_view digits) {
  std::size_t at = std::min(digits.find_first_of(",'"), digits.size());
  if (at == digits.size() || at > 3 || digits[0] == '0') return false;
  const char mark = digits[at];
  for (; at < digits.size(); at += 4) {
    if (digits[at] != mark || digits.size() - at < 4) return false;
    if (!std::ranges::all_of(digits.substr(at + 1, 3), is_digit)) return false;
  }
  return true;
}

// What from_chars makes of it: all of it a number of T, or one that T has no room for.
template <class T>
std::errc read_whole(std::string_view digits) {
  T number{};
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return end == digits.data() + digits.size() ? failure : std::errc::invalid_argument;
}

// A number as other languages spell it, "" for none and for what is right.
std::string advice_on_number(std::string_view name, std::string_view value) {
  const auto write = [&](const std::string& number) { return "write " + std::string(name) + " = " + number; };
  const std::string sign = value.starts_with('-') ? "-" : "";
  std::string_view digits = value.substr(value.starts_with('-') || value.starts_with('+') ? 1 : 0);
  const auto among = [&](std::string_view letters) { return digits.find_first_not_of(letters) == digits.npos; };
  if (digits.empty() || !(is_digit(digits[0]) || (digits[0] == '.' && digits.size() > 1 && is_digit(digits[1]))))
    return {};
  if (has_thousands(digits)) {
    std::string together(digits);
    std::erase_if(together, [](char c) { return !is_digit(c); });
    return write(sign + together) + ", without marks between thousands; decimals follow a point";
  }
  if (among("0123456789,eE+-") && std::ranges::count(digits, ',') == 1) {
    std::string point(digits);
    std::ranges::replace(point, ',', '.');
    if (read_whole<double>(point) == std::errc()) return write(sign + with_digits(point)) + ": decimals follow a point";
  }
  if (among("0123456789dD+-.") && std::ranges::any_of(digits, [](char c) { return c == 'd' || c == 'D'; })) {
    std::string exponent(digits);
    std::ranges::replace(exponent, 'D', 'e');
    std::ranges::replace(exponent, 'd', 'e');
    return write(sign + with_digits(exponent));
  }
  if (among("0123456789.eE+-") && std::ranges::count(digits, '.') == 1) {
    if (const std::string whole = with_digits(digits); whole != digits) return write(sign + whole);
  }
  if (among("0123456789") && digits.size() > 1 && digits[0] == '0') {
    const std::size_t first = digits.find_first_not_of('0');
    return write(sign + std::string(first == digits.npos ? "0" : digits.substr(first)));
  }
  if (among("0123456789")) {
    const bool fits = read_whole<std::int64_t>(digits) == std::errc();
    return fits ? "" : "numbers without a point go to 9223372036854775807";
  }
  if (const std::errc failure = read_whole<double>(digits); failure != std::errc::invalid_argument)
    return failure == std::errc() ? "" : "numbers go to 1.8e308";
  if (among("0123456789.eE+-/* ")) return "write the number that it comes to, or a formula in quotes";
  const std::string_view unit =
      trimmed(digits.substr(std::min(digits.find_first_not_of("0123456789.eE+-"), digits.size())));
  const auto of_unit = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '^'; };
  if (unit.empty() || !std::ranges::all_of(unit, of_unit)) return {};
  return "write the number alone; units are texts of their own (docs/problem_file.md)";
}

// What stands left of an = without quotes: letters, digits, _ and -, and points between.
bool is_bare(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  });
}

}  // namespace

std::string toml_advice(std::string_view text, unsigned line, std::string_view problem) {
  if (contains(text.substr(0, 400), std::string_view("\0", 1)) || contains(problem, "utf-8"))
    return "save the file as UTF-8";
  if (contains(text, "\r") && !contains(text, "\n")) return "save the file with the line ends of Unix or Windows";
  for (; line > 1; --line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  text = without_comment(text.substr(0, text.find('\n')));
  if (std::string advice = advice_on_characters(text); !advice.empty()) return advice;
  if (contains(problem, "redefine")) return "write each key and each [section] once";
  if (contains(problem, "unknown escape")) return "write folders with /, or the whole text in single quotes";
  const std::size_t equals = text.find('='), colon = text.find(':');
  if (equals == text.npos) {
    return colon == text.npos || !contains(problem, "'='") ? std::string{} : "write NAME = VALUE, below its [section]";
  }
  const std::string_view name = trimmed(text.substr(0, equals));
  const std::string_view value = trimmed(text.substr(equals + 1));
  if (name.empty() || value.empty()) return {};
  const auto write = [&](std::string_view given) { return "write " + std::string(name) + " = " + std::string(given); };
  if (!is_bare(name) && name.find_first_of("\"'[{") == name.npos)
    return "write \"" + std::string(name) + "\" = " + std::string(value) +
           ": a name of other signs than letters, digits, "
           "_ and - stands in quotes";
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kTruths{{{"True", "true"},
                                                                                          {"TRUE", "true"},
                                                                                          {"yes", "true"},
                                                                                          {"on", "true"},
                                                                                          {".true.", "true"},
                                                                                          {"False", "false"},
                                                                                          {"FALSE", "false"},
                                                                                          {"no", "false"},
                                                                                          {"off", "false"},
                                                                                          {".false.", "false"}}};
  for (const auto& [theirs, ours] : kTruths) {
    if (value == theirs) return write(ours);
  }
  if (value.starts_with('(') && value.ends_with(')') && !contains(value.substr(1), "("))
    return write("[" + std::string(value.substr(1, value.size() - 2)) + "]");
  if (value.starts_with('[') && value.ends_with(']')) {
    std::string_view rest = value.substr(1, value.size() - 2);
    for (bool more = true; more;) {
      const std::size_t comma = rest.find(',');
      const std::string advice = advice_on_number("a", trimmed(rest.substr(0, comma)));
      if (!advice.empty()) return advice.starts_with("write a = ") ? "write " + advice.substr(10) : advice;
      more = comma != rest.npos;
      if (more) rest.remove_prefix(comma + 1);
    }
    return {};
  }
  if (std::string advice = advice_on_number(name, value); !advice.empty()) return advice;
  if (value.find_first_of("\"'[{") != value.npos || read_whole<double>(value) == std::errc()) return {};
  return "write text and formulas in quotes: " + std::string(name) + " = \"" + std::string(value) + "\"";
}

}  // namespace lockstep::cli

#include "lockstep/cli/flag_checks.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

// The number that the whole text spells.
template <class T>
std::optional<T> read(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

// 1e6, as files take it: a whole number by its value, and one that a double holds exactly.
std::optional<std::uint64_t> read_count(const std::string& text) {
  if (const auto plain = read<std::uint64_t>(text)) return plain;
  constexpr double kExact = 9007199254740992;  // 2^53
  const auto value = read<double>(text);
  if (!value || !(*value >= 0 && *value <= kExact) || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::string refusal(const std::string& found, const std::string& expected) {
  return "found \"" + found + "\", expected " + expected;
}

}  // namespace

CLI::Validator one_of(const std::vector<std::string>& choices) {
  std::string names;
  for (const std::string& choice : choices) names += (names.empty() ? "" : ",") + choice;
  const auto check = [choices](const std::string& text) -> std::string {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return "";
    const std::vector<std::string_view> words(choices.begin(), choices.end());
    const std::string remedy = did_you_mean(text, words);
    return refusal(text, "one of " + list_text(words)) + (remedy.empty() ? "" : "; " + remedy);
  };
  return CLI::Validator(check, "{" + names + "}");
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  const bool open = most == kMostWholeNumber;
  const std::string range = std::to_string(least) + (open ? " or more" : " to " + std::to_string(most));
  const auto check = [least, most, range](std::string& text) -> std::string {
    const auto value = read_count(text);
    if (value && *value >= least && *value <= most) {
      text = std::to_string(*value);  // which goes into the option
      return "";
    }
    const bool too_large =
        !text.empty() && text.find_first_not_of("0123456789") == text.npos && (!value || *value > most);
    return refusal(text,
                   "a whole number, " + (too_large ? std::to_string(least) + " to " + std::to_string(most) : range));
  };
  return CLI::Validator(check, range);
}

CLI::Validator file_name() {
  const auto check = [](const std::string& text) -> std::string {
    return text.empty() ? refusal(text, "the name of a file") : "";
  };
  return CLI::Validator(check, "");
}

CLI::Validator any_number() {
  const auto check = [](const std::string& text) -> std::string {
    return read<double>(text) ? "" : refusal(text, "a number");
  };
  return CLI::Validator(check, "");
}

CLI::Validator finite_number() {
  const auto check = [](const std::string& text) -> std::string {
    const auto value = read<double>(text);
    return value && std::isfinite(*value) ? "" : refusal(text, "a finite number");
  };
  return CLI::Validator(check, "");
}

CLI::Validator positive_number() {
  const auto check = [](const std::string& text) -> std::string {
    const auto value = read<double>(text);
    return value && *value > 0 ? "" : refusal(text, "a number above 0");
  };
  return CLI::Validator(check, "above 0");
}

}  // namespace lockstep::cli

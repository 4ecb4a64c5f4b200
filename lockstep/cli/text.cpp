#include "lockstep/cli/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lockstep/core/names.h"

namespace lockstep::cli {

std::string count_text(std::int64_t value) {
  const auto size = static_cast<std::uint64_t>(value);
  return value < 0 ? "-" + grouped_digits(-size) : grouped_digits(size);
}

std::string counted_text(std::size_t count, const std::string& noun) {
  const std::string number = count_text(count) + " ";
  if (count == 1) return number + noun;
  return number + (noun.ends_with("y") ? noun.substr(0, noun.size() - 1) + "ies" : noun + "s");
}

std::string size_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits{"kB", "MB", "GB", "TB", "PB"};
  if (bytes < 1000) return std::to_string(bytes) + " bytes";
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fixed_text(value, value < 99.95 ? 1 : 0) + ' ' + kUnits[unit];
}

std::string seconds_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e12) return "?";
  if (seconds < 1e-6) return rounded_text(seconds * 1e9, 3) + " ns";
  if (seconds < 1e-3) return rounded_text(seconds * 1e6, 3) + " us";
  if (seconds < 0.9995) return rounded_text(seconds * 1e3, 3) + " ms";
  if (seconds < 99.5) return rounded_text(seconds, 3) + " s";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  const std::int64_t minutes = whole / 60;
  return std::to_string(minutes / 60) + (minutes % 60 < 10 ? " h 0" : " h ") + std::to_string(minutes % 60) + " min";
}

std::string rate_text(double per_second) {
  if (!std::isfinite(per_second)) return "?";
  if (per_second < 100) return rounded_text(per_second, 3);
  // Three digits are all a rate means.
  const double unit = std::pow(10.0, std::floor(std::log10(per_second)) - 2);
  return count_text(static_cast<std::int64_t>(std::llround(per_second / unit) * std::llround(unit)));
}

std::string list_text(std::span<const std::string_view> words) {
  constexpr std::size_t kMost = 40;
  const std::size_t shown = words.size() <= kMost ? words.size() : kMost / 2;
  std::string text;
  for (const std::string_view word : words.first(shown)) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return shown == words.size() ? text : text + " and " + counted_text(words.size() - shown, "other");
}

std::string shortened(const std::string& text, std::size_t most) {
  std::size_t characters = 0, end = 0;  // of those kept before the ellipsis
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) continue;  // goes on with a character
    if (++characters == most) end = i;
    if (characters > most) return text.substr(0, end) + "…";
  }
  return text;
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (!space) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string with_unit(const std::string& name, const std::string& unit) {
  return unit.empty() ? name : name + " (" + unit + ")";
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == text.npos) return text;
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + "\"";
}

std::string toml_key(const std::string& name) {
  const bool is_bare = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return is_bare ? name : '"' + name + '"';
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> choices) {
  // What NumPy, C and Fortran call them is not near by letters.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kOtherWords{{{"float64", "f64"},
                                                                                              {"double", "f64"},
                                                                                              {"fp64", "f64"},
                                                                                              {"real64", "f64"},
                                                                                              {"f8", "f64"},
                                                                                              {"float32", "f32"},
                                                                                              {"single", "f32"},
                                                                                              {"fp32", "f32"},
                                                                                              {"real32", "f32"},
                                                                                              {"f4", "f32"}}};
  std::string nearest = nearest_name(word, choices);
  for (const auto& [other, ours] : kOtherWords) {
    if (word == other && std::ranges::find(choices, ours) != choices.end()) nearest = ours;
  }
  return nearest.empty() ? nearest : "did you mean \"" + nearest + "\"?";
}

}  // namespace lockstep::cli

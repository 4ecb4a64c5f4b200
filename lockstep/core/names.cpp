#include "lockstep/core/names.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace lockstep {
namespace {

// Levenshtein's distance with neighbouring letters exchanged counted as one edit (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = last[j] + (a[i] == b[j] ? 0 : 1);
      row[j + 1] = std::min({replaced, last[j + 1] + 1, row[j] + 1});
      const bool exchanged = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (exchanged) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

constexpr std::size_t kShort = 3;  // of names as short one letter may differ, if any is the same

// Equal but for the case of letters.
bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string_view> known) {
  for (const std::string_view candidate : known) {
    if (same_letters(name, candidate)) return std::string(candidate);
  }
  for (const std::string_view candidate : known) {  // "A" for "A (mol/L)", as tables write units
    if (name.empty() || candidate.size() <= name.size() || !candidate.starts_with(name)) continue;
    if (std::string_view(" ([").find(candidate[name.size()]) != std::string_view::npos) return std::string(candidate);
  }
  std::string_view nearest;
  std::size_t least = static_cast<std::size_t>(-1);
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < least && distance < name.size() &&
        3 * distance <= std::max({name.size(), candidate.size(), kShort})) {
      nearest = candidate;
      least = distance;
    }
  }
  return std::string(nearest);
}

Error unknown_name(std::string field, std::string_view name, std::span<const std::string_view> known) {
  std::string list;
  for (const std::string_view candidate : known) list += (list.empty() ? "" : ", ") + std::string(candidate);
  const std::string nearest = nearest_name(name, known);
  return Error(ErrorKind::invalid_argument, {.field = std::move(field),
                                             .found = '"' + std::string(name) + '"',
                                             .expected = known.empty() ? "none" : "one of " + list,
                                             .remedy = nearest.empty() ? "" : "did you mean \"" + nearest + "\"?"});
}

}  // namespace lockstep

#include "bindings/python/users_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace lockstep::python {
namespace {

// Without "arguments:7: " and "arguments: ", wherever they stand.
std::string without_places(std::string text) {
  const std::string mark = std::string(kArguments) + ":";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    std::size_t end = at + mark.size();
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
    if (end < text.size() && text[end] == ':') ++end;
    if (end < text.size() && text[end] == ' ') ++end;
    text.erase(at, end - at);
  }
  return text;
}

}  // namespace

Error in_users_words(const Error& error) {
  std::string field = without_places(error.field());
  if (field == "method.name") field = "method";
  if (field == "time.unit") field = "time_unit";
  if (field == "output.file") field = "output";
  for (const std::string_view prefix :
       {"--", "method.", "run.", "output.", "ensemble.", "time.", "net.", "data.", "training.", "rhs."}) {
    if (field.starts_with(prefix)) field.erase(0, prefix.size());
  }
  constexpr std::array<std::array<std::string_view, 2>, 3> kNames{
      {{"initial_state", "u0"}, {"span", "t_span"}, {"save", "save_at"}}};
  for (const auto& [key, argument] : kNames) {
    const std::string_view rest = std::string_view(field).substr(std::min(field.size(), key.size()));
    if (field.starts_with(key) && (rest.empty() || rest[0] == '.' || rest[0] == '['))
      field.replace(0, key.size(), argument);
  }
  for (char& letter : field) {
    if (letter == '-' && error.field().starts_with("--")) letter = '_';
  }
  return Error(error.kind(), {field, without_places(error.found()), without_places(error.expected()),
                              without_places(error.remedy())});
}

}  // namespace lockstep::python

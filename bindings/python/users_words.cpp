#include "bindings/python/users_words.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

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

using Word = std::array<std::string_view, 2>;  // there, and in Python

void replace_all(std::string& text, std::string_view old, std::string_view replacement) {
  for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + replacement.size())) {
    text.replace(at, old.size(), replacement);
  }
}

template <std::size_t n>
void replace_all(std::string& text, const std::array<Word, n>& words) {
  for (const auto& [old, replacement] : words) replace_all(text, old, replacement);
}

// Of the command line.
constexpr std::array<Word, 2> kFlags{{{"--device cpu", "device=\"cpu\""}, {"with --overwrite", "with overwrite=True"}}};

// Of files whose sections the arguments are; longer ones first.
constexpr std::array<Word, 23> kSections{
    {{"add [time] with span = [0, 1]", "give t_span=(0, 1)"},
     {"add trajectories = 11 to [ensemble]", "give trajectories=11"},
     {"add initial_state = [1, 0, 0] to [ensemble]", "give u0, [component] or [trajectory, component]"},
     {"sort the rows, or name the column that tells trajectories apart",
      "sort the rows, or say which trajectory each row is of, trajectory=labels; or give lists with an array for each "
      "trajectory"},
     {"each series a trajectory of its own, by a column that tells them apart",
      "each series a trajectory of its own, trajectory=labels"},
     {"call them in [rhs.equations], or write [net]", "call them in equations, or give the hidden layers of one"},
     {"add [net] with ", "give "},
     {"add [training] with ", "give "},
     {"ensemble.initial_state", "u0"},
     {"ensemble.parameters", "parameters"},
     {"ensemble.trajectories", "trajectories"},
     {"[ensemble.grid]", "grid"},
     {"ensemble.grid", "grid"},
     {"time.span", "t_span"},
     {"time.save", "save_at"},
     {"method.max_steps", "max_steps"},
     {"; in [data] ", "; "},
     {" in [data]", ""},
     {" to [data]", ""},
     {" in [net]", ""},
     {" in [training]", ""},
     {" in [method]", ""},
     {" in [run]", ""}}};

bool is_of_a_name(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

// TOML as Python: `rate = 0.01` is an argument, rate=0.01; within braces it is of a dict, {"start": 1}.
std::string values_as_python(const std::string& toml) {
  constexpr std::string_view kIs = " = ";
  std::string text;
  int depth = 0;
  for (std::size_t i = 0; i < toml.size(); ++i) {
    if (toml[i] == '{') ++depth;
    if (toml[i] == '}') --depth;
    const bool in_braces =
        (toml[i] == '{' && toml.compare(i + 1, 1, " ") == 0) || (toml[i] == ' ' && toml.compare(i + 1, 1, "}") == 0);
    if (toml.compare(i, kIs.size(), kIs) != 0 || text.empty() || !is_of_a_name(text.back())) {
      if (!in_braces || toml[i] != ' ') text += toml[i];
      if (in_braces && toml[i] == '{') ++i;
      continue;
    }
    if (depth > 0) {
      std::size_t first = text.size();
      while (first > 0 && is_of_a_name(text[first - 1])) --first;
      text.insert(first, "\"");
      text += "\": ";
    } else {
      text += '=';
    }
    i += kIs.size() - 1;
  }
  return text;
}

// What to do, where arguments are all that was written.
std::string remedy_for_arguments(std::string remedy, const std::string& field, const std::string& found) {
  constexpr std::string_view kNoValue = "no value for ";
  if (remedy == "add parameters to [ensemble]" && found.starts_with(kNoValue)) {
    return "give parameters={\"" + found.substr(kNoValue.size()) + "\": 1}";
  }
  replace_all(remedy, "with_time = true; else add parameters to [ensemble]", "with_time=True; else give parameters");
  replace_all(remedy, kSections);
  remedy = values_as_python(remedy);
  if (field != "u0" && field != "parameters") return remedy;
  if (remedy == "give a row for each trajectory") return remedy + ": " + field + ".T";
  if (remedy.ends_with("give a row for each")) return remedy + ": " + field + "[:, None]";
  return remedy;
}

}  // namespace

Error in_users_words(const Error& error, Source source) {
  std::string field = without_places(error.field());
  if (field == "method.name") field = "method";
  if (field == "time.unit") field = "time_unit";
  if (field == "output.file") field = "output";
  if (field == "output.events") field = "keep_events";
  for (const std::string_view prefix :
       {"--", "method.", "run.", "output.", "ensemble.", "time.", "net.", "data.", "training.", "rhs.", "part."}) {
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
  std::string expected = without_places(error.expected()), remedy = without_places(error.remedy());
  if (source == Source::arguments) {
    replace_all(expected, kSections);
    remedy = remedy_for_arguments(std::move(remedy), field, error.found());
  }
  replace_all(remedy, kFlags);
  return Error(error.kind(), {field, without_places(error.found()), expected, remedy});
}

std::string in_users_words(std::string note, Source source) {
  if (source != Source::arguments) return note;
  replace_all(note, kSections);
  note = values_as_python(note);
  replace_all(note, "=false", "=False");
  replace_all(note, "=true", "=True");
  replace_all(note, " t=", " t = ");  // a time, and no argument's value
  return note;
}

void warn_of(const std::vector<std::string>& notes, int stack_level) {
  for (const std::string& note : notes) {
    if (PyErr_WarnEx(PyExc_UserWarning, note.c_str(), stack_level) != 0) throw nanobind::python_error();
  }
}

}  // namespace lockstep::python

#include "lockstep/cli/toml_value.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <sstream>
#include <system_error>

#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

using File = std::shared_ptr<const std::string>;

std::string member_key(const std::string& parent, std::string_view name) {
  return parent.empty() ? std::string(name) : parent + "." + std::string(name);
}

// toml++ stays behind this one function: nodes become our own values.
TomlValue convert(const toml::node& node, std::string key, int line, const File& file) {
  if (node.source().begin.line > 0) line = static_cast<int>(node.source().begin.line);
  const auto value = [&](TomlValue::Data data) { return TomlValue(std::move(data), std::move(key), line, file); };
  if (const auto* boolean = node.as_boolean()) return value(boolean->get());
  if (const auto* integer = node.as_integer()) return value(integer->get());
  if (const auto* text = node.as_string()) return value(text->get());
  if (const auto* number = node.as_floating_point()) {
    if (!std::isfinite(number->get()))
      throw value(number->get()).error("a number that is not finite", "a finite number");
    return value(number->get());
  }
  if (const auto* array = node.as_array()) {
    TomlValue::Array entries;
    for (const toml::node& entry : *array) {
      entries.push_back(convert(entry, key + "[" + std::to_string(entries.size()) + "]", line, file));
    }
    return value(std::move(entries));
  }
  if (const auto* table = node.as_table()) {
    TomlValue::Table entries;
    for (auto&& [name, entry] : *table) {
      const int entry_line = name.source().begin.line > 0 ? static_cast<int>(name.source().begin.line) : line;
      entries.emplace_back(std::string(name.str()), convert(entry, member_key(key, name.str()), entry_line, file));
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto& a, const auto& b) { return a.second.line() < b.second.line(); });
    return value(std::move(entries));
  }
  throw value(false).error("a date or time", "a number, text, array or table", "write times as numbers");
}

}  // namespace

std::string TomlValue::where() const {
  std::string place = *file_;
  if (line_ > 0) place += ":" + std::to_string(line_);
  return key_.empty() ? place : place + ": " + key_;
}

std::string TomlValue::describe() const {
  if (is_boolean()) return std::get<bool>(data_) ? "true" : "false";
  if (is_integer()) return std::to_string(std::get<std::int64_t>(data_));
  if (is_number()) return number_text(std::get<double>(data_));
  if (is_text()) return "\"" + std::get<std::string>(data_) + "\"";
  if (is_array()) return "an array of " + std::to_string(std::get<Array>(data_).size());
  return "a table";
}

Error TomlValue::error(std::string found, std::string expected, std::string remedy) const {
  return Error(ErrorKind::invalid_argument, {where(), std::move(found), std::move(expected), std::move(remedy)});
}

bool TomlValue::boolean() const {
  if (!is_boolean()) throw error(describe(), "true or false");
  return std::get<bool>(data_);
}

std::int64_t TomlValue::integer() const {
  if (is_integer()) return std::get<std::int64_t>(data_);
  // 1e6 is how people write a million; anything that is not exactly an integer is refused.
  if (is_number()) {
    const double value = std::get<double>(data_);
    if (std::abs(value) <= 0x1p53 && value == std::nearbyint(value)) return static_cast<std::int64_t>(value);
  }
  throw error(describe(), "an integer");
}

double TomlValue::number() const {
  if (is_integer()) return static_cast<double>(std::get<std::int64_t>(data_));
  if (!is_number()) throw error(describe(), "a number");
  return std::get<double>(data_);
}

const std::string& TomlValue::text() const {
  if (!is_text()) throw error(describe(), "text in quotes");
  return std::get<std::string>(data_);
}

const TomlValue::Array& TomlValue::array() const {
  if (!is_array()) throw error(describe(), "an array");
  return std::get<Array>(data_);
}

const TomlValue::Table& TomlValue::table() const {
  if (!is_table()) throw error(describe(), "a table");
  return std::get<Table>(data_);
}

std::vector<double> TomlValue::numbers() const {
  std::vector<double> values;
  if (!is_array()) throw error(describe(), "an array of numbers");
  for (const TomlValue& entry : array()) values.push_back(entry.number());
  return values;
}

std::vector<std::string> TomlValue::texts() const {
  std::vector<std::string> values;
  if (!is_array()) throw error(describe(), "an array of texts");
  for (const TomlValue& entry : array()) values.push_back(entry.text());
  return values;
}

std::string TomlValue::one_of(std::span<const std::string_view> choices) const {
  const std::string& value = text();
  if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
    throw error(describe(), "one of " + list_text(choices), did_you_mean(value, choices));
  }
  return value;
}

const TomlValue* TomlValue::find(std::string_view name) const {
  for (const auto& [key, value] : table()) {
    if (key == name) return &value;
  }
  return nullptr;
}

void TomlValue::allow_only(std::span<const std::string_view> names) const {
  for (const auto& [key, value] : table()) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    throw value.error("an unknown key", "one of " + list_text(names), did_you_mean(key, names));
  }
}

TomlValue parse_toml(std::string_view text, const std::string& file_name) {
  const auto file = std::make_shared<const std::string>(file_name);
  try {
    return convert(toml::parse(text, file_name), {}, 0, file);
  } catch (const toml::parse_error& error) {
    throw Error(ErrorKind::invalid_argument, {file_name + ":" + std::to_string(error.source().begin.line) + ":" +
                                                  std::to_string(error.source().begin.column),
                                              "text that is not TOML (" + one_line(error.description()) + ")",
                                              "a TOML file",
                                              {}});
  }
}

TomlValue read_toml(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(ErrorKind::file, {path.string(), "a folder", "a TOML file", {}});
  }
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (stream) text << stream.rdbuf();
  if (!stream) {
    throw Error(ErrorKind::file, {path.string(), "no readable file (" + std::generic_category().message(errno) + ")",
                                  "a TOML file", "check the path"});
  }
  return parse_toml(text.str(), path.string());
}

}  // namespace lockstep::cli

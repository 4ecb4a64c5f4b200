// A TOML file as values that remember where they stand, so that every message names file, line and key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep::cli {

class TomlValue {
 public:
  using Array = std::vector<TomlValue>;
  using Table = std::vector<std::pair<std::string, TomlValue>>;  // in the file's order
  using Data = std::variant<bool, std::int64_t, double, std::string, Array, Table>;

  TomlValue(Data data, std::string key, int line, std::shared_ptr<const std::string> file)
      : data_(std::move(data)), key_(std::move(key)), line_(line), file_(std::move(file)) {}

  // "lorenz.toml:7: method.rtol": the field of every Error about this value.
  std::string where() const;
  int line() const noexcept { return line_; }
  const std::string& key() const noexcept { return key_; }  // "method.rtol", "initial_state[2]", "" for the file

  bool is_boolean() const noexcept { return std::holds_alternative<bool>(data_); }
  bool is_integer() const noexcept { return std::holds_alternative<std::int64_t>(data_); }
  bool is_number() const noexcept { return is_integer() || std::holds_alternative<double>(data_); }
  bool is_text() const noexcept { return std::holds_alternative<std::string>(data_); }
  bool is_array() const noexcept { return std::holds_alternative<Array>(data_); }
  bool is_table() const noexcept { return std::holds_alternative<Table>(data_); }

  // The value as this type; throw Error (invalid_argument) otherwise. Integers serve as numbers.
  bool boolean() const;
  std::int64_t integer() const;
  double number() const;
  const std::string& text() const;
  const Array& array() const;
  const Table& table() const;
  std::vector<double> numbers() const;                                  // an array of numbers
  std::vector<std::string> texts() const;                               // an array of texts
  std::string one_of(std::span<const std::string_view> choices) const;  // a text; suggests the nearest

  // A table's entry, or null.
  const TomlValue* find(std::string_view name) const;
  // Throws for a table with an entry that is not among `names`, suggesting the nearest.
  void allow_only(std::span<const std::string_view> names) const;

  // "the text \"abc\"", "3", "an array of 3": for messages.
  std::string describe() const;
  // An error about this value.
  Error error(std::string found, std::string expected, std::string remedy = {}) const;

 private:
  Data data_;
  std::string key_;
  int line_;
  std::shared_ptr<const std::string> file_;
};

// Throws Error: (file) when it cannot be read, (invalid_argument) with file and line when it is not TOML or holds
// dates or numbers that are not finite.
TomlValue read_toml(const std::filesystem::path& path);
TomlValue parse_toml(std::string_view text, const std::string& file_name);

}  // namespace lockstep::cli

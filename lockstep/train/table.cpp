#include "lockstep/train/table.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/names.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

[[noreturn]] void refuse_table(const std::string& field, const std::string& found, const std::string& expected,
                               const std::string& remedy = {}) {
  throw Error(ErrorKind::invalid_argument, {field, found, expected, remedy});
}

// Where the first field may end: behind its closing quote, where it is quoted ("Smith, Ann"; "" within is a quote).
std::size_t end_of_quotes(std::string_view line, char separator) {
  const std::size_t first = line.find_first_not_of(' ');
  if (first == line.npos || line[first] != '"') return 0;
  for (std::size_t at = line.find('"', first + 1); at != line.npos; at = line.find('"', at + 1)) {
    const std::size_t next = line.find_first_not_of(' ', at + 1);
    if (next == line.npos || line[next] == separator) return next == line.npos ? line.size() : next;
    if (line[at + 1] == '"') ++at;
  }
  return 0;  // no closing one: as any other character
}

std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t end = line.find(separator, end_of_quotes(line, separator));
    fields.push_back(trimmed(line.substr(0, end)));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + 1);
  }
}

std::string quoted(std::string_view text) {
  return text.empty() ? "an empty field" : "\"" + std::string(text.substr(0, 40)) + "\"";
}

std::string_view without_quotes(std::string_view field) {
  const bool has = field.size() >= 2 && field.front() == '"' && field.back() == '"';
  return has ? trimmed(field.substr(1, field.size() - 2)) : field;
}

// What other programs write for a number that was not measured, besides nothing and "nan".
bool stands_for_missing(std::string_view field) {
  static constexpr std::array<std::string_view, 5> kWords{"NA", "N/A", "n/a", "null", "NULL"};
  return std::ranges::find(kWords, field) != kWords.end();
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// 0,79953: digits, one comma, digits.
bool has_decimal_comma(std::string_view field) {
  if (field.starts_with('-')) field.remove_prefix(1);
  const std::size_t comma = field.find(',');
  if (comma == field.npos || comma == 0 || comma + 1 == field.size()) return false;
  return std::ranges::all_of(field.substr(0, comma), is_digit) && is_digit(field[comma + 1]) &&
         field.find(',', comma + 1) == field.npos;
}

// 2026-10-02T10:00:00, 10:15
bool is_time_of_day_or_date(std::string_view field) {
  const auto is_mark = [](char c) { return c == ':' || c == '-' || c == '/'; };
  return std::ranges::count_if(field, is_mark) > 0 && std::ranges::count_if(field, is_digit) >= 3 &&
         is_digit(field.front()) && is_digit(field.back());
}

// 1e-400
bool is_beyond_float64(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  double number = 0;
  const auto parsed = std::from_chars(field.data(), field.data() + field.size(), number);
  return parsed.ec == std::errc::result_out_of_range && parsed.ptr == field.data() + field.size();
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& source, MissingNumbers missing) : text_(text), missing_(missing) {
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
    if (text_.find('\n') == std::string_view::npos) end_of_line_ = '\r';
    table_.source = source;
  }

  Table read() {
    std::string_view line;
    while (next(line)) {
      if (table_.columns.empty()) {
        read_names(line);
      } else {
        read_row(line);
      }
    }
    if (table_.columns.empty()) refuse_table(table_.source, "an empty file", "a line of column names, then numbers");
    if (table_.rows == 0) refuse_table(table_.source, "no rows", "at least one row of numbers below the names");
    if (!table_.texts.empty()) table_.texts.resize(table_.values.size());
    table_.words.resize(table_.columns.size());
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      table_.words[i].resize(texts_[i].size());
      for (const auto& [word, number] : texts_[i]) table_.words[i][number - 1] = word;
    }
    return std::move(table_);
  }

 private:
  // The next line with content.
  bool next(std::string_view& line) {
    while (!text_.empty()) {
      const std::size_t end = text_.find(end_of_line_);
      line = trimmed(text_.substr(0, end));
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      ++line_;
      if (!line.empty() && line.front() != '#') return true;
    }
    return false;
  }
  std::string place() const { return table_.source + ":" + std::to_string(line_); }

  void read_names(std::string_view line) {
    for (const char c : {'\t', ';', ','}) {
      if (line.find(c) == std::string_view::npos) continue;
      separator_ = c;
      break;
    }
    for (std::string_view name : split(line, separator_)) {
      name = without_quotes(name);
      double number = 0;
      const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
      if (!name.empty() && parsed.ec == std::errc() && parsed.ptr == name.data() + name.size()) {
        refuse_table(place(), quoted(name), "the name of a column", "begin the file with a line of names");
      }
      if (!name.empty() && std::find(table_.columns.begin(), table_.columns.end(), name) != table_.columns.end()) {
        refuse_table(place(), "two columns called " + quoted(name), "a name for each");
      }
      table_.columns.emplace_back(name);
    }
    table_.faults.resize(table_.columns.size());
    texts_.resize(table_.columns.size());
  }

  void read_row(std::string_view line) {
    const std::vector<std::string_view> fields = split(line, separator_);
    if (fields.size() != table_.columns.size()) {
      refuse_table(place(), std::to_string(fields.size()) + (fields.size() == 1 ? " field" : " fields"),
                   std::to_string(table_.columns.size()) + ", one for each column named");
    }
    bool has_numbers = false;
    std::vector<std::pair<std::size_t, bool>> faulty;  // columns, and whether that is for want of a number
    for (std::size_t i = 0; i < fields.size(); ++i) {
      std::string_view field = without_quotes(fields[i]);
      if (field.starts_with('+')) field.remove_prefix(1);
      const bool may_miss = missing_ == MissingNumbers::as_nan;
      double number = std::numeric_limits<double>::quiet_NaN();
      const auto parsed = std::from_chars(field.data(), field.data() + field.size(), number);
      const bool is_number = parsed.ec == std::errc() && parsed.ptr == field.data() + field.size();
      const bool is_missing = field.empty() || stands_for_missing(field) || (is_number && std::isnan(number));
      const bool is_fault = !(is_number && std::isfinite(number)) && !(may_miss && is_missing);
      has_numbers = has_numbers || (is_number && !is_fault);
      table_.values.push_back(is_fault ? std::numeric_limits<double>::quiet_NaN() : number);
      if (is_fault) faulty.emplace_back(i, is_missing);
      if (!is_fault || is_missing) continue;
      table_.texts.resize(table_.values.size());
      table_.texts.back() = texts_[i].try_emplace(std::string(field), texts_[i].size() + 1).first->second;
    }
    for (const auto& [i, is_missing] : faulty) {
      if (table_.faults[i]) continue;
      const std::string_view field = without_quotes(fields[i]);
      table_.faults[i] = {line_, quoted(field), advice(field, has_numbers), is_missing};
    }
    ++table_.rows;
    table_.lines.push_back(line_);
  }

  std::string advice(std::string_view field, bool among_numbers) const {
    if (is_beyond_float64(field))
      return "float64 holds sizes from 5e-324 to 1.8e308: take another unit, or write 0 for less";
    if (has_decimal_comma(field)) {
      const bool thousands = field.size() - field.find(',') == 4;
      return std::string("write decimal points: 0.5, not 0,5") +
             (thousands ? "; and thousands without a comma: 1000, not 1,000" : "");
    }
    if (table_.columns.size() == 1 && field.find(' ') != field.npos)
      return "separate columns by commas, semicolons or tabs";
    if (!field.empty() && is_time_of_day_or_date(field)) return "write times as numbers, say seconds since the first";
    if (table_.rows == 0 && !among_numbers) return "begin a line of units or remarks with #";
    if (table_.rows == 0 && !field.empty()) return "name a column of numbers";
    return "repair the row or leave it out";
  }

  std::string_view text_;
  MissingNumbers missing_;
  std::size_t line_ = 0;
  char separator_ = ',';
  char end_of_line_ = '\n';
  std::vector<std::map<std::string, std::uint32_t>> texts_;  // [column], and what each is numbered
  Table table_;
};

}  // namespace

std::size_t Table::column(const std::string& field, std::string_view name) const {
  const std::size_t at = index(field, name);
  if (const std::optional<Fault>& fault = faults[at]) {
    refuse_table(source + ":" + std::to_string(fault->line) + ", column " + columns[at], fault->found,
                 "a finite number", fault->remedy);
  }
  return at;
}

std::vector<double> Table::runs(const std::string& field, std::string_view name) const {
  const std::size_t at = index(field, name), width = columns.size();
  std::vector<double> runs(rows);
  double run = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t here = row * width + at, before = here - width;
    const bool is_text = !texts.empty() && texts[here] != 0;
    const bool same = row == 0 || values[here] == values[before] || (is_text && texts[here] == texts[before]);
    if (!same) ++run;
    runs[row] = std::isnan(values[here]) && !is_text ? values[here] : run;
  }
  return runs;
}

std::string Table::text(std::size_t row, std::size_t column) const {
  const std::uint32_t number = texts.empty() ? 0 : texts[row * columns.size() + column];
  return number == 0 ? std::string() : words[column][number - 1];
}

std::size_t Table::index(const std::string& field, std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (!name.empty() && found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
  const std::string advice = advice_on_blanks(*this);  // of words: its nearest name is no help
  if (!advice.empty()) refuse_table(field, quoted(name), "the only column, \"" + columns[0] + "\"", advice);
  std::vector<std::string_view> known(columns.begin(), columns.end());
  std::erase(known, std::string_view());
  throw unknown_name(field, name, known);
}

std::string advice_on_blanks(const Table& table) {
  const bool blanks = table.columns.size() == 1 && table.columns.front().find(' ') != std::string::npos;
  return blanks ? "separate columns by commas, semicolons or tabs" : "";
}

Table parse_csv(std::string_view text, const std::string& source, MissingNumbers missing) {
  const StandardReading arithmetic;
  return Reader(text, source, missing).read();
}

Table read_csv(const std::filesystem::path& path, MissingNumbers missing) {
  const StandardReading arithmetic;
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_directory(status) &&
      !std::filesystem::is_regular_file(status)) {
    throw Error(ErrorKind::file, {path.string(), "a device or pipe", "a table of numbers", "copy it into a file"});
  }
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (stream && !std::filesystem::is_directory(path, ignored)) text << stream.rdbuf();
  if (!stream || std::filesystem::is_directory(path, ignored)) {
    throw Error(ErrorKind::file, {path.string(), "no readable file (" + std::generic_category().message(errno) + ")",
                                  "a table of numbers", "check the path"});
  }
  if (text.view().substr(0, 4096).find('\0') != text.view().npos) {
    const bool numpy = text.view().starts_with("\x93NUMPY") || text.view().starts_with("PK");
    const bool utf16 = text.view().starts_with("\xff\xfe") || text.view().starts_with("\xfe\xff");
    throw Error(ErrorKind::file, {path.string(), utf16 ? "a text in UTF-16" : "bytes that are no text",
                                  "a table of numbers as text (CSV), or HDF5",
                                  utf16   ? "save it as UTF-8"
                                  : numpy ? "write NumPy's arrays with numpy.savetxt or h5py"
                                          : "check the path"});
  }
  return parse_csv(text.view(), path.string(), missing);
}

ColumnStatistics column_statistics(std::span<const double> values, std::size_t columns, std::size_t column) {
  const StandardArithmetic arithmetic;
  ColumnStatistics result;
  const std::size_t rows = values.size() / columns;
  result.minimum = result.maximum = std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const double value = values[row * columns + column];
    if (std::isnan(value)) continue;
    ++count;
    result.minimum = std::fmin(result.minimum, value);
    result.maximum = std::fmax(result.maximum, value);
    sum += value;
  }
  // Of a column that does not vary no rounding makes one that does.
  const bool varies = result.minimum != result.maximum;
  result.mean = varies ? sum / static_cast<double>(count) : result.minimum;
  // The second pass keeps the digits that a sum of squares would lose.
  double squares = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const double distance = values[row * columns + column] - result.mean;
    if (!std::isnan(distance)) squares += distance * distance;
  }
  result.deviation = std::sqrt(squares / static_cast<double>(count));
  return result;
}

}  // namespace lockstep::train

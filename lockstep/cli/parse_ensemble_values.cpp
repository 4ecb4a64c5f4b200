// How an ensemble's numbers are written in a problem file.
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "lockstep/cli/ensemble_values.h"
#include "lockstep/cli/equations_section.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

using Values = EnsembleValues;

constexpr std::array<std::string_view, 8> kSources{"normal",   "lognormal", "box",     "linspace",
                                                   "logspace", "file",      "dataset", "columns"};

bool is_distribution(std::string_view name) {
  constexpr std::array<std::string_view, 8> kOthers{"beta",       "exponential",      "gamma",     "poisson",
                                                    "triangular", "truncated_normal", "truncnorm", "weibull"};
  return std::ranges::find(kOthers, name) != kOthers.end();
}

// A number, or an expression of numbers: "1/3".
double number_in(const TomlValue& value) { return value.is_text() ? number_of(value) : value.number(); }

std::vector<double> numbers_in(const TomlValue& value) {
  if (!value.is_array()) return value.numbers();  // which refuses it
  std::vector<double> numbers;
  for (const TomlValue& entry : value.array()) numbers.push_back(number_in(entry));
  return numbers;
}

std::vector<double> number_or_numbers(const TomlValue& value) {
  if (value.is_number() || value.is_text()) return {number_in(value)};
  if (value.is_array()) return numbers_in(value);
  throw value.error(value.describe(), "a number, or an array with a number for each column");
}

const TomlValue& required(const TomlValue& table, std::string_view key, std::string_view example) {
  const TomlValue* value = table.find(key);
  if (value == nullptr) {
    throw table.error("no key \"" + std::string(key) + "\"", "for example " + std::string(example));
  }
  return *value;
}

// {low = .., high = ..}, or [low, high] for a single column.
std::pair<std::vector<double>, std::vector<double>> parse_range(const TomlValue& value) {
  if (value.is_array()) {
    const std::vector<double> ends = numbers_in(value);
    if (ends.size() != 2) throw value.error(value.describe(), "[low, high], or {low = [..], high = [..]}");
    return {{ends[0]}, {ends[1]}};
  }
  static constexpr std::array<std::string_view, 2> kKeys{"low", "high"};
  value.allow_only(kKeys);
  return {number_or_numbers(required(value, "low", "low = [0, 0]")),
          number_or_numbers(required(value, "high", "high = [1, 1]"))};
}

// A range, and how many points: a third number, or points = .. beside the names.
Values::Spread parse_spread(const TomlValue& value, Values::Spacing spacing) {
  Values::Spread spread{{}, {}, spacing};
  const auto count = [](const TomlValue& points) {
    const double number = points.number();
    if (!(number >= 1 && number <= 1e15 && number == std::floor(number))) {
      throw points.error(points.describe(), "a number of points, an integer of 1 or more",
                         "write [low, high, points], or [low, high] where trajectories says how many");
    }
    return static_cast<std::size_t>(number);
  };
  if (value.is_array()) {
    const std::vector<double> numbers = numbers_in(value);
    if (numbers.size() != 2 && numbers.size() != 3) {
      throw value.error(value.describe(),
                        "[low, high], [low, high, points], or {low = [..], high = [..], points = 11}");
    }
    spread.low = {numbers[0]};
    spread.high = {numbers[1]};
    if (numbers.size() == 3) spread.points = count(value.array()[2]);
  } else {
    static constexpr std::array<std::string_view, 3> kKeys{"low", "high", "points"};
    value.allow_only(kKeys);
    spread.low = number_or_numbers(required(value, "low", "low = [0, 0]"));
    spread.high = number_or_numbers(required(value, "high", "high = [1, 1]"));
    if (const TomlValue* points = value.find("points")) spread.points = count(*points);
  }
  if (spacing == Values::Spacing::linear) return spread;
  for (const double end : {std::ranges::min(spread.low), std::ranges::min(spread.high)}) {
    if (end > 0) continue;
    throw value.error(number_text(end), "numbers above 0: the ends themselves, and not their exponents",
                      "from a tenth to a hundred write [0.1, 100]");
  }
  return spread;
}

decltype(Values::source) parse_array(const TomlValue& value) {
  const TomlValue::Array& entries = value.array();
  if (entries.empty()) throw value.error("an empty array", "numbers, or rows of numbers");
  if (!entries.front().is_array()) return Values::Shared{numbers_in(value)};
  Values::Rows rows{{}, entries.size(), entries.front().array().size()};
  for (const TomlValue& entry : entries) {
    const std::vector<double> row = numbers_in(entry);
    if (row.size() != rows.columns) {
      throw entry.error(entry.describe(), std::to_string(rows.columns) + " numbers as in the first row");
    }
    rows.values.insert(rows.values.end(), row.begin(), row.end());
  }
  return rows;
}

// A column has no columns of its own: another name in its table is meant for one of the sources.
void refuse_other_sources(const TomlValue& column) {
  const bool is_source = std::ranges::any_of(kSources, [&](auto key) { return column.find(key) != nullptr; });
  if (is_source || column.table().empty()) return;
  const auto& [name, value] = *column.table().begin();
  const std::string where = column.where();
  std::string advice = advice_on_source(name);
  if (advice.empty())
    advice = advice_on_source(where.substr(where.find_last_of(". ") + 1));  // { uniform = { low = 0 } }
  throw value.error("an unknown way to give numbers", "one of " + list_text(kSources),
                    advice.empty() ? did_you_mean(name, kSources) : advice);
}

EnsembleValues parse_table(const TomlValue& value, const std::filesystem::path& folder) {
  const std::string where = value.where();
  const bool is_source = std::ranges::any_of(kSources, [&](auto key) { return value.find(key) != nullptr; });
  if (!is_source) {
    Values::Named named;
    for (const auto& [name, column] : value.table()) {
      named.names.push_back(name);
      named.columns.push_back(parse_column_values(column, folder));
    }
    if (named.columns.empty())
      throw value.error("an empty table", "names with values, or one of " + list_text(kSources));
    return {std::move(named), where};
  }
  const auto only = [&](std::span<const std::string_view> keys) {
    for (const auto& [key, entry] : value.table()) {
      if (std::ranges::find(keys, key) != keys.end()) continue;
      if (std::ranges::find(kSources, key) == kSources.end()) value.allow_only(kSources);
      throw entry.error("a second source of numbers beside \"" + std::string(keys.front()) + "\"", "one of them");
    }
  };
  if (const TomlValue* normal = value.find("normal")) {
    static constexpr std::array<std::string_view, 1> kOnly{"normal"};
    static constexpr std::array<std::string_view, 2> kKeys{"mean", "std"};
    only(kOnly);
    normal->allow_only(kKeys);
    Values::Normal source{number_or_numbers(required(*normal, "mean", "mean = [1, 0, 0]")),
                          number_or_numbers(required(*normal, "std", "std = 0.1"))};
    for (const double deviation : source.deviation) {
      if (deviation < 0) throw normal->find("std")->error(number_text(deviation), "a standard deviation of 0 or more");
    }
    return {std::move(source), normal->where()};
  }
  if (const TomlValue* lognormal = value.find("lognormal")) {
    static constexpr std::array<std::string_view, 1> kOnly{"lognormal"};
    static constexpr std::array<std::string_view, 2> kKeys{"median", "sigma"};
    only(kOnly);
    lognormal->allow_only(kKeys);
    Values::LogNormal source{
        number_or_numbers(required(*lognormal, "median", "median = 0.2")),
        number_or_numbers(required(*lognormal, "sigma", "sigma = 0.5, the logarithm's deviation"))};
    for (const double median : source.median) {
      if (!(median > 0)) throw lognormal->find("median")->error(number_text(median), "a median above 0");
    }
    for (const double sigma : source.sigma) {
      if (sigma < 0) throw lognormal->find("sigma")->error(number_text(sigma), "a standard deviation of 0 or more");
    }
    return {std::move(source), lognormal->where()};
  }
  if (const TomlValue* box = value.find("box")) {
    static constexpr std::array<std::string_view, 1> kOnly{"box"};
    only(kOnly);
    auto [low, high] = parse_range(*box);
    const std::size_t pairs = low.size() == 1    ? high.size()
                              : high.size() == 1 ? low.size()
                                                 : std::min(low.size(), high.size());
    for (std::size_t i = 0; i < pairs; ++i) {
      const double least = low[low.size() == 1 ? 0 : i], most = high[high.size() == 1 ? 0 : i];
      if (least > most) {
        throw box->error("low = " + number_text(least) + " above high = " + number_text(most), "low first, then high");
      }
    }
    return {Values::Box{std::move(low), std::move(high)}, box->where()};
  }
  if (const TomlValue* linspace = value.find("linspace")) {
    static constexpr std::array<std::string_view, 1> kOnly{"linspace"};
    only(kOnly);
    return {parse_spread(*linspace, Values::Spacing::linear), linspace->where()};
  }
  if (const TomlValue* logspace = value.find("logspace")) {
    static constexpr std::array<std::string_view, 1> kOnly{"logspace"};
    only(kOnly);
    return {parse_spread(*logspace, Values::Spacing::logarithmic), logspace->where()};
  }
  static constexpr std::array<std::string_view, 3> kOnly{"file", "dataset", "columns"};
  only(kOnly);
  return std::visit([&](auto source) { return EnsembleValues{std::move(source), where}; }, parse_file(value, folder));
}

}  // namespace

EnsembleValues parse_ensemble_values(const TomlValue& value, const std::filesystem::path& folder) {
  if (value.is_table()) return parse_table(value, folder);
  if (value.is_array()) {
    EnsembleValues values{Values::Shared{}, value.where()};
    values.source = parse_array(value);
    return values;
  }
  return {Values::Shared{{number_in(value)}}, value.where()};
}

std::string advice_on_source(std::string_view name) {
  if (name == "uniform") return "write box for uniform numbers: { box = { low = 0, high = 1 } }";
  if (name == "gaussian" || name == "gauss") return "write normal = { mean = 0, std = 1 }";
  if (name == "geomspace" || name == "logrange") return "write logspace = [low, high], from low to high themselves";
  if (name == "loguniform") {
    return "of logarithms there are lognormal = { median = 0.2, sigma = 0.5 } and, evenly spaced, logspace = [low, "
           "high]";
  }
  if (name == "arange" || name == "range") return "write linspace = [low, high], evenly spaced over the trajectories";
  if (name == "grid" || name == "product") {
    return "for every combination write [ensemble.grid] with names and their values: rho = { linspace = [20, 30, 11] }";
  }
  if (!is_distribution(name)) return {};
  return "of distributions there are normal, lognormal and box (uniform): draw others elsewhere, and give them as a "
         "file";
}

EnsembleValues parse_column_values(const TomlValue& value, const std::filesystem::path& folder) {
  if (value.is_table()) refuse_other_sources(value);
  EnsembleValues values = parse_ensemble_values(value, folder);
  if (auto* list = std::get_if<Values::Shared>(&values.source); list != nullptr && value.is_array()) {
    const std::size_t rows = list->row.size();
    values.source = Values::Rows{std::move(list->row), rows, 1};
  }
  return values;
}

std::vector<GridAxis> parse_grid(const TomlValue& value, const std::filesystem::path& folder) {
  if (!value.is_table()) {
    throw value.error(value.describe(), "a table of components and parameters with their values",
                      "write [ensemble.grid] with rho = { linspace = [20, 30, 11] } and the like");
  }
  std::vector<GridAxis> axes;
  for (const auto& [name, column] : value.table()) {
    EnsembleValues values = parse_column_values(column, folder);
    if (!where_spread(values).empty()) {
      const std::string kind = values.where.substr(values.where.find_last_of('.') + 1);
      throw column.error("a range without a number of points", "how many values the grid has of " + name,
                         "add a third number: " + name + " = { " + kind + " = [low, high, 11] }");
    }
    const bool random = std::holds_alternative<Values::Normal>(values.source) ||
                        std::holds_alternative<Values::LogNormal>(values.source) ||
                        std::holds_alternative<Values::Box>(values.source);
    if (random || std::holds_alternative<Values::Shared>(values.source)) {
      throw column.error(random ? "random numbers" : column.describe(),
                         "the values of an axis: a list, linspace or logspace",
                         "what is no axis goes into ensemble.parameters or ensemble.initial_state, by name");
    }
    axes.push_back({name, column.where(), std::move(values)});
  }
  if (axes.empty()) throw value.error("an empty table", "names with values", "remove it");
  return axes;
}

std::variant<Values::Dataset, Values::Table> parse_file(const TomlValue& table, const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / required(table, "file", "file = \"x.h5\" or \"x.csv\"").text();
  const TomlValue* dataset = table.find("dataset");
  const TomlValue* columns = table.find("columns");
  std::vector<std::string> names;
  if (columns != nullptr) {
    names = columns->is_text() ? std::vector{columns->text()} : columns->texts();
    if (names.empty()) throw columns->error("an empty array", "names of the table's columns");
  }
  if (dataset != nullptr) return Values::Dataset{file, dataset->text(), std::move(names)};
  return Values::Table{file, std::move(names), {}};
}

}  // namespace lockstep::cli

#include "lockstep/cli/ensemble_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <string_view>

#include "lockstep/cli/column_names.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/random.h"
#include "lockstep/kernels/math/math.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

using Values = EnsembleValues;

// Element `column` of a vector with a number for each column or one for all.
double of_column(const std::vector<double>& values, std::size_t column) {
  return values[values.size() == 1 ? 0 : column];
}

std::string numbers_text(std::size_t count) { return std::to_string(count) + (count == 1 ? " number" : " numbers"); }

[[noreturn]] void wrong_width(const std::string& where, std::size_t found, const ColumnNames& columns,
                              const std::string& remedy = {}) {
  std::string names;
  for (const std::string& name : columns.names) names += (names.empty() ? "" : ", ") + name;
  throw Error(ErrorKind::invalid_argument, {where, numbers_text(found),
                                            numbers_text(columns.names.size()) + ", one for each " + columns.what +
                                                (names.empty() ? "" : " (" + names + ")"),
                                            remedy});
}

// Where the parameters stand among the components, they have a place of their own.
std::string parameters_apart(std::size_t found, const ColumnNames& columns) {
  const std::vector<std::string_view> parameters(columns.parameters.begin(), columns.parameters.end());
  if (parameters.empty() || found != columns.names.size() + parameters.size()) return {};
  return "give " + list_text(parameters) + " under parameters, apart from the state";
}

double power_of_ten(double exponent) {
  const std::string text = "1e" + std::to_string(static_cast<int>(exponent));
  double power = 0;
  std::from_chars(text.data(), text.data() + text.size(), power);  // the nearest double, exact up to 1e22
  return power;
}

double with_15_digits(double value) {
  char text[32];
  const auto written = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, 14);
  std::from_chars(text, written.ptr, value);
  return value;
}

// Point i of `last` + 1. Powers of ten are split off exactly, so that what is left, exp of at most ln 10, errs by some
// 3e-16, which 15 digits round away: 0.001, 0.01, 0.1 come out as these.
double log_spaced(double low, double high, std::size_t i, std::size_t last) {
  if (i == 0) return low;
  if (i == last) return high;
  double decades = (math::log(high) - math::log(low)) / std::numbers::ln10;
  if (const double whole = std::nearbyint(decades); std::abs(decades - whole) < 1e-12) decades = whole;
  const double decade = decades * static_cast<double>(i) / static_cast<double>(last);
  const double whole = std::floor(decade);
  const double half = std::abs(whole) > 300 ? std::trunc(whole / 2) : 0;  // where the power alone is no double
  return with_15_digits(low * math::exp((decade - whole) * std::numbers::ln10) * power_of_ten(whole - half) *
                        power_of_ten(half));
}

std::uint32_t draw_index(std::size_t column) { return static_cast<std::uint32_t>(column); }

class Drawing {
 public:
  Drawing(std::size_t trajectories, const ColumnNames& columns, RandomStream random)
      : trajectories_(trajectories), columns_(columns), width_(columns.names.size()), random_(random) {}

  // `first_column` is where a named column stands among all columns: its random numbers are the same whether the
  // distribution was given for all or by name.
  EnsembleMatrix draw(const EnsembleValues& values, std::size_t first_column = 0) const {
    return std::visit([&](const auto& source) { return draw(source, values.where, first_column); }, values.source);
  }

 private:
  EnsembleMatrix draw(const Values::Shared& source, const std::string& where, std::size_t) const {
    const std::size_t found = source.row.size();
    if (found != width_) {
      std::string remedy = parameters_apart(found, columns_);
      if (width_ == 1 && found > 1) {
        remedy += (remedy.empty() ? "for " : "; or for ") + counted_text(found, "trajectory") + " give a row for each";
      }
      wrong_width(where, found, columns_, remedy);
    }
    return {source.row, 1};
  }

  EnsembleMatrix draw(const Values::Rows& source, const std::string& where, std::size_t) const {
    if (source.columns != width_) {
      wrong_width(where, source.columns, columns_,
                  source.by_matlab        ? kTransposeInMatlab
                  : source.rows == width_ ? "give a row for each trajectory"
                                          : parameters_apart(source.columns, columns_));
    }
    if (source.rows < trajectories_) {
      // Two numbers of one column: more likely the ends of a range.
      too_few_rows(where, source.rows,
                   source.rows == 2 && source.columns == 1
                       ? "for a range write " + where.substr(where.find_last_of(". ") + 1) + " = { box = [" +
                             number_text(source.values[0]) + ", " + number_text(source.values[1]) + "] }"
                       : "");
    }
    const auto begin = source.values.begin();
    return {{begin, begin + static_cast<std::ptrdiff_t>(trajectories_ * width_)}, trajectories_};
  }

  EnsembleMatrix draw(const Values::Normal& source, const std::string& where, std::size_t first_column) const {
    check_width(source.mean, where);
    check_width(source.deviation, where);
    const Random random(random_.seed, random_.stream);
    return fill([&](std::size_t trajectory, std::size_t column) {
      return std::fma(of_column(source.deviation, column), random.normal(trajectory, draw_index(first_column + column)),
                      of_column(source.mean, column));
    });
  }

  EnsembleMatrix draw(const Values::LogNormal& source, const std::string& where, std::size_t first_column) const {
    check_width(source.median, where);
    check_width(source.sigma, where);
    const Random random(random_.seed, random_.stream);
    return fill([&](std::size_t trajectory, std::size_t column) {
      const double z = random.normal(trajectory, draw_index(first_column + column));
      return of_column(source.median, column) * math::exp(of_column(source.sigma, column) * z);
    });
  }

  EnsembleMatrix draw(const Values::Box& source, const std::string& where, std::size_t first_column) const {
    check_width(source.low, where);
    check_width(source.high, where);
    const Random random(random_.seed, random_.stream);
    return fill([&](std::size_t trajectory, std::size_t column) {
      const double low = of_column(source.low, column);
      return std::fma(of_column(source.high, column) - low,
                      random.uniform(trajectory, draw_index(first_column + column)), low);
    });
  }

  EnsembleMatrix draw(const Values::Spread& source, const std::string& where, std::size_t) const {
    check_width(source.low, where);
    check_width(source.high, where);
    const std::size_t points = source.points.value_or(trajectories_);
    if (points < trajectories_) too_few_rows(where, points, "leave the number of points out, or raise it");
    const std::size_t last = points > 1 ? points - 1 : 1;
    return fill([&](std::size_t trajectory, std::size_t column) {
      const double low = of_column(source.low, column);
      const double high = of_column(source.high, column);
      if (source.spacing == Values::Spacing::logarithmic) return log_spaced(low, high, trajectory, last);
      if (trajectory == last) return high;
      return low + (high - low) * static_cast<double>(trajectory) / static_cast<double>(last);
    });
  }

  EnsembleMatrix draw(const Values::Dataset& source, const std::string& where, std::size_t) const {
    throw Error(ErrorKind::invalid_argument, {where, source.dataset, "loaded datasets", {}});
  }

  EnsembleMatrix draw(const Values::Table& source, const std::string& where, std::size_t) const {
    const train::Table& table = *source.content;
    const bool one_for_all = source.rows == Values::Table::Rows::one_for_all;
    if (!source.columns.empty() && source.columns.size() != width_) wrong_width(where, source.columns.size(), columns_);
    if (!one_for_all && table.rows < trajectories_) too_few_rows(where, table.rows);
    const std::vector<std::optional<std::size_t>> from = places_in(source, where);
    const std::size_t rows = one_for_all ? 1 : trajectories_;
    EnsembleMatrix matrix{{}, rows};
    matrix.values.reserve(rows * width_);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < width_; ++column) {
        matrix.values.push_back(from[column] ? table(row, *from[column]) : *columns_.defaults[column]);
      }
    }
    return matrix;
  }

  // [column]: where in the table it stands; nothing where it takes its default.
  std::vector<std::optional<std::size_t>> places_in(const Values::Table& source, const std::string& where) const {
    const train::Table& table = *source.content;
    std::vector<std::optional<std::size_t>> from(width_);
    if (source.columns.empty() && source.rows != Values::Table::Rows::of_csv &&
        go_by_position(columns_.names, table.columns)) {
      for (std::size_t column = 0; column < width_; ++column) from[column] = column;
      return from;
    }
    // A table without any of the names was not meant to leave all to the defaults.
    const bool any = std::ranges::any_of(columns_.names, [&](const std::string& name) {
      return std::ranges::find(table.columns, name) != table.columns.end();
    });
    for (std::size_t column = 0; column < width_; ++column) {
      const std::string& name = source.columns.empty() ? columns_.names[column] : source.columns[column];
      if (std::ranges::find(table.columns, name) != table.columns.end()) {
        from[column] = table.column(where, name);
      } else if (!any || !source.columns.empty() || columns_.defaults.empty() || !columns_.defaults[column]) {
        const std::vector<std::string_view> known(table.columns.begin(), table.columns.end());
        const std::string blanks = train::advice_on_blanks(table);
        throw Error(ErrorKind::invalid_argument,
                    {where, "no column \"" + name + "\" in " + table.source, "one of " + list_text(known),
                     !blanks.empty()          ? blanks
                     : source.columns.empty() ? "say which to take: columns = [..], one for each " + columns_.what
                                              : did_you_mean(name, known)});
      }
    }
    return from;
  }

  EnsembleMatrix draw(const Values::Named& source, const std::string& where, std::size_t) const {
    std::vector<std::string_view> known(columns_.names.begin(), columns_.names.end());
    std::vector<EnsembleMatrix> drawn(width_);
    for (std::size_t i = 0; i < source.columns.size(); ++i) {
      const std::string& name = source.names[i];
      const auto found = std::ranges::find(known, name);
      if (found == known.end()) {
        const std::string advice = advice_on_source(name);
        throw Error(ErrorKind::invalid_argument,
                    {where + "." + name, "an unknown " + columns_.what,
                     known.empty() ? "none: there are no " + columns_.what + "s" : "one of " + list_text(known),
                     advice.empty() ? did_you_mean(name, known) : advice});
      }
      const auto column = static_cast<std::size_t>(found - known.begin());
      const ColumnNames single{columns_.what, {name}, {}};
      drawn[column] = Drawing(trajectories_, single, random_).draw(source.columns[i], column);
    }
    std::size_t rows = 1;
    for (std::size_t column = 0; column < width_; ++column) {
      if (drawn[column].values.empty() && drawn[column].rows > 0) {
        if (columns_.defaults.empty() || !columns_.defaults[column]) {
          throw Error(ErrorKind::invalid_argument, {where,
                                                    "no value for " + columns_.names[column],
                                                    "one for each " + columns_.what + " (" + list_text(known) + ")",
                                                    {}});
        }
        drawn[column] = {{*columns_.defaults[column]}, 1};
      }
      rows = std::max(rows, drawn[column].rows);
    }
    if (std::ranges::any_of(drawn, [](const EnsembleMatrix& column) { return column.rows == 0; })) return {{}, 0};
    EnsembleMatrix matrix{std::vector<double>(rows * width_), rows};
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < width_; ++column) {
        matrix.values[row * width_ + column] = drawn[column].values[drawn[column].rows == 1 ? 0 : row];
      }
    }
    return matrix;
  }

  [[noreturn]] void too_few_rows(const std::string& where, std::size_t rows, const std::string& remedy = {}) const {
    throw Error(ErrorKind::invalid_argument, {where, counted_text(rows, "row"),
                                              "at least " + count_text(trajectories_) + ", one for each trajectory",
                                              !remedy.empty() ? remedy
                                              : rows == 0     ? "give one"
                                                              : "lower the number of trajectories"});
  }

  void check_width(const std::vector<double>& numbers, const std::string& where) const {
    if (numbers.size() != 1 && numbers.size() != width_) wrong_width(where, numbers.size(), columns_);
  }

  template <class Function>
  EnsembleMatrix fill(const Function& function) const {
    EnsembleMatrix matrix{std::vector<double>(trajectories_ * width_), trajectories_};
    for (std::size_t trajectory = 0; trajectory < trajectories_; ++trajectory) {
      for (std::size_t column = 0; column < width_; ++column) {
        matrix.values[trajectory * width_ + column] = function(trajectory, column);
      }
    }
    return matrix;
  }

  std::size_t trajectories_;
  const ColumnNames& columns_;
  std::size_t width_;
  RandomStream random_;
};

}  // namespace

std::vector<double> repeated(std::vector<double> row, std::size_t times) {
  const std::size_t width = row.size();
  row.reserve(width * times);
  for (std::size_t i = width; i < width * times; ++i) row.push_back(row[i - width]);
  return row;
}

std::vector<std::filesystem::path> files_of(const EnsembleValues& values) {
  if (const auto* dataset = std::get_if<Values::Dataset>(&values.source)) return {dataset->file};
  if (const auto* table = std::get_if<Values::Table>(&values.source)) return {table->file};
  std::vector<std::filesystem::path> files;
  if (const auto* named = std::get_if<Values::Named>(&values.source)) {
    for (const EnsembleValues& column : named->columns) {
      for (auto& file : files_of(column)) files.push_back(std::move(file));
    }
  }
  return files;
}

std::optional<std::size_t> listed_rows(const EnsembleValues& values) {
  if (const auto* rows = std::get_if<Values::Rows>(&values.source)) return rows->rows;
  if (const auto* spread = std::get_if<Values::Spread>(&values.source)) return spread->points;
  if (const auto* table = std::get_if<Values::Table>(&values.source)) {
    if (table->rows == Values::Table::Rows::one_for_all) return std::nullopt;
    return table->content->rows;
  }
  std::optional<std::size_t> listed;
  if (const auto* named = std::get_if<Values::Named>(&values.source)) {
    std::string listed_where;
    for (const EnsembleValues& column : named->columns) {
      const auto rows = listed_rows(column);
      if (!rows) continue;
      if (listed && *rows != *listed) {
        throw Error(ErrorKind::invalid_argument,
                    {column.where, counted_text(*rows, "row"), count_text(*listed) + " as " + listed_where + " lists",
                     "set ensemble.trajectories to use the first rows of each, or write a number for all without [ ]"});
      }
      listed = rows;
      listed_where = column.where;
    }
  }
  return listed;
}

bool list_nothing(const EnsembleValues& values) {
  if (const auto* named = std::get_if<Values::Named>(&values.source))
    return std::ranges::any_of(named->columns, &list_nothing);
  const auto* rows = std::get_if<Values::Rows>(&values.source);
  return rows != nullptr && rows->may_be_none && rows->rows == 0;
}

std::string where_spread(const EnsembleValues& values) {
  if (const auto* spread = std::get_if<Values::Spread>(&values.source)) return spread->points ? "" : values.where;
  if (const auto* named = std::get_if<Values::Named>(&values.source)) {
    for (const EnsembleValues& column : named->columns) {
      if (std::string where = where_spread(column); !where.empty()) return where;
    }
  }
  return {};
}

EnsembleMatrix draw(const EnsembleValues& values, std::size_t trajectories, const ColumnNames& columns,
                    RandomStream random) {
  return Drawing(trajectories, columns, random).draw(values);
}

}  // namespace lockstep::cli

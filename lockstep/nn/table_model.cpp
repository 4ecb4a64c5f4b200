#include "lockstep/nn/table_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <variant>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"

namespace lockstep::nn {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"linear", "previous", "pchip", "spline"};

[[noreturn]] void refuse_table(std::string field, std::string found, std::string expected, std::string remedy = {}) {
  throw Error(ErrorKind::invalid_argument,
              {std::move(field), std::move(found), std::move(expected), std::move(remedy)});
}

void check(const FunctionTable& table) {
  const std::vector<double>& knots = table.at;
  if (knots.empty()) refuse_table("at", "none", "at least one");
  if (table.outputs.empty()) refuse_table("columns", "none", "at least one");
  if (table.values.size() != knots.size() * table.outputs.size()) {
    refuse_table("values", std::to_string(table.values.size()) + " numbers",
                 std::to_string(knots.size() * table.outputs.size()) + ", one for each knot and column");
  }
  for (std::size_t j = 0; j < table.outputs.size(); ++j) {
    const std::string& name = table.outputs[j].name;
    const auto before = table.outputs.begin() + static_cast<std::ptrdiff_t>(j);
    if (name.empty() || std::ranges::find(table.outputs.begin(), before, name, &Feature::name) == before) continue;
    refuse_table("columns", '"' + name + "\" twice", "names that differ, or none");
  }
  for (std::size_t i = 0; i < knots.size(); ++i) {
    const auto field = [&] { return "at[" + std::to_string(i) + "]"; };
    if (!std::isfinite(knots[i]))
      refuse_table(field(), rounded_text(knots[i], 17), "a finite number", "leave the row out");
    if (i == 0 || knots[i - 1] < knots[i]) continue;
    refuse_table(field(), rounded_text(knots[i], 17) + " after " + rounded_text(knots[i - 1], 17),
                 "ascending numbers, none twice",
                 knots[i - 1] == knots[i] ? "keep one of the two" : "sort the rows by it");
  }
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    if (std::isfinite(table.values[i])) continue;
    const Feature& column = table.outputs[i % table.outputs.size()];
    refuse_table(
        "values[" + std::to_string(i / table.outputs.size()) + "]" + (column.name.empty() ? "" : ", " + column.name),
        rounded_text(table.values[i], 17), "a finite number", "leave the row out, or fill the gap before");
  }
}

// One column between its knots.
struct Column {
  const std::vector<double>& knots;
  std::vector<double> y;

  double width(std::size_t i) const { return knots[i + 1] - knots[i]; }
  double slope(std::size_t i) const { return (y[i + 1] - y[i]) / width(i); }

  // The one-sided three-point slope at an end, kept to the sign of the nearest line and to three times its slope where
  // the lines turn; the widths and slopes of the first two intervals from the end.
  static double end_slope(double h0, double h1, double s0, double s1) {
    const double d = ((2 * h0 + h1) * s0 - h0 * s1) / (h0 + h1);
    if (d * s0 <= 0) return 0;
    return s0 * s1 <= 0 && std::fabs(d) > 3 * std::fabs(s0) ? 3 * s0 : d;
  }
  std::vector<double> pchip_slopes() const {
    const std::size_t n = knots.size();
    if (n == 2) return {slope(0), slope(0)};
    std::vector<double> slopes(n);
    slopes.front() = end_slope(width(0), width(1), slope(0), slope(1));
    slopes.back() = end_slope(width(n - 2), width(n - 3), slope(n - 2), slope(n - 3));
    for (std::size_t i = 1; i + 1 < n; ++i) {
      const double before = slope(i - 1), after = slope(i);
      if (before * after <= 0) continue;
      const double w1 = 2 * width(i) + width(i - 1), w2 = width(i) + 2 * width(i - 1);
      slopes[i] = (w1 + w2) / (w1 / before + w2 / after);
    }
    return slopes;
  }

  // Of neighbours h and s apart, (4.26): h_i m_(i-1) + 2 (h_(i-1) + h_i) m_i + h_(i-1) m_(i+1) = 3 (h_i s_(i-1) +
  // h_(i-1) s_i), closed by the third derivatives that agree at the second value from either end.
  std::vector<double> spline_slopes() const {
    const std::size_t n = knots.size();
    if (n == 2) return {slope(0), slope(0)};
    if (n == 3) {
      const double bend = (slope(1) - slope(0)) / (width(0) + width(1));
      return {slope(0) - bend * width(0), slope(0) + bend * width(0), slope(1) + bend * width(1)};
    }
    const auto end = [](double h0, double h1, double s0, double s1) {
      const double d = h0 + h1;
      return ((h0 + 2 * d) * h1 * s0 + h0 * h0 * s1) / d;
    };
    std::vector<double> above(n), right(n);  // of rows whose diagonal is 1
    const auto add_row = [&](std::size_t i, double below, double diagonal, double to_next, double sum) {
      const double pivot = i == 0 ? diagonal : diagonal - below * above[i - 1];
      above[i] = to_next / pivot;
      right[i] = (i == 0 ? sum : sum - below * right[i - 1]) / pivot;
    };
    add_row(0, 0, width(1), width(0) + width(1), end(width(0), width(1), slope(0), slope(1)));
    for (std::size_t i = 1; i + 1 < n; ++i) {
      const double before = width(i - 1), after = width(i);
      add_row(i, after, 2 * (before + after), before, 3 * (after * slope(i - 1) + before * slope(i)));
    }
    const double last = width(n - 2), next = width(n - 3);
    add_row(n - 1, last + next, next, 0, end(last, next, slope(n - 2), slope(n - 3)));
    for (std::size_t i = n - 1; i-- > 0;) right[i] -= above[i] * right[i + 1];
    return right;
  }
};

// [power, the highest first][knot]; at the last knot the value alone.
std::vector<double> coefficients_of(const Column& column, Interpolation interpolation) {
  const std::size_t n = column.knots.size();
  const std::size_t powers = n == 1 || interpolation == Interpolation::previous ? 1
                             : interpolation == Interpolation::linear           ? 2
                                                                                : 4;
  std::vector<double> made(powers * n);
  const auto coefficient = [&](std::size_t power, std::size_t knot) -> double& {
    return made[(powers - 1 - power) * n + knot];
  };
  for (std::size_t i = 0; i < n; ++i) coefficient(0, i) = column.y[i];
  if (powers == 1) return made;
  for (std::size_t i = 0; i + 1 < n; ++i) coefficient(1, i) = column.slope(i);
  if (powers == 2) return made;
  const bool is_spline = interpolation == Interpolation::spline;
  const std::vector<double> slopes = is_spline ? column.spline_slopes() : column.pchip_slopes();
  for (std::size_t i = 0; i + 1 < n; ++i) {
    const double h = column.width(i), line = column.slope(i);
    coefficient(1, i) = slopes[i];
    coefficient(2, i) = (3 * line - 2 * slopes[i] - slopes[i + 1]) / h;
    coefficient(3, i) = (slopes[i] + slopes[i + 1] - 2 * line) / (h * h);
  }
  return made;
}

}  // namespace

std::string_view to_string(Interpolation interpolation) { return kNames[static_cast<std::size_t>(interpolation)]; }

std::optional<Interpolation> parse_interpolation(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return {};
  return static_cast<Interpolation>(found - kNames.begin());
}

Model table_model(const FunctionTable& table) {
  const StandardReading arithmetic;
  check(table);
  const std::size_t columns = table.outputs.size();
  Interpolate operation{table.at, columns, {}};
  for (std::size_t j = 0; j < columns; ++j) {
    Column column{table.at, {}};
    for (std::size_t i = 0; i < table.at.size(); ++i) column.y.push_back(table.values[i * columns + j]);
    const std::vector<double> made = coefficients_of(column, table.interpolation);
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (std::isfinite(made[i])) continue;
      const std::size_t knot = i % table.at.size();
      refuse_table("values",
                   "steps between knots " + std::to_string(knot) + " and " + std::to_string(knot + 1) +
                       " that are too steep for float64",
                   "slopes that are finite numbers");
    }
    operation.coefficients.insert(operation.coefficients.end(), made.begin(), made.end());
  }
  Model model;
  Port input{"x", "", {table.input}};
  input.features[0].minimum = table.at.front();
  if (table.interpolation != Interpolation::previous) input.features[0].maximum = table.at.back();
  model.inputs = {std::move(input)};
  model.outputs = {{"y", "table", table.outputs}};
  model.nodes = {{"table", std::move(operation), {"x"}}};
  return model;
}

bool is_table(const Model& model) {
  return model.nodes.size() == 1 && std::holds_alternative<Interpolate>(model.nodes[0].operation);
}

}  // namespace lockstep::nn

#include "lockstep/cli/training_advice.h"

#include <algorithm>
#include <cmath>

#include "lockstep/cli/text.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

// Spreads that differ by more than this leave the smaller with a 10,000th of a sum of squares.
constexpr double kUnlike = 100;
// A normal distribution has one of these in 1e50 numbers; what has is better known by its order of magnitude.
constexpr double kFarOut = 15;  // deviations
constexpr std::size_t kMostNamed = 6;

struct Column {
  std::string name;
  train::ColumnStatistics of;
};

std::vector<Column> columns_of(const std::vector<std::string>& names, const std::vector<double>& values) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    columns.push_back({names[i], train::column_statistics(values, names.size(), i)});
  }
  return columns;
}

// "a, b, c and 3 more"
std::string named(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() <= kMostNamed ? text : text + " and " + std::to_string(names.size() - kMostNamed) + " more";
}

// Numbers whose largest is far from 1.
bool is_far_from_one(const train::ColumnStatistics& of) {
  const double largest = std::max(std::fabs(of.minimum), std::fabs(of.maximum));
  return largest > kUnlike || largest < 1 / kUnlike;
}
std::string sized(const Column& column) {
  return column.name + " (" + rounded_text(std::max(std::fabs(column.of.minimum), std::fabs(column.of.maximum)), 2) +
         ")";
}
std::string normalise_text(const std::vector<std::string>& large) {
  return "nets learn from inputs of size 1: " + named(large) + " are not; add normalise = \"standard\" to [data]";
}

// Where one of several outputs has all of the loss.
void compare_spreads(const std::vector<Column>& columns, std::vector<std::string>& lines) {
  const Column *least = nullptr, *most = nullptr;
  std::string sigma;
  for (const Column& column : columns) {
    if (!(column.of.deviation > 0)) continue;
    if (least == nullptr || column.of.deviation < least->of.deviation) least = &column;
    if (most == nullptr || column.of.deviation > most->of.deviation) most = &column;
    const bool is_bare = std::ranges::all_of(column.name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
    sigma += (sigma.empty() ? "" : ", ") + (is_bare ? column.name : '"' + column.name + '"') + " = " +
             rounded_text(column.of.deviation, 2);
  }
  if (least == nullptr || most->of.deviation < kUnlike * least->of.deviation) return;
  lines.push_back(most->name + " varies " + rounded_text(most->of.deviation / least->of.deviation, 2) +
                  " times as much as " + least->name + " and has nearly all of the loss; in [data] " +
                  (columns.size() <= kMostNamed ? "sigma = { " + sigma + " }" : "sigma of each, its spread,") +
                  " counts them alike");
}

}  // namespace

std::vector<std::string> advice(const TrainingFile& file, const RegressionTable& table) {
  std::vector<std::string> lines, constant, large, skewed;
  for (const Column& column : columns_of(table.input_names, table.inputs)) {
    const auto& of = column.of;
    if (of.minimum == of.maximum) {
      constant.push_back(column.name);
    } else if (file.data.normalisation == Normalisation::none && is_far_from_one(of)) {
      large.push_back(sized(column));
    } else if (of.minimum > 0 && of.maximum - of.mean > kFarOut * of.deviation) {
      skewed.push_back(column.name);
    }
  }
  if (!constant.empty()) lines.push_back("nothing can be learned from inputs that do not vary: " + named(constant));
  if (!large.empty()) lines.push_back(normalise_text(large));
  if (!skewed.empty()) {
    lines.push_back("inputs of which few values lie far above all others are better given as logarithms: " +
                    named(skewed));
  }
  if (table.sigma.empty()) compare_spreads(columns_of(table.target_names, table.targets), lines);
  return lines;
}

std::vector<std::string> advice(const TrainingFile& file, const TrajectoryTable& table) {
  std::vector<std::string> lines;
  if (std::string normalise = normalise_advice(file, table); !normalise.empty()) lines.push_back(std::move(normalise));
  if (file.data.sigma.empty()) compare_spreads(columns_of(table.component_names, table.states), lines);
  return lines;
}

std::string normalise_advice(const TrainingFile& file, const TrajectoryTable& table) {
  // What the nets in equations are called with is not the states as they are.
  const bool reads_states = !file.nets.empty() && file.ode && !file.ode->equations;
  if (!reads_states || file.data.normalisation != Normalisation::none) return {};
  std::vector<std::string> large;
  for (const Column& column : columns_of(table.component_names, table.states)) {
    if (column.of.minimum < column.of.maximum && is_far_from_one(column.of)) large.push_back(sized(column));
  }
  return large.empty() ? "" : normalise_text(large);
}

}  // namespace lockstep::cli

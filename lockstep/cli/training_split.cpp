// Which of the numbers that a training learns from are kept for validation, and what their units are.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "lockstep/cli/ensemble_impulses.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/training_data.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/random.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

constexpr std::uint32_t kSplitStream = 0x78;  // of the seed's random numbers

// Which of n are kept for validation: those with the smallest random keys.
std::vector<bool> held_out(std::size_t n, double share, std::uint64_t seed, const std::string& where) {
  std::vector<bool> held(n);
  if (share == 0) return held;
  const auto wanted = static_cast<std::size_t>(std::floor(share * static_cast<double>(n) + 0.5));
  if (wanted == 0 || wanted == n) {
    refuse(where + ".validation", number_text(share) + " of " + count_text(n), "at least one on either side",
           "give more data or another share");
  }
  const Random random(seed, kSplitStream);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::uint64_t> keys(n);
  for (std::size_t i = 0; i < n; ++i) keys[i] = random.bits(i, 0);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
  for (std::size_t i = 0; i < wanted; ++i) held[order[i]] = true;
  return held;
}

// Those that the file lists: all that bear the label, or by number where there are none.
std::vector<bool> listed(const DataSection& section, const TrajectoryTable& all) {
  std::vector<bool> held(all.trajectories());
  for (const Given<std::string>& each : section.held) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < held.size(); ++i) {
      if (all.name(i) == each.value) places.push_back(i);
    }
    if (places.empty()) {
      const std::vector<std::string_view> known(all.names.begin(), all.names.end());
      refuse(each.where, '"' + each.value + '"',
             known.empty() ? "a trajectory's number, from 0 to " + std::to_string(held.size() - 1)
                           : "a trajectory of the data: " + list_text(known),
             known.empty() ? "" : did_you_mean(each.value, known));
    }
    for (const std::size_t i : places) {
      if (held[i]) refuse(each.where, '"' + each.value + "\" a second time", "each once", "remove it");
      held[i] = true;
    }
  }
  if (std::ranges::find(held, false) == held.end()) {
    refuse(section.where_held, "all " + std::to_string(held.size()) + " trajectories", "one at least to train on",
           "leave some out");
  }
  return held;
}

// Copies row i of width `width` to one of two vectors.
void deal(const std::vector<double>& from, std::size_t width, const std::vector<bool>& held, std::vector<double>& kept,
          std::vector<double>& out) {
  for (std::size_t i = 0; i < held.size(); ++i) {
    std::vector<double>& to = held[i] ? out : kept;
    const auto row = from.begin() + static_cast<std::ptrdiff_t>(i * width);
    to.insert(to.end(), row, row + static_cast<std::ptrdiff_t>(width));
  }
}

// Units by the names of columns, on top of those that are there.
struct NamedUnits {
  std::vector<std::string> names;
  std::vector<std::string>* units;
};
void give_units(const DataSection& data, const std::vector<NamedUnits>& columns) {
  std::vector<std::string_view> known;
  for (const NamedUnits& each : columns) {
    each.units->resize(each.names.size());
    known.insert(known.end(), each.names.begin(), each.names.end());
  }
  for (const auto& [name, unit] : data.units) {
    bool found = false;
    for (const NamedUnits& each : columns) {
      for (std::size_t i = 0; i < each.names.size(); ++i) {
        if (each.names[i] != name) continue;
        (*each.units)[i] = unit.value;
        found = true;
      }
    }
    if (!found) refuse(unit.where, '"' + name + '"', "one of " + list_text(known), did_you_mean(name, known));
  }
}

// Without the rows that have no target at all: nothing is learned from them.
RegressionTable with_targets(const RegressionTable& all, const std::string& where) {
  const std::size_t width = all.target_names.size();
  std::vector<bool> has(all.rows());
  for (std::size_t at = 0; at < all.targets.size(); ++at) {
    if (!std::isnan(all.targets[at])) has[at / width] = true;
  }
  if (std::ranges::find(has, false) == has.end()) return all;
  if (std::ranges::find(has, true) == has.end()) refuse(where, "no target in any row", "at least one number");
  RegressionTable rest = all;
  std::vector<double> none;
  for (const auto& [column, of] : {std::pair{&RegressionTable::inputs, all.input_names.size()},
                                   {&RegressionTable::targets, width},
                                   {&RegressionTable::sigma, all.sigma.empty() ? std::size_t{0} : width}}) {
    (rest.*column).clear();
    deal(all.*column, of, has, none, rest.*column);
  }
  return rest;
}

void require_each_target(const RegressionTable& table, const std::string& where) {
  const std::size_t width = table.target_names.size();
  for (std::size_t c = 0; c < width; ++c) {
    bool has = false;
    for (std::size_t row = 0; row < table.rows(); ++row) has = has || !std::isnan(table.targets[row * width + c]);
    if (!has) refuse(where, "no number of " + table.target_names[c] + " to train on", "at least one", "leave it out");
  }
}

// Losses, spreads and scales are made of squares.
void require_squares(const std::vector<std::string>& names, const std::vector<double>& values,
                     const std::string& where) {
  constexpr double kLargest = 1e150;
  for (std::size_t c = 0; c < names.size(); ++c) {
    const train::ColumnStatistics of = train::column_statistics(values, names.size(), c);
    const double largest = std::max(std::fabs(of.minimum), std::fabs(of.maximum));
    if (!(of.minimum < of.maximum) || (largest <= kLargest && largest >= 1 / kLargest)) continue;
    refuse(where, names[c] + " of up to " + rounded_text(largest, 3),
           "sizes from 1e-150 to 1e150, whose squares float64 holds", "give " + names[c] + " in another unit");
  }
}

// Starts of validation data are not trained, whatever the phases free.
void require_first_points(const TrajectoryTable& table, const DataSection& section) {
  const std::size_t n = table.component_names.size();
  for (std::size_t i = 0, row = 0; i < table.trajectories(); row += table.lengths[i++]) {
    for (std::size_t c = 0; c < n; ++c) {
      if (!std::isnan(table.states[row * n + c]) || section.starts.has(table.component_names[c])) continue;
      const bool own = section.validation_file.has_value();
      refuse(own ? section.validation_file->where : section.where + ".validation",
             "no " + table.component_names[c] + " at the first point of trajectory " + table.name(i) +
                 ", which is kept for validation",
             "complete first points of validation data, whose starts are not trained",
             std::string("leave out its points before the first complete one") +
                 (own ? "" : ", or keep none: remove validation"));
    }
  }
}

// Free states begin near what was measured.
void require_each_state(const TrajectoryTable& table, const DataSection& section) {
  const std::size_t n = table.component_names.size();
  for (std::size_t c = 0; c < n; ++c) {
    bool has = section.starts.has(table.component_names[c]);
    for (std::size_t at = c; at < table.states.size() && !has; at += n) has = !std::isnan(table.states[at]);
    if (has) continue;
    const std::string& name = table.component_names[c];
    refuse(section.where + ".states", "no number of " + name + " in any trajectory to train on",
           "one at least, near which its starts begin",
           "say where it starts, in numbers or parameters: starts = { " + name + " = \"" + name + "0\" }");
  }
}

// All that they consist of, one trajectory's after the other's.
std::vector<double> impulse_numbers(const TrajectoryTable& table) {
  std::vector<double> numbers;
  for (const std::vector<ode::Impulse>& of : table.impulses) {
    numbers.push_back(static_cast<double>(of.size()));
    for (const ode::Impulse& impulse : of) {
      const auto component = static_cast<double>(impulse.component);
      numbers.insert(numbers.end(), {impulse.time, component, impulse.change, impulse.factor});
    }
  }
  return numbers;
}

}  // namespace

RegressionData split(const TrainingFile& file, const RegressionTable& given, const RegressionTable* validation) {
  RegressionData data;
  ContentHash hash;
  for (const RegressionTable* table : {&given, validation}) {
    if (table == nullptr) continue;
    hash.add(std::span<const double>(table->inputs)).add(std::span<const double>(table->targets));
    if (!table->sigma.empty()) hash.add(std::span<const double>(table->sigma));
  }
  data.digest = hash.hex();
  const RegressionTable all = with_targets(given, file.data.where_targets);
  data.without_targets = given.rows() - all.rows();
  for (RegressionTable* table : {&data.training, &data.validation}) {
    table->input_names = all.input_names;
    table->target_names = all.target_names;
    table->input_units = all.input_units;
    table->target_units = all.target_units;
    give_units(file.data, {{table->input_names, &table->input_units}, {table->target_names, &table->target_units}});
  }
  const std::vector<bool> held = held_out(all.rows(), file.data.validation, file.seed, file.data.where);
  deal(all.inputs, all.input_names.size(), held, data.training.inputs, data.validation.inputs);
  deal(all.targets, all.target_names.size(), held, data.training.targets, data.validation.targets);
  if (!all.sigma.empty()) {
    deal(all.sigma, all.target_names.size(), held, data.training.sigma, data.validation.sigma);
  }
  require_each_target(data.training, file.data.where_targets);
  require_squares(data.training.input_names, data.training.inputs, file.data.where_inputs);
  require_squares(data.training.target_names, data.training.targets, file.data.where_targets);
  if (validation != nullptr) {
    RegressionTable own = with_targets(
        *validation, file.data.validation_file ? file.data.validation_file->where : file.data.where + ".validation");
    data.without_targets += validation->rows() - own.rows();
    data.validation.inputs = std::move(own.inputs);
    data.validation.targets = std::move(own.targets);
    data.validation.sigma = std::move(own.sigma);
  }
  return data;
}

TrajectoryData split(const TrainingFile& file, const TrajectoryTable& all, std::size_t own) {
  TrajectoryData data;
  ContentHash hash;
  hash.add(std::span<const double>(all.times)).add(std::span<const double>(all.states));
  const std::vector<double> lengths(all.lengths.begin(), all.lengths.end());
  if (!all.have_one_length()) hash.add(std::span<const double>(lengths));
  if (!all.sigma.empty()) hash.add(std::span<const double>(all.sigma));
  if (!all.impulses.empty()) hash.add(std::span<const double>(impulse_numbers(all)));
  if (!all.known.empty()) hash.add(std::span<const double>(all.known));
  const auto kept = static_cast<double>(own);
  if (own > 0) hash.add(std::span<const double>(&kept, 1));
  data.digest = hash.hex();
  for (TrajectoryTable* table : {&data.training, &data.validation}) {
    table->component_names = all.component_names;
    table->component_units = all.component_units;
    table->time_name = all.time_name;
    for (const KnownParameters::Of& each : file.data.parameters.of) table->known_names.push_back(each.name);
    std::vector<std::string> time{all.time_unit};
    give_units(file.data, {{table->component_names, &table->component_units}, {{table->time_name}, &time}});
    table->time_unit = time.front();
  }
  const std::size_t given = all.trajectories() - own;
  std::vector<bool> held = file.data.held.empty() ? held_out(given, file.data.validation, file.seed, file.data.where)
                                                  : listed(file.data, all);
  held.resize(all.trajectories(), true);
  const bool keeps = std::ranges::find(held, true) != held.end();
  for (std::size_t i = 0; keeps && i < held.size(); ++i) {
    (held[i] ? data.validation : data.training).numbers.push_back(i < given ? i : i - given);
  }
  deal(all.known, file.data.parameters.of.size(), held, data.training.known, data.validation.known);
  std::size_t row = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    TrajectoryTable& to = held[i] ? data.validation : data.training;
    const std::size_t length = all.lengths[i], n = all.component_names.size();
    const double *const times = all.times.data() + row, *const states = all.states.data() + row * n;
    to.lengths.push_back(length);
    if (!all.names.empty()) to.names.push_back(all.names[i]);
    if (!all.impulses.empty()) to.impulses.push_back(all.impulses[i]);
    to.times.insert(to.times.end(), times, times + length);
    to.states.insert(to.states.end(), states, states + length * n);
    if (!all.sigma.empty()) {
      const double* const sigma = all.sigma.data() + row * n;
      to.sigma.insert(to.sigma.end(), sigma, sigma + length * n);
    }
    row += length;
  }
  for (TrajectoryTable* table : {&data.training, &data.validation}) {
    const std::span<const double> times = table->times;
    for (std::size_t i = 0, first = 0; i < table->impulses.size(); first += table->lengths[i++])
      meet_times(table->impulses[i], times.subspan(first, table->lengths[i]), times[first]);
  }
  require_each_state(data.training, file.data);
  require_squares(data.training.component_names, data.training.states, file.data.where_states);
  require_first_points(data.validation, file.data);
  return data;
}

}  // namespace lockstep::cli

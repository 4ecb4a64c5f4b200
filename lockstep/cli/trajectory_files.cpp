// Trajectories out of a CSV, an HDF5 file or a result file.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "lockstep/cli/column_names.h"
#include "lockstep/cli/data_numbers.h"
#include "lockstep/cli/measurement_sigma.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/stored_problem.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/training_tables.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

// A state whose starts are given need not be measured: it may have no column.
std::vector<double> states_of_csv(const train::Table& csv, const DataSection& data) {
  const auto is_there = [&](const std::string& name) {
    return !data.starts.has(name) || std::ranges::find(csv.columns, name) != csv.columns.end();
  };
  std::vector<std::string> names;
  std::ranges::copy_if(data.states, std::back_inserter(names), is_there);
  const std::vector<double> numbers = take_columns(csv, names, data.where_states);
  if (names.size() == data.states.size()) return numbers;
  std::vector<double> states;
  for (std::size_t row = 0, at = 0; row < csv.rows; ++row) {
    for (const std::string& name : data.states) {
      states.push_back(is_there(name) ? numbers[at++] : std::numeric_limits<double>::quiet_NaN());
    }
  }
  return states;
}

// What the column that tells trajectories apart has in a row, text or number.
std::string label_of(const train::Table& csv, std::size_t row, const DataSection& data) {
  const std::size_t column = csv.index(data.where_trajectory, data.trajectory);
  const std::string text = csv.text(row, column);
  return text.empty() ? number_text(csv(row, column)) : text;
}

// Rows of each trajectory behind each other, in the order in which their labels first appear: a label may come back, as
// in rows that go by time.
void gather_trajectories(train::Table& csv, const DataSection& data) {
  const std::vector<double> runs = csv.runs(data.where_trajectory, data.trajectory);
  const std::size_t column = csv.index(data.where_trajectory, data.trajectory), width = csv.columns.size();
  std::map<std::pair<std::uint32_t, double>, std::size_t> places;  // by text, or number
  std::vector<std::size_t> place(csv.rows), order(csv.rows);
  for (std::size_t row = 0; row < csv.rows; ++row) {
    if (std::isnan(runs[row])) return;  // which is refused
    if (row > 0 && runs[row] == runs[row - 1]) {
      place[row] = place[row - 1];
      continue;
    }
    const std::uint32_t text = csv.texts.empty() ? 0 : csv.texts[row * width + column];
    place[row] = places.try_emplace({text, text == 0 ? csv(row, column) : 0.0}, places.size()).first->second;
  }
  if (std::ranges::is_sorted(place)) return;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t row) { return place[row]; });
  train::Table sorted = csv;
  for (std::size_t to = 0; to < csv.rows; ++to) {
    const std::size_t row = order[to];
    sorted.lines[to] = csv.lines[row];
    std::copy_n(csv.values.data() + row * width, width, sorted.values.data() + to * width);
    if (!csv.texts.empty()) std::copy_n(csv.texts.data() + row * width, width, sorted.texts.data() + to * width);
  }
  csv = std::move(sorted);
}

TrajectoryTable read_trajectories_csv(const DataSection& data, const FirstNumbers& first) {
  if (data.time.empty() || data.states.empty()) {
    refuse(data.where, "a CSV without time and states", "their columns",
           "add time = \"t\" and states = [\"x\", \"y\"]");
  }
  train::Table csv = train::read_csv(data.file.value, data.missing.value_or(train::MissingNumbers::as_nan));
  if (!data.trajectory.empty()) gather_trajectories(csv, data);
  TrajectoryTable table;
  table.component_names = data.states;
  table.states = states_of_csv(csv, data);
  table.times = take_columns(csv, {data.time}, data.where_time);
  table.time_name = data.time;
  std::vector<double> runs(csv.rows);
  if (!data.trajectory.empty()) runs = csv.runs(data.where_trajectory, data.trajectory);
  const auto line = [&](std::size_t row) { return csv.source + ":" + std::to_string(csv.lines[row]); };
  for (std::size_t row = 0; row < csv.rows; ++row) {
    for (const auto& [name, value] : {std::pair{&data.trajectory, runs[row]}, {&data.time, table.times[row]}}) {
      if (std::isnan(value))
        refuse(line(row) + ", column " + *name, "none", "a finite number", "states alone may miss");
    }
  }
  for (std::size_t start = 0, end = 1; start < csv.rows; start = end++) {
    while (end < csv.rows && runs[end] == runs[start]) ++end;
    const std::string name = data.trajectory.empty() ? "" : label_of(csv, start, data);
    if (end - start < 2) {
      const std::string of = name.empty() ? "" : " of " + name;
      refuse(line(start), "a trajectory of 1 point" + of, "at least 2", data.trajectory.empty() ? "" : kLeavePointOut);
    }
    table.lengths.push_back(end - start);
    if (!data.trajectory.empty()) table.names.push_back(name);
  }
  require_order(table, first, csv.source, csv.source, csv.lines);
  leave_out_known_starts(table, first);
  if (data.sigma.one_by_one()) table.sigma = sigma_of_csv(csv, data.sigma, data.states);
  table.known = known_of_csv(csv, data.parameters, table.lengths);
  require_sigma(table.states, table.sigma, [&](std::size_t at) {
    return line(at / data.states.size()) + ", of " + data.states[at % data.states.size()];
  });
  return table;
}

// State [trajectory, time, component], or of a single trajectory [time, component], or [time] of a single component. Of
// several datasets each is a component, [trajectory, time] or [time].
Numbers read_states(const hdf5::File& file, const std::vector<std::string>& names, const std::string& where,
                    train::MissingNumbers missing, const StartsSection& given = {}) {
  if (names.size() < 2) {
    Numbers states = read_numbers(file, names.empty() ? "state" : names.front(), where, missing);
    if (states.shape.size() == 1) states.shape = {1, states.shape[0], 1};
    if (states.shape.size() == 2) states.shape = {1, states.shape[0], states.shape[1]};
    if (states.shape.size() != 3) {
      refuse(states.name, std::to_string(states.shape.size()) + " dimensions", "[trajectory, time, component]");
    }
    return states;
  }
  std::vector<Numbers> components;
  const auto is_there = [&](const std::string& name) { return !given.has(name) || file.has(name); };
  // Where none is there the first one is missed.
  const bool some = std::ranges::any_of(names, is_there);
  for (const std::string& name : names) {
    if (some && !is_there(name)) continue;
    Numbers& component = components.emplace_back(read_numbers(file, name, where, missing));
    if (component.shape.size() == 1) component.shape = {1, component.shape[0]};
    if (component.shape.size() != 2) {
      refuse(component.name, std::to_string(component.shape.size()) + " dimensions",
             "[trajectory, time] or [time], where each component has a dataset");
    }
    if (component.shape != components[0].shape) {
      refuse(component.name, shape_text(component.shape),
             shape_text(components[0].shape) + " as " + components[0].name);
    }
  }
  for (std::size_t i = 0; i < names.size() && some; ++i) {
    if (is_there(names[i])) continue;
    const Numbers& like = components[0];
    Numbers none{names[i], like.shape, std::vector<double>(like.values.size(), std::nan(""))};
    components.insert(components.begin() + static_cast<std::ptrdiff_t>(i), std::move(none));
  }
  const hdf5::Shape shape{components[0].shape[0], components[0].shape[1], components.size()};
  return {components[0].name, shape, side_by_side(components, components[0].values.size())};
}

// As the states: one dataset of their shape, or one for each component.
std::vector<double> sigma_of_states(const hdf5::File& file, const SigmaSection& sigma, const Numbers& states,
                                    const std::vector<std::string>& names) {
  const auto read = [&](const std::vector<std::string>& datasets, hdf5::Shape shape, const std::string& where) {
    Numbers found = read_states(file, datasets, where, train::MissingNumbers::as_nan);
    // Of one component [trajectory, time] reads like [time, component] of one trajectory.
    if (shape[2] == 1 && found.shape == hdf5::Shape{1, shape[0], shape[1]}) found.shape = shape;
    if (found.shape != shape) refuse(found.name, shape_text(found.shape), shape_text(shape) + " as " + states.name);
    return std::move(found.values);
  };
  if (sigma.columns.size() == 1) return read(sigma.columns, states.shape, sigma.where);
  if (sigma.empty() || !sigma.one_by_one()) return {};
  std::vector<double> values(states.values.size());
  const std::vector<SigmaSection::Of> each = sigma.of(names);
  for (std::size_t c = 0; c < each.size(); ++c) {
    const std::size_t rows = values.size() / names.size();
    const std::vector<double> column =
        each[c].column.empty() ? std::vector<double>(rows, each[c].size)
                               : read({each[c].column}, {states.shape[0], states.shape[1], 1}, each[c].where);
    for (std::size_t row = 0; row < rows; ++row) values[row * names.size() + c] = column[row];
  }
  return values;
}

// Those that a solve had.
void take_impulses(const ode::ResultFile& result, TrajectoryTable& table) {
  if (result.impulse_form().none()) return;
  const std::vector<std::size_t> stored = stored_components(result);
  const ode::Impulses all = result.impulses(0, table.trajectories());
  for (std::size_t i = 0; i < table.trajectories(); ++i) {
    std::vector<ode::Impulse>& own = table.impulses.emplace_back();
    for (ode::Impulse impulse : all.of(i)) {
      if (!stored.empty()) {
        const auto found = std::ranges::find(stored, impulse.component);
        if (found == stored.end()) continue;
        impulse.component = static_cast<std::size_t>(found - stored.begin());
      }
      own.push_back(impulse);
    }
  }
}

// Our own result files, or anything with states and time [time] or [trajectory, time].
TrajectoryTable read_trajectories_hdf5(const DataSection& data, const FirstNumbers& first) {
  const hdf5::File file = hdf5::File::open(data.file.value);
  if (!data.trajectory.empty()) refuse(data.where_trajectory, data.trajectory, "no such key with HDF5", "remove it");
  Numbers states = read_states(file, data.states, data.where_states,
                               data.missing.value_or(train::MissingNumbers::as_nan), data.starts);
  Numbers times =
      read_numbers(file, data.time.empty() ? "time" : data.time, data.where_time, train::MissingNumbers::as_nan);
  const std::size_t trajectories = states.shape[0], points = states.shape[1];
  if (times.shape != hdf5::Shape{points} && times.shape != hdf5::Shape{trajectories, points}) {
    refuse(times.name, shape_text(times.shape),
           "[" + count_text(points) + "] or [" + count_text(trajectories) + ", " + count_text(points) + "] as " +
               states.name + " has");
  }
  std::vector<std::string> component_names = data.states.size() > 1 ? data.states : numbered("u", states.shape[2]);
  if (data.states.size() < 2) {
    std::vector<std::string> names =
        column_names(file, data.states.empty() ? "state" : data.states.front(), "component");
    if (names.empty()) names = first.states;
    if (names.size() == states.shape[2]) component_names = std::move(names);
  }
  std::vector<double> sigma = sigma_of_states(file, data.sigma, states, component_names);
  const std::string where_sigma = sigma.empty() ? std::string() : file.path().string() + ": sigma";
  TrajectoryTable table = trajectory_table({times.name, states.name, trajectories, points, std::move(times.values),
                                            std::move(states.values), where_sigma, std::move(sigma)},
                                           std::move(component_names), first);
  table.time_name = data.time.empty() ? "time" : data.time;
  table.known = known_of_hdf5(file, data.parameters, trajectories);
  if (ode::ResultFile::recognises(data.file.value) && data.states.size() < 2) {
    const ode::ResultFile result(data.file.value);
    table.component_units = component_units(result);
    table.time_unit = time_unit(result);
    if (const auto resets = result.attribute("resets")) table.resets = std::get<std::string>(*resets);
    take_impulses(result, table);
  }
  return table;
}

}  // namespace

TrajectoryTable read_trajectories(const DataSection& data, const FirstNumbers& first) {
  return is_hdf5(data) ? read_trajectories_hdf5(data, first) : read_trajectories_csv(data, first);
}

}  // namespace lockstep::cli

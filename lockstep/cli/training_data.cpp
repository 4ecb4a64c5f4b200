#include "lockstep/cli/training_data.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "lockstep/cli/data_numbers.h"
#include "lockstep/cli/ensemble_impulses.h"
#include "lockstep/cli/measurement_sigma.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/stored_problem.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

bool is_hdf5(const DataSection& data) {
  if (!std::filesystem::exists(data.file.value)) {
    throw Error(ErrorKind::file, {data.file.where, "no file " + data.file.value.string(), "a CSV or HDF5 file",
                                  "check the path; it is relative to the folder of the training file"});
  }
  return hdf5::File::recognises(data.file.value);
}

constexpr std::uint32_t kImpulseStream = 0x79;  // of the seed's random numbers

constexpr const char* kSkip = "repair the row or leave it out, or let missing targets be: missing = \"skip\" in [data]";

// A missing target may be meant; the message then says how to say so.
std::vector<double> take_targets(const train::Table& table, const DataSection& data) {
  for (const std::string& name : data.targets) {
    const std::optional<train::Table::Fault>& fault = table.faults[table.index(data.where_targets, name)];
    if (!fault || !fault->is_missing) continue;
    refuse(table.source + ":" + std::to_string(fault->line) + ", column " + name, fault->found, "a finite number",
           kSkip);
  }
  return take_columns(table, data.targets, data.where_targets);
}

// A net needs all its inputs.
void require_inputs(const train::Table& table, const DataSection& data, const std::vector<double>& inputs) {
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    if (!std::isnan(inputs[at])) continue;
    refuse(table.source + ":" + std::to_string(table.lines[at / data.inputs.size()]) + ", column " +
               data.inputs[at % data.inputs.size()],
           "none", "a finite number: inputs are needed, targets alone may miss", "leave out the row");
  }
}

// Of one dataset or several, side by side, as targets are.
std::vector<double> sigma_of_samples(const hdf5::File& file, const SigmaSection& sigma,
                                     const std::vector<std::string>& names, std::size_t rows) {
  const auto read = [&](const std::vector<std::string>& datasets, std::size_t width, const std::string& where) {
    Samples found = read_samples(file, datasets, "sigma", where, train::MissingNumbers::as_nan);
    if (found.rows != rows || found.names.size() != width) {
      refuse(where, shape_text({found.rows, found.names.size()}), shape_text({rows, width}) + " as the targets");
    }
    return std::move(found.values);
  };
  if (!sigma.columns.empty()) return read(sigma.columns, names.size(), sigma.where);
  if (sigma.empty()) return {};
  std::vector<double> values(rows * names.size());
  const std::vector<SigmaSection::Of> each = sigma.of(names);
  for (std::size_t i = 0; i < each.size(); ++i) {
    const std::vector<double> column =
        each[i].column.empty() ? std::vector<double>(rows, each[i].size) : read({each[i].column}, 1, each[i].where);
    for (std::size_t row = 0; row < rows; ++row) values[row * names.size() + i] = column[row];
  }
  return values;
}

RegressionTable read_regression(const DataSection& data) {
  const train::MissingNumbers missing = data.missing.value_or(train::MissingNumbers::refuse);
  if (!is_hdf5(data)) {
    const train::Table csv = train::read_csv(data.file.value, missing);
    RegressionTable table{data.inputs, data.targets, take_columns(csv, data.inputs, data.where_inputs),
                          take_targets(csv, data)};
    require_inputs(csv, data, table.inputs);
    table.sigma = sigma_of_csv(csv, data.sigma, data.targets);
    require_sigma(table.targets, table.sigma, [&](std::size_t at) {
      return csv.source + ":" + std::to_string(csv.lines[at / data.targets.size()]) + ", of " +
             data.targets[at % data.targets.size()];
    });
    return table;
  }
  const hdf5::File file = hdf5::File::open(data.file.value);
  Samples inputs = read_samples(file, data.inputs, "x", data.where_inputs);
  Samples targets = read_samples(file, data.targets, "y", data.where_targets, missing, kSkip);
  if (inputs.rows != targets.rows) {
    refuse(file.path().string() + ": " + data.targets.front(), count_text(targets.rows) + " rows",
           count_text(inputs.rows) + " as " + data.inputs.front());
  }
  std::vector<double> sigma = sigma_of_samples(file, data.sigma, targets.names, targets.rows);
  require_sigma(targets.values, sigma, [&](std::size_t at) {
    return file.path().string() + ", row " + std::to_string(at / targets.names.size()) + ", of " +
           targets.names[at % targets.names.size()];
  });
  return {
      std::move(inputs.names), std::move(targets.names), std::move(inputs.values), std::move(targets.values), {}, {},
      std::move(sigma)};
}

// First points as they must be, and times that ascend. `lines`: of a file that has them, [row]; else places are named
// by trajectory and point after what times and states are called.
void require_order(const TrajectoryTable& table, const FirstNumbers& first, const std::string& times,
                   const std::string& states, const std::vector<std::size_t>& lines) {
  const std::size_t n = table.component_names.size();
  std::size_t row = 0;
  for (std::size_t i = 0; i < table.trajectories(); ++i) {
    bool has_more = false;
    for (std::size_t point = 0; point < table.lengths[i]; ++point, ++row) {
      const auto place = [&](const std::string& source) {
        return lines.empty() ? source + ", trajectory " + std::to_string(i) + ", point " + std::to_string(point)
                             : source + ":" + std::to_string(lines[row]);
      };
      for (std::size_t c = 0; point == 0 && first.points == ode::FirstPoints::complete && c < n; ++c) {
        if (!std::isnan(table.states[row * n + c]) || first.given.has(table.component_names[c])) continue;
        refuse(place(states) + ", component " + table.component_names[c], "NaN",
               "a complete state, from which the trajectory starts",
               "train the starts as well, by phases = \"noisy\" or a continuity in every phase, say where it starts, "
               "starts = { " +
                   table.component_names[c] +
                   " = 1 }, or leave out the points before the first complete "
                   "one");
      }
      const double time = table.times[row];
      if (std::isnan(time)) refuse(place(times), "NaN", "a time of each state", "leave out states without one");
      for (std::size_t c = 0; c < n && point > 0; ++c) has_more = has_more || !std::isnan(table.states[row * n + c]);
      if (point + 1 == table.lengths[i] && !has_more) {
        refuse(place(states), "nothing measured after the first point of this trajectory", "a number to compare with",
               "leave the trajectory out");
      }
      if (point == 0 || time > table.times[row - 1]) continue;
      refuse(place(times), "time " + number_text(time) + " after " + number_text(table.times[row - 1]),
             "times that ascend within a trajectory",
             time == table.times[row - 1]
                 ? "give the mean of what was measured at one time, or each series a trajectory of "
                   "its own, by a column that tells them apart"
                 : "sort the rows, or name the column that tells trajectories apart");
    }
  }
}

// What starts at a number has none to be compared with there.
void leave_out_known_starts(TrajectoryTable& table, const FirstNumbers& first) {
  const std::size_t n = table.component_names.size();
  for (std::size_t c = 0; c < n; ++c) {
    if (!first.given.is_number(table.component_names[c], first.parameters)) continue;
    for (std::size_t i = 0, row = 0; i < table.trajectories(); row += table.lengths[i++]) {
      table.states[row * n + c] = std::numeric_limits<double>::quiet_NaN();
    }
  }
}

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

TrajectoryTable read_trajectories_csv(const DataSection& data, const FirstNumbers& first) {
  if (data.time.empty() || data.states.empty()) {
    refuse(data.where, "a CSV without time and states", "their columns",
           "add time = \"t\" and states = [\"x\", \"y\"]");
  }
  const train::Table csv = train::read_csv(data.file.value, data.missing.value_or(train::MissingNumbers::as_nan));
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
    const std::string name =
        data.trajectory.empty() ? "" : csv.text(start, csv.index(data.where_trajectory, data.trajectory));
    if (end - start < 2) {
      const std::string of = name.empty() ? "" : " of " + name;
      refuse(line(start), "a trajectory of 1 point" + of, "at least 2",
             data.trajectory.empty()
                 ? ""
                 : "sort the rows by " + data.trajectory + ", so that those of a trajectory follow each other");
    }
    table.lengths.push_back(end - start);
    if (!name.empty()) table.names.push_back(name);
    if (data.trajectory.empty()) continue;
    const std::size_t column = csv.index(data.where_trajectory, data.trajectory);
    table.labels.push_back(name.empty() ? number_text(csv(start, column)) : name);
  }
  if (table.names.size() != table.lengths.size()) table.names.clear();  // numbers among the names: they are counted
  require_order(table, first, csv.source, csv.source, csv.lines);
  leave_out_known_starts(table, first);
  if (data.sigma.one_by_one()) table.sigma = sigma_of_csv(csv, data.sigma, data.states);
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
  Numbers states =
      read_states(file, data.states, data.where_states, data.missing.value_or(train::MissingNumbers::as_nan),
                  data.starts);
  Numbers times =
      read_numbers(file, data.time.empty() ? "time" : data.time, data.where_time, train::MissingNumbers::as_nan);
  const std::size_t trajectories = states.shape[0], points = states.shape[1];
  if (times.shape != hdf5::Shape{points} && times.shape != hdf5::Shape{trajectories, points}) {
    refuse(times.name, shape_text(times.shape),
           "[" + count_text(points) + "] or [" + count_text(trajectories) + ", " + count_text(points) + "] as " +
               states.name + " has");
  }
  std::vector<std::string> component_names = data.states.size() > 1 ? data.states : numbered("u", states.shape[2]);
  if (data.states.size() < 2 && file.has("component") && file.dataset("component").type().kind == hdf5::Kind::string) {
    std::vector<std::string> names = file.dataset("component").read_strings();
    if (names.size() == states.shape[2]) component_names = std::move(names);
  }
  std::vector<double> sigma = sigma_of_states(file, data.sigma, states, component_names);
  const std::string where_sigma = sigma.empty() ? std::string() : file.path().string() + ": sigma";
  TrajectoryTable table = trajectory_table({times.name, states.name, trajectories, points, std::move(times.values),
                                            std::move(states.values), where_sigma, std::move(sigma)},
                                           std::move(component_names), first);
  table.time_name = data.time.empty() ? "time" : data.time;
  if (ode::ResultFile::recognises(data.file.value) && data.states.size() < 2) {
    const ode::ResultFile result(data.file.value);
    table.component_units = component_units(result);
    table.time_unit = time_unit(result);
    take_impulses(result, table);
  }
  return table;
}

// [trajectory]
std::vector<std::vector<ode::Impulse>> impulses_of(const TrainingFile& file, const TrajectoryTable& table,
                                                   std::vector<std::string>& notes) {
  std::vector<double> starts, ends;
  std::size_t row = 0;
  for (const std::size_t length : table.lengths) {
    starts.push_back(table.times[row]);
    row += length;
    ends.push_back(table.times[row - 1]);
  }
  const ode::Impulses made =
      make_impulses(file.impulses,
                    {.components = table.component_names,
                     .trajectories = table.trajectories(),
                     .says_trajectories = true,
                     .starts = starts,
                     .ends = ends,
                     .random = {file.seed, kImpulseStream},
                     .time_column = table.time_name,
                     .trajectory_column = file.data.trajectory.empty() ? "trajectory" : file.data.trajectory,
                     .labels = table.labels,
                     .times_of = table.time_name + " in the data"},
                    notes);
  std::vector<std::vector<ode::Impulse>> impulses;
  for (std::size_t i = 0; i < table.trajectories(); ++i) {
    const auto own = made.of(i);
    impulses.emplace_back(own.begin(), own.end());
  }
  return impulses;
}

}  // namespace

RegressionData load_regression(const TrainingFile& file) { return split(file, read_regression(file.data)); }

TrajectoryData load_trajectories(const TrainingFile& file) {
  const FirstNumbers first = first_numbers(file);
  TrajectoryTable table =
      is_hdf5(file.data) ? read_trajectories_hdf5(file.data, first) : read_trajectories_csv(file.data, first);
  std::vector<std::string> notes;
  if (!file.impulses.empty()) table.impulses = impulses_of(file, table, notes);
  TrajectoryData data = split(file, table);
  data.notes = std::move(notes);
  return data;
}

FirstNumbers first_numbers(const TrainingFile& file) {
  FirstNumbers first{first_points(file), file.data.starts};
  if (file.ode && file.ode->equations) {
    for (const auto& parameter : file.ode->equations->system.parameters) first.parameters.push_back(parameter.name);
  } else if (file.ode && file.ode->system) {
    first.parameters = system_of(*file.ode).parameters;
  }
  return first;
}

bool TrajectoryTable::have_one_length() const {
  return std::all_of(lengths.begin(), lengths.end(), [&](std::size_t length) { return length == lengths.front(); });
}

TrajectoryTable trajectory_table(const Rectangles& data, std::vector<std::string> component_names,
                                 const FirstNumbers& first) {
  TrajectoryTable table;
  const std::size_t points = data.points, components = component_names.size();
  table.component_names = std::move(component_names);
  for (std::size_t i = 0; i < data.trajectories; ++i) {
    const double* const times = data.times.data() + (data.times.size() == points ? 0 : i * points);
    const double* const states = data.states.data() + i * points * components;
    const auto is_there = [&](std::size_t point) {
      const double* const state = states + point * components;
      return !std::isnan(times[point]) &&
             !std::all_of(state, state + components, [](double x) { return std::isnan(x); });
    };
    std::size_t length = points;
    while (length > 0 && !is_there(length - 1)) --length;
    if (length < 2) {
      refuse(data.where_states + ", trajectory " + std::to_string(i), count_text(length) + " points", "at least 2");
    }
    table.lengths.push_back(length);
    table.times.insert(table.times.end(), times, times + length);
    table.states.insert(table.states.end(), states, states + length * components);
    if (data.sigma.empty()) continue;
    const double* const sigma = data.sigma.data() + i * points * components;
    table.sigma.insert(table.sigma.end(), sigma, sigma + length * components);
  }
  require_order(table, first, data.where_times, data.where_states, {});
  leave_out_known_starts(table, first);
  require_sigma(table.states, table.sigma, [&](std::size_t at) {
    std::size_t trajectory = 0, point = at / components;
    while (point >= table.lengths[trajectory]) point -= table.lengths[trajectory++];
    return data.where_sigma + ", trajectory " + std::to_string(trajectory) + ", point " + std::to_string(point) +
           ", component " + table.component_names[at % components];
  });
  return table;
}

InputScaling input_scaling(Normalisation normalisation, const std::vector<double>& values, std::size_t features) {
  InputScaling scaling;
  if (normalisation == Normalisation::none) return scaling;
  for (std::size_t i = 0; i < features; ++i) {
    const train::ColumnStatistics column = train::column_statistics(values, features, i);
    // Standard: to mean 0 and deviation 1. Min-max: to [-1, 1]. A column that does not vary keeps its scale.
    const bool standard = normalisation == Normalisation::standard;
    const double scale = standard ? column.deviation : (column.maximum - column.minimum) / 2;
    scaling.shift.push_back(standard ? column.mean : (column.maximum + column.minimum) / 2);
    scaling.scale.push_back(scale > 0 ? scale : 1);
  }
  return scaling;
}

OutputScaling output_scaling(Normalisation normalisation, const std::vector<double>& values, std::size_t features) {
  InputScaling scaling = input_scaling(normalisation, values, features);
  return {std::move(scaling.scale), std::move(scaling.shift)};
}

std::vector<nn::Feature> features(const std::vector<std::string>& names, const std::vector<double>& values,
                                  const std::vector<std::string>& units) {
  constexpr double kMargin = 0.01;  // of the width
  std::vector<nn::Feature> result(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const train::ColumnStatistics column = train::column_statistics(values, names.size(), i);
    result[i].name = names[i];
    if (i < units.size()) result[i].unit = units[i];
    if (std::isnan(column.minimum)) continue;  // a state that nobody measured has no range
    const double margin = kMargin * (column.maximum - column.minimum);
    result[i].minimum = column.minimum - margin;
    result[i].maximum = column.maximum + margin;
  }
  return result;
}

}  // namespace lockstep::cli

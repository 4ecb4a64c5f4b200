#include "lockstep/cli/training_data.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "lockstep/cli/data_file.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& found, const std::string& expected,
                         const std::string& remedy = {}) {
  throw Error(ErrorKind::invalid_argument, {field, found, expected, remedy});
}

std::string count(std::size_t n) { return count_text(static_cast<std::int64_t>(n)); }

bool is_hdf5(const DataSection& data) {
  if (!std::filesystem::exists(data.file.value)) {
    throw Error(ErrorKind::file, {data.file.where, "no file " + data.file.value.string(), "a CSV or HDF5 file",
                                  "check the path; it is relative to the folder of the training file"});
  }
  return hdf5::File::recognises(data.file.value);
}

// Numbers of an HDF5 dataset, finite ones.
struct Numbers {
  std::string name;
  hdf5::Shape shape;
  std::vector<double> values;
};

// Of a number in a dataset: ", trajectory 3, point 7, component 0" of three dimensions, ", row 3, column 7" of two.
std::string place_text(const hdf5::Shape& shape, std::size_t at) {
  const bool states = shape.size() == 3;
  std::string text;
  for (std::size_t dimension = shape.size(); dimension-- > 0; at /= shape[dimension]) {
    const char* const name = dimension == 0   ? states ? ", trajectory " : ", row "
                             : dimension == 1 ? states ? ", point " : ", column "
                                              : ", component ";
    text = name + std::to_string(at % shape[dimension]) + text;
  }
  return text;
}

Numbers read_numbers(const hdf5::File& file, const std::string& name, const std::string& where,
                     train::MissingNumbers missing = train::MissingNumbers::refuse) {
  if (!file.has(name)) {
    const std::vector<std::string> names = dataset_names(file);
    const std::vector<std::string_view> known(names.begin(), names.end());
    refuse(where, "\"" + name + "\", which " + file.path().string() + " does not have", "one of " + list_text(known),
           did_you_mean(name, known));
  }
  const hdf5::Dataset dataset = file.dataset(name);
  Numbers numbers{dataset.name(), dataset.shape(), dataset.read<double>()};
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    if (std::isfinite(numbers.values[i])) continue;
    if (missing == train::MissingNumbers::as_nan && std::isnan(numbers.values[i])) continue;
    refuse(numbers.name + place_text(numbers.shape, i), std::isnan(numbers.values[i]) ? "NaN" : "infinity",
           "finite numbers", "repair the row or leave it out");
  }
  return numbers;
}

std::vector<std::string> numbered(const std::string& prefix, std::size_t n) {
  std::vector<std::string> names(n);
  for (std::size_t i = 0; i < n; ++i) names[i] = prefix + std::to_string(i);
  return names;
}

// The columns of all parts, [row][column], row by row.
std::vector<double> side_by_side(const std::vector<Numbers>& parts, std::size_t rows) {
  if (parts.size() == 1) return parts.front().values;
  std::vector<double> values;
  for (std::size_t row = 0; row < rows; ++row) {
    for (const Numbers& part : parts) {
      const std::size_t width = part.values.size() / rows;
      const auto first = part.values.begin() + static_cast<std::ptrdiff_t>(row * width);
      values.insert(values.end(), first, first + static_cast<std::ptrdiff_t>(width));
    }
  }
  return values;
}

// Samples by features out of one dataset [sample, feature] or several, side by side, of [sample] each or that shape.
struct Samples {
  std::vector<std::string> names;
  std::size_t rows = 0;
  std::vector<double> values;  // [sample][feature]
};

// A single dataset's features are numbered after `prefix`.
Samples read_samples(const hdf5::File& file, const std::vector<std::string>& names, const std::string& prefix,
                     const std::string& where) {
  std::vector<Numbers> parts;
  Samples samples;
  for (const std::string& name : names) {
    Numbers& part = parts.emplace_back(read_numbers(file, name, where));
    const bool column = part.shape.size() == 1;
    if (column) part.shape = {part.shape[0], 1};
    if (part.shape.size() != 2 || part.shape[1] == 0) {
      refuse(part.name, std::to_string(part.shape.size()) + " dimensions", "[sample] or [sample, feature]");
    }
    if (part.shape[0] != parts[0].shape[0]) {
      refuse(part.name, count(part.shape[0]) + " rows", count(parts[0].shape[0]) + " as " + parts[0].name);
    }
    std::vector<std::string> features = numbered(names.size() == 1 ? prefix : name, part.shape[1]);
    if (column && names.size() > 1) features = {name};
    samples.names.insert(samples.names.end(), features.begin(), features.end());
  }
  samples.rows = parts[0].shape[0];
  if (samples.rows == 0) refuse(parts[0].name, "no rows", "at least one");
  samples.values = side_by_side(parts, samples.rows);
  return samples;
}

std::string shape_text(const hdf5::Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + count(shape[i]);
  return text + "]";
}

std::vector<double> take_columns(const train::Table& table, const std::vector<std::string>& names,
                                 const std::string& where) {
  std::vector<std::size_t> columns;
  for (const std::string& name : names) columns.push_back(table.column(where, name));
  std::vector<double> values;
  values.reserve(table.rows * columns.size());
  for (std::size_t row = 0; row < table.rows; ++row) {
    for (const std::size_t column : columns) values.push_back(table(row, column));
  }
  return values;
}

RegressionTable read_regression(const DataSection& data) {
  if (!is_hdf5(data)) {
    const train::Table table = train::read_csv(data.file.value);
    return {data.inputs, data.targets, take_columns(table, data.inputs, data.where_inputs),
            take_columns(table, data.targets, data.where_targets)};
  }
  const hdf5::File file = hdf5::File::open(data.file.value);
  Samples inputs = read_samples(file, data.inputs, "x", data.where_inputs);
  Samples targets = read_samples(file, data.targets, "y", data.where_targets);
  if (inputs.rows != targets.rows) {
    refuse(file.path().string() + ": " + data.targets.front(), count(targets.rows) + " rows",
           count(inputs.rows) + " as " + data.inputs.front());
  }
  return {std::move(inputs.names), std::move(targets.names), std::move(inputs.values), std::move(targets.values)};
}

// Complete first points, and times that ascend. `lines`: of a file that has them, [row]; else places are named by
// trajectory and point after what times and states are called.
void require_order(const TrajectoryTable& table, const std::string& times, const std::string& states,
                   const std::vector<std::size_t>& lines) {
  const std::size_t n = table.component_names.size();
  std::size_t row = 0;
  for (std::size_t i = 0; i < table.trajectories(); ++i) {
    for (std::size_t point = 0; point < table.lengths[i]; ++point, ++row) {
      const auto place = [&](const std::string& source) {
        return lines.empty() ? source + ", trajectory " + std::to_string(i) + ", point " + std::to_string(point)
                             : source + ":" + std::to_string(lines[row]);
      };
      for (std::size_t c = 0; point == 0 && c < n; ++c) {
        if (!std::isnan(table.states[row * n + c])) continue;
        refuse(place(states) + ", component " + table.component_names[c], "NaN",
               "a complete state, from which the trajectory starts",
               "leave out the points before the first complete one");
      }
      const double time = table.times[row];
      if (std::isnan(time)) refuse(place(times), "NaN", "a time of each state", "leave out states without one");
      if (point == 0 || time > table.times[row - 1]) continue;
      refuse(place(times), "time " + number_text(time) + " after " + number_text(table.times[row - 1]),
             "times that ascend within a trajectory",
             "sort the rows, or name the column that tells trajectories apart");
    }
  }
}

TrajectoryTable read_trajectories_csv(const DataSection& data) {
  if (data.time.empty() || data.states.empty()) {
    refuse(data.where, "a CSV without time and states", "their columns",
           "add time = \"t\" and states = [\"x\", \"y\"]");
  }
  const train::Table csv = train::read_csv(data.file.value, train::MissingNumbers::as_nan);
  TrajectoryTable table;
  table.component_names = data.states;
  table.states = take_columns(csv, data.states, data.where_states);
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
    if (end - start < 2) refuse(line(start), "a trajectory of 1 point", "at least 2");
    table.lengths.push_back(end - start);
  }
  require_order(table, csv.source, csv.source, csv.lines);
  return table;
}

// State [trajectory, time, component], or of a single trajectory [time, component], or [time] of a single component. Of
// several datasets each is a component, [trajectory, time] or [time].
Numbers read_states(const hdf5::File& file, const DataSection& data) {
  if (data.states.size() < 2) {
    Numbers states = read_numbers(file, data.states.empty() ? "state" : data.states.front(), data.where_states,
                                  train::MissingNumbers::as_nan);
    if (states.shape.size() == 1) states.shape = {1, states.shape[0], 1};
    if (states.shape.size() == 2) states.shape = {1, states.shape[0], states.shape[1]};
    if (states.shape.size() != 3) {
      refuse(states.name, std::to_string(states.shape.size()) + " dimensions", "[trajectory, time, component]");
    }
    return states;
  }
  std::vector<Numbers> components;
  for (const std::string& name : data.states) {
    Numbers& component =
        components.emplace_back(read_numbers(file, name, data.where_states, train::MissingNumbers::as_nan));
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
  const hdf5::Shape shape{components[0].shape[0], components[0].shape[1], components.size()};
  return {components[0].name, shape, side_by_side(components, components[0].values.size())};
}

// Our own result files, or anything with states and time [time] or [trajectory, time].
TrajectoryTable read_trajectories_hdf5(const DataSection& data) {
  const hdf5::File file = hdf5::File::open(data.file.value);
  if (!data.trajectory.empty()) refuse(data.where_trajectory, data.trajectory, "no such key with HDF5", "remove it");
  Numbers states = read_states(file, data);
  Numbers times =
      read_numbers(file, data.time.empty() ? "time" : data.time, data.where_time, train::MissingNumbers::as_nan);
  const std::size_t trajectories = states.shape[0], points = states.shape[1];
  if (times.shape != hdf5::Shape{points} && times.shape != hdf5::Shape{trajectories, points}) {
    refuse(
        times.name, shape_text(times.shape),
        "[" + count(points) + "] or [" + count(trajectories) + ", " + count(points) + "] as " + states.name + " has");
  }
  std::vector<std::string> component_names = data.states.size() > 1 ? data.states : numbered("u", states.shape[2]);
  if (data.states.size() < 2 && file.has("component") && file.dataset("component").type().kind == hdf5::Kind::string) {
    std::vector<std::string> names = file.dataset("component").read_strings();
    if (names.size() == states.shape[2]) component_names = std::move(names);
  }
  TrajectoryTable table = trajectory_table(
      {times.name, states.name, trajectories, points, std::move(times.values), std::move(states.values)},
      std::move(component_names));
  table.time_name = data.time.empty() ? "time" : data.time;
  if (ode::ResultFile::recognises(data.file.value) && data.states.size() < 2) {
    const ode::ResultFile result(data.file.value);
    table.component_units = component_units(result);
    table.time_unit = time_unit(result);
  }
  return table;
}

}  // namespace

RegressionData load_regression(const TrainingFile& file) { return split(file, read_regression(file.data)); }

TrajectoryData load_trajectories(const TrainingFile& file) {
  return split(file, is_hdf5(file.data) ? read_trajectories_hdf5(file.data) : read_trajectories_csv(file.data));
}

bool TrajectoryTable::have_one_length() const {
  return std::all_of(lengths.begin(), lengths.end(), [&](std::size_t length) { return length == lengths.front(); });
}

TrajectoryTable trajectory_table(const Rectangles& data, std::vector<std::string> component_names) {
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
      refuse(data.where_states + ", trajectory " + std::to_string(i), count(length) + " points", "at least 2");
    }
    table.lengths.push_back(length);
    table.times.insert(table.times.end(), times, times + length);
    table.states.insert(table.states.end(), states, states + length * components);
  }
  require_order(table, data.where_times, data.where_states, {});
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
  std::vector<nn::Feature> result(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const train::ColumnStatistics column = train::column_statistics(values, names.size(), i);
    result[i].name = names[i];
    if (i < units.size()) result[i].unit = units[i];
    result[i].minimum = column.minimum;
    result[i].maximum = column.maximum;
  }
  return result;
}

}  // namespace lockstep::cli

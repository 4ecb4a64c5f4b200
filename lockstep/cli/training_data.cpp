#include "lockstep/cli/training_data.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "lockstep/cli/text.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/random.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

constexpr std::uint32_t kSplitStream = 0x78;  // of the seed's random numbers

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

// The names of all datasets in a group and, to a depth that suits a message, in the groups in it.
std::vector<std::string> dataset_names(const hdf5::Group& group, const std::string& prefix = {}, int depth = 3) {
  std::vector<std::string> names;
  for (const std::string& name : group.datasets()) names.push_back(prefix + name);
  if (depth == 0) return names;
  for (const std::string& name : group.groups()) {
    const std::vector<std::string> inside = dataset_names(group.group(name), prefix + name + "/", depth - 1);
    names.insert(names.end(), inside.begin(), inside.end());
  }
  return names;
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

Numbers read_numbers(const hdf5::File& file, const std::string& name, const std::string& where) {
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

void require_ascending(const TrajectoryTable& table, const std::string& source, const std::vector<std::size_t>& lines) {
  for (std::size_t i = 0; i < table.times.size(); ++i) {
    if (i % table.points == 0 || table.times[i] > table.times[i - 1]) continue;
    const std::string place = lines.empty() ? source + ", trajectory " + std::to_string(i / table.points) + ", point " +
                                                  std::to_string(i % table.points)
                                            : source + ":" + std::to_string(lines[i]);
    refuse(place, "time " + number_text(table.times[i]) + " after " + number_text(table.times[i - 1]),
           "times that ascend within a trajectory", "sort the rows, or name the column that tells trajectories apart");
  }
}

TrajectoryTable read_trajectories_csv(const DataSection& data) {
  if (data.time.empty() || data.states.empty()) {
    refuse(data.where, "a CSV without time and states", "their columns",
           "add time = \"t\" and states = [\"x\", \"y\"]");
  }
  const train::Table csv = train::read_csv(data.file.value);
  TrajectoryTable table;
  table.component_names = data.states;
  table.states = take_columns(csv, data.states, data.where_states);
  table.times = take_columns(csv, {data.time}, data.where_time);
  table.points = csv.rows;
  if (!data.trajectory.empty()) {
    const std::vector<double> runs = take_columns(csv, {data.trajectory}, data.where_trajectory);
    std::size_t start = 0;
    for (std::size_t row = 1; row <= csv.rows; ++row) {
      if (row < csv.rows && runs[row] == runs[start]) continue;
      if (start == 0) table.points = row;
      if (row - start != table.points) {
        refuse(csv.source + ":" + std::to_string(csv.lines[start]), "a trajectory of " + count(row - start) + " points",
               count(table.points) + " as the first one has", "give every trajectory the same number of points");
      }
      start = row;
    }
  }
  require_ascending(table, csv.source, csv.lines);
  return table;
}

// State [trajectory, time, component], or of a single trajectory [time, component], or [time] of a single component. Of
// several datasets each is a component, [trajectory, time] or [time].
Numbers read_states(const hdf5::File& file, const DataSection& data) {
  if (data.states.size() < 2) {
    Numbers states = read_numbers(file, data.states.empty() ? "state" : data.states.front(), data.where_states);
    if (states.shape.size() == 1) states.shape = {1, states.shape[0], 1};
    if (states.shape.size() == 2) states.shape = {1, states.shape[0], states.shape[1]};
    if (states.shape.size() != 3) {
      refuse(states.name, std::to_string(states.shape.size()) + " dimensions", "[trajectory, time, component]");
    }
    return states;
  }
  std::vector<Numbers> components;
  for (const std::string& name : data.states) {
    Numbers& component = components.emplace_back(read_numbers(file, name, data.where_states));
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
  Numbers times = read_numbers(file, data.time.empty() ? "time" : data.time, data.where_time);
  const std::size_t trajectories = states.shape[0];
  TrajectoryTable table;
  table.points = states.shape[1];
  const bool shared = times.shape == hdf5::Shape{table.points};
  if (!shared && times.shape != hdf5::Shape{trajectories, table.points}) {
    refuse(times.name, shape_text(times.shape),
           "[" + count(table.points) + "] or [" + count(trajectories) + ", " + count(table.points) + "] as " +
               states.name + " has");
  }
  for (std::size_t i = 0; shared && i < trajectories; ++i) {
    table.times.insert(table.times.end(), times.values.begin(), times.values.end());
  }
  if (!shared) table.times = std::move(times.values);
  table.states = std::move(states.values);
  table.component_names = data.states.size() > 1 ? data.states : numbered("u", states.shape[2]);
  if (data.states.size() < 2 && file.has("component") && file.dataset("component").type().kind == hdf5::Kind::string) {
    std::vector<std::string> names = file.dataset("component").read_strings();
    if (names.size() == states.shape[2]) table.component_names = std::move(names);
  }
  require_ascending(table, times.name, {});
  return table;
}

// Which of n are kept for validation: those with the smallest random keys.
std::vector<bool> held_out(std::size_t n, double share, std::uint64_t seed, const std::string& where) {
  std::vector<bool> held(n);
  if (share == 0) return held;
  const auto wanted = static_cast<std::size_t>(std::floor(share * static_cast<double>(n) + 0.5));
  if (wanted == 0 || wanted == n) {
    refuse(where + ".validation", number_text(share) + " of " + count(n), "at least one on either side",
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

// Copies row i of width `width` to one of two vectors.
void deal(const std::vector<double>& from, std::size_t width, const std::vector<bool>& held, std::vector<double>& kept,
          std::vector<double>& out) {
  for (std::size_t i = 0; i < held.size(); ++i) {
    std::vector<double>& to = held[i] ? out : kept;
    const auto row = from.begin() + static_cast<std::ptrdiff_t>(i * width);
    to.insert(to.end(), row, row + static_cast<std::ptrdiff_t>(width));
  }
}

}  // namespace

RegressionData load_regression(const TrainingFile& file) { return split(file, read_regression(file.data)); }

RegressionData split(const TrainingFile& file, const RegressionTable& all) {
  RegressionData data;
  data.digest = ContentHash().add(std::span<const double>(all.inputs)).add(std::span<const double>(all.targets)).hex();
  for (RegressionTable* table : {&data.training, &data.validation}) {
    table->input_names = all.input_names;
    table->target_names = all.target_names;
  }
  const std::vector<bool> held = held_out(all.rows(), file.data.validation, file.net.seed, file.data.where);
  deal(all.inputs, all.input_names.size(), held, data.training.inputs, data.validation.inputs);
  deal(all.targets, all.target_names.size(), held, data.training.targets, data.validation.targets);
  return data;
}

TrajectoryData load_trajectories(const TrainingFile& file) {
  return split(file, is_hdf5(file.data) ? read_trajectories_hdf5(file.data) : read_trajectories_csv(file.data));
}

TrajectoryData split(const TrainingFile& file, const TrajectoryTable& all) {
  if (all.points < 2) {
    refuse(file.data.file.value.string(), "a trajectory of " + count(all.points) + " points", "at least 2");
  }
  TrajectoryData data;
  data.digest = ContentHash().add(std::span<const double>(all.times)).add(std::span<const double>(all.states)).hex();
  for (TrajectoryTable* table : {&data.training, &data.validation}) {
    table->component_names = all.component_names;
    table->points = all.points;
  }
  const std::vector<bool> held = held_out(all.trajectories(), file.data.validation, file.net.seed, file.data.where);
  for (std::size_t i = 0; file.data.validation > 0 && i < held.size(); ++i) {
    (held[i] ? data.validation : data.training).numbers.push_back(i);
  }
  deal(all.times, all.points, held, data.training.times, data.validation.times);
  deal(all.states, all.points * all.component_names.size(), held, data.training.states, data.validation.states);
  return data;
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

std::vector<nn::Feature> features(const std::vector<std::string>& names, const std::vector<double>& values) {
  std::vector<nn::Feature> result(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const train::ColumnStatistics column = train::column_statistics(values, names.size(), i);
    result[i].name = names[i];
    result[i].minimum = column.minimum;
    result[i].maximum = column.maximum;
  }
  return result;
}

}  // namespace lockstep::cli

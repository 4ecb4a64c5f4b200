#include "lockstep/cli/training_data.h"

#include <cmath>
#include <utility>

#include "lockstep/cli/ensemble_impulses.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/training_tables.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

constexpr std::uint32_t kImpulseStream = 0x79;  // of the seed's random numbers

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
                     .labels = table.names,
                     .times_of = table.time_name + " in the data"},
                    notes);
  std::vector<std::vector<ode::Impulse>> impulses;
  for (std::size_t i = 0; i < table.trajectories(); ++i) {
    const auto own = made.of(i);
    impulses.emplace_back(own.begin(), own.end());
  }
  return impulses;
}

// The trajectories of both, one table behind the other.
TrajectoryTable joined(TrajectoryTable table, TrajectoryTable more, const std::string& where) {
  if (more.component_names != table.component_names) {
    const auto text = [](const std::vector<std::string>& all) {
      return list_text(std::vector<std::string_view>(all.begin(), all.end()));
    };
    refuse(where, "states " + text(more.component_names),
           text(table.component_names) + ", as the data to train on have");
  }
  if (more.sigma.empty() != table.sigma.empty()) {
    refuse(
        where, more.sigma.empty() ? "no standard deviations" : "standard deviations",
        table.sigma.empty() ? "none, as the data to train on" : "those of each number, as the data to train on have");
  }
  const auto append = [&](auto member) {
    auto& to = table.*member;
    const auto& from = more.*member;
    to.insert(to.end(), from.begin(), from.end());
  };
  append(&TrajectoryTable::lengths);
  append(&TrajectoryTable::times);
  append(&TrajectoryTable::states);
  append(&TrajectoryTable::sigma);
  append(&TrajectoryTable::names);
  append(&TrajectoryTable::known);
  return table;
}

void refuse_unwritten_resets(const TrajectoryTable& table, const TrainingFile& file, const std::string& where) {
  if (table.resets.empty() || !file.resets.empty()) return;
  refuse(where, "a solve with " + table.resets, "the same [[resets]] in the training file",
         "write them there: functions of its parameters may be trained, too");
}

}  // namespace

RegressionData load_regression(const TrainingFile& file) {
  const RegressionTable all = read_regression(file.data);
  if (!file.data.validation_file) return split(file, all);
  DataSection data = file.data;
  data.file = *file.data.validation_file;
  const RegressionTable validation = read_regression(data);
  if (validation.input_names.size() != all.input_names.size() ||
      validation.target_names.size() != all.target_names.size()) {
    const auto text = [](const RegressionTable& table) {
      return counted_text(table.input_names.size(), "input") + " and " +
             counted_text(table.target_names.size(), "target");
    };
    refuse(data.file.where, text(validation), text(all) + ", as " + file.data.file.value.string() + " has");
  }
  return split(file, all, &validation);
}

TrajectoryData load_trajectories(const TrainingFile& file) {
  const FirstNumbers first = first_numbers(file);
  TrajectoryTable table = read_trajectories(file.data, first);
  refuse_unwritten_resets(table, file, file.data.file.where);
  std::size_t own = 0;
  if (file.data.validation_file) {
    DataSection section = file.data;
    section.file = *file.data.validation_file;
    TrajectoryTable kept = read_trajectories(section, first);
    refuse_unwritten_resets(kept, file, section.file.where);
    own = kept.trajectories();
    table = joined(std::move(table), std::move(kept), section.file.where);
  }
  std::vector<std::string> notes;
  if (!file.impulses.empty()) table.impulses = impulses_of(file, table, notes);
  TrajectoryData data = split(file, table, own);
  data.notes = std::move(notes);
  return data;
}

FirstNumbers first_numbers(const TrainingFile& file) {
  FirstNumbers first{first_points(file), file.data.starts};
  if (file.ode && file.ode->equations) {
    for (const auto& parameter : file.ode->equations->system.parameters) first.parameters.push_back(parameter.name);
    for (const auto& equation : file.ode->equations->system.equations) first.states.push_back(equation.name);
  } else if (file.ode && file.ode->system) {
    first.parameters = system_of(*file.ode).parameters;
    first.states = system_of(*file.ode).components;
  }
  return first;
}

bool is_hdf5(const DataSection& data) {
  if (!std::filesystem::exists(data.file.value)) {
    throw Error(ErrorKind::file, {data.file.where, "no file " + data.file.value.string(), "a CSV or HDF5 file",
                                  "check the path; it is relative to the folder of the training file"});
  }
  return hdf5::File::recognises(data.file.value);
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

#include "lockstep/cli/equations_training.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/training_task.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

void check_components(const EquationsSection& section, const DataSection& where, const TrajectoryTable& data) {
  const auto& equations = section.system.equations;
  const auto& names = data.component_names;
  if (names.size() != equations.size()) {
    refuse(where.where_states, counted_text(names.size(), "state"),
           std::to_string(equations.size()) + ", one for each equation");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool elsewhere = std::ranges::any_of(equations, [&](const auto& e) { return e.name == names[i]; });
    if (elsewhere && equations[i].name != names[i]) {
      refuse(where.where_states, '"' + names[i] + "\" where the equations have \"" + equations[i].name + '"',
             "the order of the equations");
    }
  }
}

// 0 of those that are each trajectory's own, and have no value else.
std::vector<double> values_of(const EquationsSection& section, const KnownParameters& known) {
  std::vector<double> values;
  for (const auto& parameter : section.system.parameters) {
    if (!parameter.value && !known.has(parameter.name)) {
      refuse(section.where, "no value for " + parameter.name, "a number for each parameter");
    }
    values.push_back(parameter.value.value_or(0));
  }
  return values;
}

// [point][parameter]
std::vector<double> values_over(const EquationsSection& section, const TrajectoryTable& data,
                                const std::vector<double>& shared) {
  std::vector<std::string> names;
  for (const auto& parameter : section.system.parameters) names.push_back(parameter.name);
  const std::vector<double> each = with_known(shared, names, data.known_names, data.known);
  std::vector<double> values;
  for (std::size_t i = 0; i < data.trajectories(); ++i) {
    for (std::size_t point = 0; point < data.lengths[i]; ++point) {
      const auto own = each.begin() + static_cast<std::ptrdiff_t>(i * shared.size());
      values.insert(values.end(), own, own + static_cast<std::ptrdiff_t>(shared.size()));
    }
  }
  return values;
}

// What a net's calls read at each point of the data: [point][call][input]. Parameters are those of all points, or of
// each.
std::vector<double> inputs_over(const nn::NetCalls& calls, const TrajectoryTable& data,
                                const std::vector<double>& parameters) {
  if (calls.calls == 0) return {};
  const std::size_t points = data.times.size(), wide = calls.read.outputs[0].features.size();
  std::vector<MatrixView<const double>> in;
  for (const nn::Port& port : calls.read.inputs) {
    const std::size_t width = port.features.size();
    if (port.name == "u") {
      in.push_back(MatrixView<const double>::row_major(data.states.data(), points, width));
    } else if (port.name == "t") {
      in.push_back(MatrixView<const double>::row_major(data.times.data(), points, width));
    } else {
      const bool differ = parameters.size() != width;
      in.push_back({parameters.data(), points, width, differ ? static_cast<std::ptrdiff_t>(width) : 0, 1});
    }
  }
  std::vector<double> inputs(points * wide);
  const std::vector<MatrixView<double>> out{MatrixView<double>::row_major(inputs.data(), points, wide)};
  nn::NetPlan<double>::compile(calls.read).evaluate(in, out);
  return inputs;
}

// Where a state was not measured an input need not be known.
void require_known_inputs(const EquationsSection& section, const nn::NetCalls& calls, const TrajectoryTable& data,
                          const std::vector<double>& numbers) {
  const std::size_t width = calls.inputs.size(), components = data.component_names.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double* const state = data.states.data() + i / (width * calls.calls) * components;
    if (std::isfinite(numbers[i])) continue;
    if (std::isnan(numbers[i]) && std::any_of(state, state + components, [](double x) { return std::isnan(x); })) {
      continue;
    }
    refuse(section.where, calls.inputs[i % width] + ", which is not finite at a point of the data",
           "finite inputs of the net");
  }
}

nn::Model net_to_train(const TrainingFile& file, const NetSection& net, const nn::NetCalls& calls,
                       const TrajectoryTable& data, const std::vector<double>& parameters) {
  const std::size_t width = calls.inputs.size();
  const std::vector<double> numbers = inputs_over(calls, data, parameters);
  require_known_inputs(*file.ode->equations, calls, data, numbers);
  std::vector<nn::Feature> inputs(width), outputs(calls.outputs.size());
  if (calls.calls > 0 && !calls.reads_nets) inputs = features(calls.inputs, numbers);
  for (std::size_t i = 0; i < width; ++i) {
    inputs[i].name = calls.inputs[i];
    const auto& states = file.ode->equations->system.equations;
    for (std::size_t c = 0; c < data.component_units.size(); ++c) {
      if (states[c].name == calls.inputs[i]) inputs[i].unit = data.component_units[c];
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].name = calls.outputs[i];
  InputScaling scaling;
  for (std::size_t i = 0; i < width && calls.calls > 0 && file.data.normalisation != Normalisation::none; ++i) {
    const train::ColumnStatistics column = train::column_statistics(numbers, width, i);
    scaling.shift.push_back(std::isnan(column.mean) ? 0 : column.mean);  // of what nobody measured
    scaling.scale.push_back(column.deviation > 0 ? column.deviation : 1);
  }
  return initial_model(file, net, std::move(inputs), std::move(outputs), scaling, {});
}

// A state that all nets read as it is, or none, is as good as their ranges say: what is made of it by arithmetic holds
// everywhere. Its own range in the data tells something only where a net reads what is made of it, or knows no range of
// it: of one net at every cell of a grid no cell's own.
void drop_ranges_that_nets_know(std::vector<nn::Feature>& states, const std::vector<nn::NetCalls>& calls,
                                const std::vector<nn::Model>& nets) {
  std::vector<bool> tells(states.size());
  for (std::size_t net = 0; net < nets.size(); ++net) {
    const std::vector<nn::Feature>& inputs = nets[net].inputs[0].features;
    const bool knows_all = std::ranges::all_of(inputs, [](const nn::Feature& one) { return nn::is_bounded(one); });
    const std::vector<bool> otherwise =
        knows_all ? nn::shown_otherwise(calls[net].read) : std::vector<bool>(states.size(), true);
    for (std::size_t i = 0; i < states.size(); ++i) tells[i] = tells[i] || otherwise[i];
  }
  const nn::Feature unknown;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (tells[i]) continue;
    states[i].minimum = unknown.minimum;
    states[i].maximum = unknown.maximum;
  }
}

}  // namespace

EquationsToTrain equations_to_train(const TrainingFile& file, const TrajectoryTable& data) {
  const EquationsSection& section = *file.ode->equations;
  check_components(section, file.data, data);
  if (file.data.normalisation == Normalisation::min_max) {
    refuse(file.data.where + ".normalise", "min_max", "none or standard for a neural ODE");
  }
  EquationsToTrain made;
  made.system = load_nets(section);
  made.trained = section.trained;
  const std::vector<double> parameters = values_of(section, file.data.parameters);
  const std::vector<double> over = data.known.empty() ? parameters : values_over(section, data, parameters);
  std::vector<std::string> names;
  for (const NetSection& net : file.nets) names.push_back(net.called);
  const std::vector<nn::NetCalls> calls = nn::net_calls(made.system, names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    made.nets.push_back(net_to_train(file, file.nets[i], calls[i], data, over));
    made.system.nets.push_back({names[i], made.nets.back()});
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool is_trained = std::ranges::find(made.trained, i, &ode::TrainedParameter::parameter) != made.trained.end();
    if (!is_trained) made.parameters.push_back(parameters[i]);
  }
  made.states.resize(section.system.equations.size());
  if (!names.empty()) {
    made.states = features(data.component_names, data.states);
    drop_ranges_that_nets_know(made.states, calls, made.nets);
  }
  for (std::size_t i = 0; i < made.states.size() && i < data.component_units.size(); ++i) {
    made.states[i].unit = data.component_units[i];
  }
  const nn::Model model = nn::equations(made.system);
  made.time_feature = nn::shortest_time_feature(model);
  made.reads_time = nn::has_time_port(model);
  made.untrained = ode::net(nn::to_graph(model),
                            {.name = "equations", .weight_places = nn::weight_places(model, made.system, names)});
  made.rhs = ode::train_parameters(made.untrained, made.trained);
  made.times = nn::watched_inputs(model, nn::Watch::state_and_parameters).times;
  std::erase_if(made.times, [&](const nn::KnownTimes& known) { return std::ranges::count(names, known.name) > 0; });
  return made;
}

std::vector<std::string> EquationsToTrain::parameter_names() const {
  std::vector<std::string> names;
  for (const auto& parameter : system.parameters) names.push_back(parameter.name);
  return names;
}

nn::Model trained_equations(const TrainingFile& file, const EquationsToTrain& equations,
                            const std::vector<nn::Model>& nets, const std::vector<TrainedValue>& values) {
  nn::Equations system = equations.system;
  for (std::size_t i = 0; i < nets.size(); ++i) system.nets[system.nets.size() - nets.size() + i].model = nets[i];
  for (std::size_t i = 0; i < values.size(); ++i) {
    system.parameters[equations.trained[i].parameter].value = values[i].value;
  }
  nn::Model model = nn::equations(system);
  for (const ode::TrainedParameter& trained : equations.trained) {
    model.inputs[1].features[trained.parameter].unit = trained.unit;
  }
  model.name = file.output.stem.empty() ? "equations" : file.output.stem.filename().string();
  model.provenance.producer = "lockstep " LOCKSTEP_VERSION;
  for (std::size_t i = 0; i < equations.states.size(); ++i) {
    model.inputs[0].features[i].unit = equations.states[i].unit;
    model.inputs[0].features[i].minimum = equations.states[i].minimum;
    model.inputs[0].features[i].maximum = equations.states[i].maximum;
  }
  return model;
}

}  // namespace lockstep::cli

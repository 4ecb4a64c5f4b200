#include "lockstep/cli/equations_training.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "lockstep/cli/text.h"
#include "lockstep/cli/training_task.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

constexpr const char* kNet = "net";  // what the equations call it

[[noreturn]] void refuse(const std::string& where, std::string found, std::string expected, std::string remedy = {}) {
  throw Error(ErrorKind::invalid_argument, {where, std::move(found), std::move(expected), std::move(remedy)});
}

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

std::vector<double> defaults_of(const EquationsSection& section) {
  std::vector<double> values;
  for (const auto& parameter : section.system.parameters) {
    if (!parameter.value) refuse(section.where, "no value for " + parameter.name, "a number for each parameter");
    values.push_back(*parameter.value);
  }
  return values;
}

// What the net reads at each point of the data: [point][input].
std::vector<double> inputs_over(const nn::NetCall& call, const TrajectoryTable& data,
                                const std::vector<double>& parameters) {
  const std::size_t points = data.times.size(), wide = call.inputs.outputs[0].features.size();
  std::vector<MatrixView<const double>> in;
  for (const nn::Port& port : call.inputs.inputs) {
    const std::size_t width = port.features.size();
    if (port.name == "u") {
      in.push_back(MatrixView<const double>::row_major(data.states.data(), points, width));
    } else if (port.name == "t") {
      in.push_back(MatrixView<const double>::row_major(data.times.data(), points, width));
    } else {
      in.push_back({parameters.data(), points, width, 0, 1});  // the same numbers in every row
    }
  }
  std::vector<double> inputs(points * wide);
  const std::vector<MatrixView<double>> out{MatrixView<double>::row_major(inputs.data(), points, wide)};
  nn::NetPlan<double>::compile(call.inputs).evaluate(in, out);
  return inputs;
}

}  // namespace

EquationsToTrain equations_to_train(const TrainingFile& file, const TrajectoryTable& data) {
  const EquationsSection& section = *file.ode->equations;
  check_components(section, file.data, data);
  EquationsToTrain made;
  made.parameters = defaults_of(section);
  const nn::NetCall call = nn::net_call(section.system, kNet);
  std::vector<std::string> names;
  for (const nn::Feature& feature : call.inputs.outputs[0].features) names.push_back(feature.name);
  const std::vector<double> numbers = inputs_over(call, data, made.parameters);
  std::vector<nn::Feature> inputs = features(names, numbers), outputs(call.outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].name = call.outputs[i];
  InputScaling scaling;
  if (file.data.normalisation == Normalisation::min_max) {
    refuse(file.data.where + ".normalise", "min_max", "none or standard for a neural ODE");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const train::ColumnStatistics column = train::column_statistics(numbers, names.size(), i);
    // Where a state was not measured an input need not be known.
    bool known = std::isfinite(column.mean);
    for (std::size_t row = 0; row < data.times.size(); ++row) {
      const double* const state = data.states.data() + row * data.component_names.size();
      known =
          known && (!std::isnan(numbers[row * names.size() + i]) ||
                    std::any_of(state, state + data.component_names.size(), [](double x) { return std::isnan(x); }));
    }
    if (!known) {
      refuse(section.where, names[i] + ", which is not finite at a point of the data", "finite inputs of the net");
    }
    if (file.data.normalisation == Normalisation::none) continue;
    scaling.shift.push_back(column.mean);
    scaling.scale.push_back(column.deviation > 0 ? column.deviation : 1);
  }
  made.net = initial_model(file, std::move(inputs), std::move(outputs), scaling, {});
  nn::Equations system = section.system;
  system.nets.push_back({kNet, made.net});
  made.rhs = ode::net(nn::to_graph(nn::equations(system)), {.name = "equations"});
  return made;
}

}  // namespace lockstep::cli

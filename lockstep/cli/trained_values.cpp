#include "lockstep/cli/trained_values.h"

#include <algorithm>

#include "lockstep/cli/text.h"
#include "lockstep/cli/training_resets.h"
#include "lockstep/cli/training_run.h"

namespace lockstep::cli {

template <class T>
std::vector<TrainedValue> trained_values(const std::vector<std::string>& names,
                                         std::span<const ode::TrainedParameter> trained, std::span<const T> numbers) {
  std::vector<TrainedValue> values;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    values.push_back({names[trained[i].parameter], trained[i].start, static_cast<double>(trained[i].value(numbers[i])),
                      trained[i].unit});
  }
  return values;
}
template std::vector<TrainedValue> trained_values(const std::vector<std::string>&,
                                                  std::span<const ode::TrainedParameter>, std::span<const float>);
template std::vector<TrainedValue> trained_values(const std::vector<std::string>&,
                                                  std::span<const ode::TrainedParameter>, std::span<const double>);

namespace {

std::string parameters_text(const TrainingFile& file, const std::vector<TrainedValue>& values) {
  const ode::SystemInfo info = system_of(*file.ode);
  std::string text = "\n[ensemble]\nparameters = [";
  for (std::size_t i = 0; i < info.parameters.size(); ++i) {
    const auto found = std::ranges::find(values, info.parameters[i], &TrainedValue::name);
    const std::vector<double>& given = file.ode->parameters.empty() ? info.default_parameters : file.ode->parameters;
    text += (i == 0 ? "" : ", ") + number_text(found == values.end() ? given[i] : found->value);
  }
  return text + "]\n";
}

}  // namespace

std::string trained_problem_text(const TrainingFile& file, const std::vector<TrainedValue>& values,
                                 const ParameterReport& report) {
  std::string text = "# trained by lockstep " LOCKSTEP_VERSION "\n";
  for (const std::string& line : table_lines(report)) text += "# " + line + "\n";
  text += "[rhs]\n";
  const OdeSection& ode = *file.ode;
  const TrainingOutputs outputs = outputs_of(file);
  const std::filesystem::path model = ode.equations       ? outputs.equations
                                      : file.nets.empty() ? std::filesystem::path()
                                                          : outputs.nets[0].model;
  if (ode.system) text += "system = \"" + system_of(ode).name + "\"\n";
  if (!model.empty()) text += "model = \"" + model.filename().string() + "\"\n";
  if (ode.with_time) text += "with_time = true\n";
  if (ode.system) text += parameters_text(file, values);
  return text + resets_as_tables(file);
}

}  // namespace lockstep::cli

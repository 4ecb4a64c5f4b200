#include "lockstep/cli/trained_values.h"

#include <algorithm>

#include "lockstep/cli/text.h"
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

std::string trained_system_text(const TrainingFile& file, const std::vector<TrainedValue>& values,
                                const ParameterReport& report) {
  const ode::SystemInfo info = system_of(*file.ode);
  std::string text = "# trained by lockstep " LOCKSTEP_VERSION "\n";
  for (const std::string& line : table_lines(report)) text += "# " + line + "\n";
  text += "[rhs]\nsystem = \"" + info.name + "\"\n";
  if (!file.nets.empty()) {
    text += "model = \"" + outputs_of(file).nets[0].model.filename().string() + "\"\n";
    if (file.ode->with_time) text += "with_time = true\n";
  }
  text += "\n[ensemble]\nparameters = [";
  for (std::size_t i = 0; i < info.parameters.size(); ++i) {
    const auto found = std::ranges::find(values, info.parameters[i], &TrainedValue::name);
    text += (i == 0 ? "" : ", ") + number_text(found == values.end() ? file.ode->parameters[i] : found->value);
  }
  return text + "]\n";
}

}  // namespace lockstep::cli

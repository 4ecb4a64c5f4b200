#include "lockstep/cli/training_resets.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/cli/refuse.h"
#include "lockstep/cli/right_hand_side.h"
#include "lockstep/cli/state_events.h"
#include "lockstep/cli/text.h"
#include "lockstep/nn/equations.h"

namespace lockstep::cli {
namespace {

// Derivatives through a reset know parameters, but no weights.
void refuse_trained_nets(const TrainingFile& file, const ResetSection& reset, const nn::Equations& names) {
  std::vector<std::string> trained;
  for (const NetSection& net : file.nets) trained.push_back(net.called);
  std::vector<nn::Equation> functions = reset.to;
  if (reset.event.function) functions.push_back(*reset.event.function);
  for (const nn::Equation& function : functions) {
    const graph::WeightPlaces places = nn::weight_places(nn::expression(function, names), names, trained);
    if (std::ranges::all_of(places, [](std::size_t place) { return place == graph::kKept; })) continue;
    refuse(function.where, "a net in a reset that is trained", "parameters, and nets that are kept",
           "train parameters in its place, or name the net's file among [rhs.models]");
  }
}

// What resets may name.
NamedRhs named(const TrainingFile& file, const UntrainedRhs& untrained, const nn::Equations* system) {
  NamedRhs rhs;
  rhs.function = untrained.function;
  rhs.component_names = file.ode->system ? system_of(*file.ode).components : untrained.states;
  rhs.parameter_names = untrained.parameters;
  if (system != nullptr) {
    rhs.names = *system;
  } else {
    for (const std::string& name : rhs.component_names) rhs.names.equations.push_back({name, "", ""});
    for (const std::string& name : rhs.parameter_names) rhs.names.parameters.push_back({name, {}});
  }
  return rhs;
}

// Of a ball's height that is 0 where it falls through 0 nothing jumps.
bool stays(const nn::Equation& becomes, const EventSection& event) {
  const auto* component = std::get_if<std::string>(&event.component);
  return !event.function && component != nullptr && *component == becomes.name &&
         becomes.text == number_text(event.value);
}

std::string quoted(const std::string& text) { return '"' + one_line(text) + '"'; }

std::string table_of(const ResetSection& reset) {
  std::string text = "\n[[resets]]\n";
  if (reset.event.function) {
    text += "function = " + quoted(reset.event.function->text) + "\n";
  } else {
    const auto* name = std::get_if<std::string>(&reset.event.component);
    text += "component = " +
            (name != nullptr ? quoted(*name) : std::to_string(std::get<std::size_t>(reset.event.component))) + "\n";
    if (reset.event.value != 0) text += "value = " + number_text(reset.event.value) + "\n";
  }
  if (reset.event.direction != ode::TerminalEvent::Direction::either)
    text += "direction = " + quoted(to_string(reset.event.direction)) + "\n";
  text += "to = {";
  for (const nn::Equation& each : reset.to)
    text += (&each == &reset.to.front() ? " " : ", ") + toml_key(each.name) + " = " + quoted(each.text);
  return text + " }\n";
}

}  // namespace

ResetsToTrain resets_to_train(const TrainingFile& file, const UntrainedRhs& untrained, const nn::Equations* system) {
  const NamedRhs rhs = named(file, untrained, system);
  ResetsToTrain result;
  std::vector<ResetForm> forms;
  for (const ResetSection& section : file.resets) {
    MadeReset made = make_reset(section, rhs);
    refuse_trained_nets(file, section, rhs.names);
    result.untrained.push_back(std::move(made.reset));
    forms.push_back(std::move(made.form));
    result.reads_time = result.reads_time || made.reads_time;
  }
  result.trained = ode::train_parameters(result.untrained, untrained.trained);
  result.text = text_of_resets(forms);
  return result;
}

JumpingStates jumping_states(const TrainingFile& file, const TrajectoryTable& data) {
  const std::vector<std::string>& names = data.component_names;
  const auto is_measured = [&](std::size_t component) {  // behind the first points
    for (std::size_t i = 0, row = 0; i < data.trajectories(); row += data.lengths[i++]) {
      for (std::size_t point = 1; point < data.lengths[i]; ++point)
        if (!std::isnan(data.states[(row + point) * names.size() + component])) return true;
    }
    return false;
  };
  JumpingStates states;
  for (std::size_t c = 0; c < names.size(); ++c) {
    const auto jumps = [&](const ResetSection& reset) {
      const auto becomes = std::ranges::find(reset.to, names[c], &nn::Equation::name);
      return becomes != reset.to.end() && !stays(*becomes, reset.event);
    };
    if (!is_measured(c)) continue;
    if (std::ranges::any_of(file.resets, jumps)) {
      states.jumping.push_back(c);
    } else {
      states.others = true;
    }
  }
  return states;
}

std::vector<ode::FitPhase> phases_with_resets(const TrainingFile& file, const TrajectoryTable& data,
                                              std::size_t longest, std::vector<double> weights) {
  std::vector<ode::FitPhase> phases =
      ode::growing_phases(longest, file.target, file.noisy ? std::optional(1.0) : std::nullopt);
  const JumpingStates states = jumping_states(file, data);
  if (!states.wait()) return phases;
  if (weights.empty()) weights.assign(data.component_names.size(), 1.0);
  for (const std::size_t c : states.jumping) weights[c] = 0;
  const ode::FitPhase last = phases.back();
  for (ode::FitPhase& phase : phases) phase.component_weights = weights;
  phases.back().training.target.reset();
  phases.push_back(last);
  phases.back().training.name = "all states";
  return phases;
}

std::optional<std::string> jump_advice(const TrainingFile& file, const TrajectoryTable& data) {
  const JumpingStates states = jumping_states(file, data);
  const bool wait = file.phases.empty() && states.wait();
  if (!file.data.sigma.empty() || states.jumping.empty() || wait) return std::nullopt;
  std::vector<std::string_view> names;
  for (const std::size_t c : states.jumping) names.push_back(data.component_names[c]);
  return list_text(names) + (names.size() == 1 ? " jumps" : " jump") +
         " at resets: a measurement that a reset of the fit comes just too late for counts as all wrong, and slopes do "
         "not see it; a sigma as large as the jumps keeps such measurements from holding parameters where they are";
}

std::string resets_as_tables(const TrainingFile& file) {
  nn::Equations names;  // of the model that training writes
  if (file.ode->equations) names = file.ode->equations->system;
  names.definitions.clear();
  std::string text;
  for (const ResetSection& reset : file.resets) {
    try {
      if (file.ode->equations && reset.event.function) nn::expression(*reset.event.function, names);
      if (file.ode->equations && !reset.to.empty()) nn::expressions(reset.to, names);
      text += table_of(reset);
    } catch (const Error& error) {
      text += "\n# to be added, in the names of components and parameters: one of [[resets]]; " +
              one_line(error.what()) + "\n";
    }
  }
  return text;
}

}  // namespace lockstep::cli

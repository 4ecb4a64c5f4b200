#include "lockstep/cli/state_events.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "lockstep/cli/ensemble_impulses.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/threshold_event.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/guarded_calls.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/plan_file.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::cli {
namespace {

// An event strikes where its function changes sign, which a condition, 0 or 1, and a number do not.
void require_sign(const nn::Model& model, const nn::Equation& function) {
  const auto node = std::ranges::find(model.nodes, model.outputs.front().value, &nn::Node::name);
  if (node == model.nodes.end()) return;
  const auto* binary = std::get_if<graph::Binary>(&node->operation);
  using Kind = graph::BinaryKind;
  if (binary && (binary->kind == Kind::less || binary->kind == Kind::less_or_equal || binary->kind == Kind::equal)) {
    refuse(function.where, "the condition \"" + function.text + '"', "an expression whose sign changes",
           "write the difference of its two sides, x - 1 for x > 1; direction says which way");
  }
  if (std::holds_alternative<graph::Constant>(node->operation)) {
    refuse(function.where, "the number \"" + function.text + '"', "an expression whose sign changes", "");
  }
}

// Without what nothing watches.
std::vector<std::byte> bytes_of(nn::Model model) {
  model.calls.clear();
  return nn::plan_bytes({std::move(model), Precision::f64, CpuTarget::scalar});
}

ode::Rhs function_from(const nn::Model& model, std::size_t parameters, const std::string& text) {
  return ode::graph_function(nn::to_graph(model), parameters, text);
}

std::size_t changed_component(const nn::Equation& becomes, const NamedRhs& rhs) {
  if (std::ranges::find(rhs.parameter_names, becomes.name) != rhs.parameter_names.end()) {
    refuse(becomes.where, "the parameter \"" + becomes.name + '"', "a component, for parameters do not change",
           "write it among the equations, " + becomes.name + " = \"0\"");
  }
  return component_of(becomes.name, rhs.component_names, becomes.where);
}

// "x falls through 0"
std::string text_of(const EventSection& event, const EventForm& form, const NamedRhs& rhs) {
  using Direction = ode::TerminalEvent::Direction;
  const std::string what = event.function ? one_line(event.function->text) : rhs.component_names[form.component];
  const std::string how = event.direction == Direction::rising    ? " rises through "
                          : event.direction == Direction::falling ? " falls through "
                                                                  : " crosses ";
  return what + how + number_text(form.value);
}

// Adds those with a training range that the model calls; tables keep their ends.
void add_nets(const nn::Model& model, std::vector<std::string>& nets) {
  for (const nn::GuardedCall& call : model.calls) {
    const bool is_net = nn::called_table(model, call) == nullptr &&
                        std::ranges::any_of(call.inputs, [](const auto& port) { return nn::is_bounded(port); });
    if (is_net) nets.push_back(call.net);
  }
}

}  // namespace

MadeEvent make_event(const EventSection& section, const NamedRhs& rhs) {
  MadeEvent made;
  made.event.direction = section.direction;
  if (section.function) {
    const nn::Model model = nn::expression(*section.function, rhs.names);
    require_sign(model, *section.function);
    made.form.model = bytes_of(model);
    made.event.function = function_from(model, rhs.parameter_names.size(), section.function->text);
    made.reads_time = nn::has_time_port(model);
    add_nets(model, made.nets);
    return made;
  }
  made.form.component = component_of(section.component, rhs.component_names, section.where);
  made.form.value = section.value;
  made.event.function = threshold(rhs.function, made.form.component, made.form.value);
  return made;
}

MadeReset make_reset(const ResetSection& section, const NamedRhs& rhs) {
  std::vector<nn::Equation> states;
  for (const std::string& name : rhs.component_names) states.push_back({name, name, ""});
  std::string text;
  for (const nn::Equation& becomes : section.to) {
    states[changed_component(becomes, rhs)] = becomes;
    text += (text.empty() ? "" : ", ") + becomes.name + " = " + one_line(becomes.text);
  }
  if (text.empty()) text = "no change";
  const nn::Model model = nn::expressions(states, rhs.names);
  MadeEvent event = make_event(section.event, rhs);
  const std::string where = text_of(section.event, event.form, rhs);
  add_nets(model, event.nets);
  return {{std::move(event.event.function), function_from(model, rhs.parameter_names.size(), text),
           section.event.direction},
          {std::move(event.form), bytes_of(model), text + " where " + where},
          event.reads_time || nn::has_time_port(model),
          std::move(event.nets)};
}

std::vector<std::string> texts_of_resets(std::span<const ResetForm> resets) {
  std::vector<std::string> texts;
  for (const ResetForm& reset : resets) texts.push_back(reset.text);
  return texts;
}

std::string text_of_resets(std::span<const ResetForm> resets) {
  std::string text;
  for (const ResetForm& reset : resets) text += (text.empty() ? ": " : "; ") + reset.text;
  return text.empty() ? text : counted_text(resets.size(), "reset") + text;
}

ode::Rhs function_of(const EventForm& form, const ode::Rhs& rhs, const std::string& text, const std::string& source) {
  if (form.model.empty()) return threshold(rhs, form.component, form.value);
  return function_from(nn::read_plan(form.model, source).model, rhs->parameters(), text);
}

ode::Rhs state_of(const ResetForm& form, const ode::Rhs& rhs, const std::string& source) {
  return function_from(nn::read_plan(form.state, source).model, rhs->parameters(), form.text);
}

}  // namespace lockstep::cli

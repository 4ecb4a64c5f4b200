#include "lockstep/cli/given_starts.h"

#include <algorithm>
#include <string_view>

#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::cli {
namespace {

nn::Equations with_parameters(const std::vector<std::string>& names) {
  nn::Equations system;
  for (const std::string& name : names) system.parameters.push_back({name, {}});
  return system;
}

}  // namespace

bool StartsSection::has(const std::string& state) const {
  return std::ranges::find(of, state, &nn::Equation::name) != of.end();
}

bool StartsSection::is_number(const std::string& state, const std::vector<std::string>& parameters) const {
  const auto found = std::ranges::find(of, state, &nn::Equation::name);
  if (found == of.end()) return false;
  try {
    return nn::is_constant(*found, with_parameters(parameters));
  } catch (const Error&) {
    return false;  // which starts_to_train() refuses
  }
}

std::string StartsSection::where_of(const std::string& state) const {
  const auto found = std::ranges::find(of, state, &nn::Equation::name);
  return found == of.end() ? where : found->where;
}

void StartsSection::require_among(const std::vector<std::string>& states) const {
  const std::vector<std::string_view> known(states.begin(), states.end());
  for (const nn::Equation& each : of) {
    if (std::ranges::find(states, each.name) != states.end()) continue;
    throw Error(ErrorKind::invalid_argument, {each.where, '"' + each.name + '"',
                                              "one of the states " + list_text(known), did_you_mean(each.name, known)});
  }
}

StartsSection read_starts(const TomlValue& data) {
  StartsSection section;
  section.where = data.where() + ".starts";
  const TomlValue* starts = data.find("starts");
  if (starts == nullptr) return section;
  if (!starts->is_table()) {
    throw starts->error(starts->describe(), "a table of numbers or expressions of parameters: { x = 0, y = \"y0\" }");
  }
  for (const auto& [name, value] : starts->table()) {
    if (!value.is_number() && !value.is_text()) {
      throw value.error(value.describe(), "a number, or an expression of parameters in quotes",
                        "to find it, name a parameter: " + name + " = \"" + name + "0\" here, and " + name +
                            "0 = { start = 1 } among the parameters");
    }
    section.of.push_back({name, value.is_number() ? number_text(value.number()) : value.text(), value.where()});
  }
  return section;
}

namespace {

constexpr const char* kStartOf = "start_of_";

nn::Model model_of(const nn::Equations& system) {
  try {
    return nn::equations(system);
  } catch (const Error& error) {
    if (error.expected().find(kStartOf) == std::string::npos) throw;  // else a list of all names
    std::vector<std::string_view> names;
    for (const auto& parameter : system.parameters) names.push_back(parameter.name);
    throw Error(error.kind(), {error.field(), error.found(),
                               names.empty() ? "a number: there are no parameters" : "numbers or " + list_text(names),
                               "starts are made of parameters alone, not of states or definitions"});
  }
}

// A solve begins at the data's first time: the time would be 0 in it.
void refuse_time(const StartsSection& section, const nn::Equations& system) {
  for (const nn::Equation& each : section.of) {
    const nn::Model start = nn::expression(each, system);
    if (std::ranges::find(start.inputs, "t", &nn::Port::name) == start.inputs.end()) continue;
    throw Error(ErrorKind::invalid_argument,
                {each.where, "the time t in \"" + each.text + '"', "a number, or an expression of parameters",
                 "starts hold at each trajectory's first time: write it as a number or a parameter"});
  }
}

}  // namespace

StartsToTrain starts_to_train(const StartsSection& section, const std::vector<std::string>& states,
                              const std::vector<std::string>& parameters,
                              const std::vector<ode::TrainedParameter>& trained) {
  if (section.of.empty()) return {};
  section.require_among(states);
  nn::Equations system = with_parameters(parameters);
  ode::GivenStarts starts;
  for (std::size_t c = 0; c < states.size(); ++c) {
    const auto found = std::ranges::find(section.of, states[c], &nn::Equation::name);
    const bool is_given = found != section.of.end();
    if (is_given) starts.components.push_back(c);
    // States go by other names here: a start is no function of them.
    system.equations.push_back(
        {kStartOf + std::to_string(c), is_given ? found->text : "0", is_given ? found->where : section.where});
  }
  const nn::Model model = model_of(system);
  refuse_time(section, system);
  starts.values =
      ode::net(nn::to_graph(model), {.name = "starts", .weight_places = nn::weight_places(model, system, {})});
  StartsToTrain result{starts, starts};
  result.trained->values = ode::train_parameters(starts.values, trained);
  return result;
}

}  // namespace lockstep::cli

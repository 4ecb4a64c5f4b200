#include "lockstep/cli/model_text.h"

#include <string_view>
#include <variant>

#include "lockstep/cli/equations_section.h"
#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/text.h"
#include "lockstep/nn/load.h"
#include "lockstep/ode/result_file.h"

namespace lockstep::cli {
namespace {

nn::Model load_equations(const std::filesystem::path& path) {
  const ProblemFile file = read_problem_file(path);
  if (!file.rhs.equations) {
    throw Error(ErrorKind::invalid_argument,
                {file.rhs.where, "no equations", "[rhs.equations], to make a model of", "name the model itself"});
  }
  nn::Model model = nn::equations(load_nets(*file.rhs.equations));
  model.name = path.stem().string();
  return model;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> node_lines(const nn::Model& model) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::string before = model.inputs.size() == 1 ? model.inputs.front().name : "";
  for (const nn::Node& node : model.nodes) {
    std::string text = graph::describe(node.operation);
    const bool follows = node.inputs.size() == 1 && node.inputs.front() == before;
    if (!follows && !node.inputs.empty()) {
      text += " of ";
      for (std::size_t i = 0; i < node.inputs.size(); ++i) text += (i == 0 ? "" : ", ") + node.inputs[i];
    }
    lines.emplace_back(node.name, std::move(text));
    before = node.name;
  }
  const bool last = model.outputs.size() == 1 && model.outputs.front().value == before;
  for (std::size_t i = 0; i < model.outputs.size() && !last; ++i) {
    lines.emplace_back(model.outputs[i].name, "output port: " + model.outputs[i].value);
  }
  return lines;
}

std::string parameters_text(const nn::Model& model) {
  const std::size_t count = model.parameter_count();
  return count == 0 ? "no parameters" : counted_text(count, "parameter") + ", " + to_string(model.weight_type);
}

Precision own_precision(const std::filesystem::path& path) {
  return path.extension() == ".toml" ? read_problem_file(path).options.precision : Precision::f32;
}

Precision chosen_precision(const std::optional<std::string>& flag, const std::filesystem::path& path) {
  if (!flag) return own_precision(path);
  return *flag == "f64" ? Precision::f64 : Precision::f32;
}

bool is_available(CpuTarget target) {
  for (const CpuTarget here : available_cpu_targets()) {
    if (here == target) return true;
  }
  return false;
}

std::string made_for_text(const nn::PlanFile& plan) {
  if (plan.made_for == nn::PlanFor::any_machine) return "for the best of any machine, here ";
  if (is_available(plan.target)) return {};
  return "for " + std::string(to_string(plan.target)) + ", which this machine lacks; here it would be: ";
}

Error naming_file(const Error& error, const std::filesystem::path& path) {
  const bool about_it = error.kind() == ErrorKind::model || error.kind() == ErrorKind::unsupported;
  if (!about_it || error.field().starts_with(path.string())) return error;
  const std::string field = error.field() == "model" ? path.string() : path.string() + ": " + error.field();
  return Error(error.kind(), {field, error.found(), error.expected(), error.remedy()});
}

nn::Model load_model(const std::filesystem::path& path, const std::optional<std::string>& activations,
                     const std::string& given_by, nn::UnreadableOutputs unreadable) {
  if (path.extension() == ".toml") {
    if (!activations) return load_equations(path);
    throw Error(ErrorKind::invalid_argument,
                {given_by, '"' + *activations + '"', "none for equations, of " + path.string(),
                 "leave them out; they are for files that do not say"});
  }
  if (ode::ResultFile::recognises(path)) {
    throw Error(ErrorKind::unsupported,
                {path.string(), "results of an ensemble", "a model, or equations in a problem file",
                 "lockstep info tells how they were solved"});
  }
  constexpr std::string_view kField = "options.activations";
  nn::ReadOptions options;
  options.unreadable_outputs = unreadable;
  if (activations) options.activations = *activations;
  try {
    return nn::load(path, options);
  } catch (const Error& error) {
    if (!error.field().starts_with(kField)) throw;
    throw Error(error.kind(),
                {given_by + error.field().substr(kField.size()), error.found(), error.expected(), error.remedy()});
  }
}

}  // namespace lockstep::cli

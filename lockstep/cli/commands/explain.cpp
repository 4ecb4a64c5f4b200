// `lockstep explain`: what a solve would do, or what lowering makes of a net, and about how long it would take.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/problem_flags.h"
#include "lockstep/cli/explain_model.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/ode/solve.h"

namespace lockstep::cli {
namespace {

struct ExplainOptions {
  std::filesystem::path problem;
  ProblemOverrides overrides;
  std::optional<std::string> activations;
};

constexpr const char* kExplainExamples = R"(
Examples:
  lockstep explain lorenz.toml
  lockstep explain lorenz.toml --trajectories 1000000 --cpu-target avx2 --threads 1
  lockstep explain net.onnx                              # what was fused, merged and dropped

Nothing is written. The prediction comes from a short measurement on this machine.)";

void print_line(const char* name, const std::string& value) { std::printf("%-14s%s\n", name, value.c_str()); }

int explain(const ExplainOptions& options) {
  if (holds_a_net(options.problem)) {
    explain_model(options.problem, options.overrides, options.activations);
    return kSuccess;
  }
  if (options.activations) {
    throw Error(ErrorKind::invalid_argument,
                {"--activations", '"' + *options.activations + '"', "none for a problem file",
                 "write it into the file: [rhs] activations = \"" + *options.activations + '"'});
  }
  ProblemFile file = read_problem_file(options.problem);
  apply(options.overrides, file);
  const ProblemSetup setup = set_up(file);
  const ode::Explanation explanation = ode::explain(setup.problem, setup.options);
  const std::size_t trajectories = setup.problem.trajectories();
  const std::size_t save_points = setup.problem.save_points();
  const std::size_t components = setup.component_names.size();
  const std::size_t element = setup.options.precision == Precision::f32 ? 4 : 8;

  print_line("problem", setup.title + ": " + setup.problem.rhs->description());
  for (const std::string& note : setup.notes) print_line("note", note);
  print_line("ensemble", counted_text(trajectories, "trajectory") + " of " + counted_text(components, "component") +
                             ", " + counted_text(save_points, "save point") + " each");
  if (!setup.grid.empty()) print_line("grid", grid_text(setup.grid));
  print_line("method", explanation.method + ", " + to_string(setup.options.control) + " steps, " +
                           std::string(to_string(setup.options.precision)));
  for (const std::string& line : setup.step_lines()) print_line("", line);
  if (!setup.resets.empty()) print_line("resets", text_of_resets(setup.resets));
  if (!setup.impulses.empty()) print_line("impulses", setup.impulses);
  print_line("engine", explanation.engine + ", " + explanation.cpu_target + ", " + std::to_string(explanation.threads) +
                           (explanation.threads == 1 ? " thread" : " threads"));
  print_line("kernel", explanation.kernel);
  print_line("evaluation", seconds_text(explanation.evaluation_seconds) + " for one trajectory");
  print_line("steps", rate_text(explanation.steps_per_trajectory) + " a trajectory");
  print_line("states", size_text(static_cast<std::uint64_t>(trajectories) * save_points * components * element) +
                           (file.output.file ? " into " + file.output.file->value.string() : ""));
  print_line("predicted", "about " + seconds_text(explanation.predicted_seconds));
  if (!explanation.reasons.empty()) std::printf("\n");
  for (const std::string& reason : explanation.reasons) std::printf("- %s\n", reason.c_str());
  return kSuccess;
}

}  // namespace

void add_explain(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      app.add_subcommand("explain", "say what solving a problem, or evaluating a net, would do, and about how long");
  command->add_option("FILE", options->problem, "a problem file, model file or plan file")->required();
  command->add_option("--activations", options->activations,
                      "a model's, where its file does not say: tanh,identity, or "
                      "tanh for the hidden layers");
  add_problem_flags(*command, options->overrides);
  command->footer(std::string(kExplainExamples) + "\n");
  command->callback([&chosen, options] { chosen.run = [options] { return explain(*options); }; });
}

}  // namespace lockstep::cli

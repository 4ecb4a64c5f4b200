// `lockstep compile`: a net as a plan file, which a host loads without reading a model.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/derivative_flag.h"
#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/flag_checks.h"
#include "lockstep/cli/model_text.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/plan_file.h"

namespace lockstep::cli {
namespace {

struct CompileOptions {
  std::filesystem::path model;
  std::filesystem::path output;
  std::string target = "best";
  std::optional<std::string> precision, activations, derivative;
  bool overwrite = false;
};

constexpr const char* kCompileExamples = R"(
Examples:
  lockstep compile net.onnx -o net.plan                  # for any machine, each at its best
  lockstep compile net.h5 --target avx2 --precision f64 -o net.plan
  lockstep compile net.h5 --derivative jvp -o net_jvp.plan    # ports x, x_dot: y, y_dot = J x_dot

A host loads the file by lockstep_plan_load (C, Fortran) or nn::read_plan (C++). The target `best` is chosen then: the best
of the machine that loads the file. One that is named, which this machine may lack, is refused by machines without it. The
results have the same bits on all. A plan file is checked by a checksum and read only by the version of Lockstep that
wrote it, and some later ones: keep the model.)";

int compile_model(const CompileOptions& options) {
  refuse_to_replace(options.output, {options.model});
  const Existing existing = existing_output(options.output, options.overwrite);
  nn::PlanFile plan{load_with_derivative(options.model, options.activations, options.derivative),
                    chosen_precision(options.precision, options.model), best_cpu_target(), nn::PlanFor::any_machine};
  if (options.target != "best") {
    const auto target = parse_cpu_target(options.target);
    if (!target) {
      throw Error(ErrorKind::invalid_argument,
                  {"--target", '"' + options.target + '"', "best, scalar, avx2, avx512 or neon", {}});
    }
    plan.target = *target;
    plan.made_for = nn::PlanFor::target;
  }
  // Lowered here as far as can be, so that a net that cannot be is found now.
  const CpuTarget here = is_available(plan.target) ? plan.target : best_cpu_target();
  const std::string description = in_model_file(options.model, [&] {
    return plan.precision == Precision::f32 ? nn::NetPlan<float>::compile(plan.model, here).description()
                                            : nn::NetPlan<double>::compile(plan.model, here).description();
  });
  nn::write_plan(options.output, plan, existing);
  std::printf("%s%s\n", made_for_text(plan).c_str(), description.c_str());
  std::printf("%s, %s\n", options.output.string().c_str(),
              size_text(std::filesystem::file_size(options.output)).c_str());
  return kSuccess;
}

}  // namespace

void add_compile(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<CompileOptions>();
  CLI::App* command = app.add_subcommand("compile", "a net as a plan file, which a host program loads at once");
  command->add_option("MODEL", options->model, "a model file")->required();
  command->add_option("-o,--output", options->output, "plan file to write")->check(file_name())->required();
  command
      ->add_option("--target", options->target,
                   "instruction set: avx512, avx2, neon or scalar; best: the best of each machine that loads the file")
      ->capture_default_str();
  command->add_option("--precision", options->precision, kPrecisionHelp)->check(one_of({"f32", "f64"}));
  add_derivative(*command, options->derivative);
  command->add_option(
      "--activations", options->activations,
      "one for each layer (tanh,identity), or one for the hidden layers (tanh), where the file does not say");
  command->add_flag("--overwrite", options->overwrite, "replace an existing output");
  command->footer(std::string(kCompileExamples) + "\n");
  command->callback([&chosen, options] { chosen.run = [options] { return compile_model(*options); }; });
}

}  // namespace lockstep::cli

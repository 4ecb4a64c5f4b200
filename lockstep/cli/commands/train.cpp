// `lockstep train`: a training file in; a model, a checkpoint and the loss curve out.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/flag_checks.h"
#include "lockstep/cli/training_run.h"
#include "lockstep/core/thread_count.h"

namespace lockstep::cli {
namespace {

struct TrainOptions {
  std::filesystem::path file;
  TrainingOverrides beside;
  std::optional<std::string> cpu_target;
  bool explain = false;
  RunFlags flags;
};

constexpr const char* kTrainExamples = R"(
A training file for a regression:
  [net]
  hidden = [20, 5]
  activation = "relu"
  [data]
  file = "table.csv"
  inputs = ["x", "y"]
  targets = ["z"]
  [training]
  optimiser = "adam"
  rate = 0.01
  iterations = 2000
  [output]
  file = "net"

and for a neural ODE, du/dt = net(u), instead of inputs and targets:
  time = "t"
  states = ["x", "y", "z"]

Writes net.h5 and net.safetensors (the best parameters), net_checkpoint.h5, net_loss.csv, net_loss.png and net_fit.png,
and ends with the error of each output over training and validation data. Ctrl-C keeps what was reached; --resume goes on
from there with the same bits, or begins when there is no checkpoint. The bits depend on neither threads nor instruction
set. docs/training.md begins with examples, docs/training_file.md lists every key.)";

int train(TrainOptions options) {
  TrainingFile file = read_training_file(options.file);
  options.beside.where_output = "--output";
  override_with(options.beside, file);
  if (options.cpu_target) {
    file.options.cpu_target = parse_cpu_target(*options.cpu_target);
    if (!file.options.cpu_target) {
      throw Error(ErrorKind::invalid_argument,
                  {"--cpu-target", "\"" + *options.cpu_target + "\"", "one of scalar, avx2, avx512, neon", {}});
    }
    require_cpu_target(*file.options.cpu_target);
  }
  return options.explain ? explain_training(file) : run_training(file, options.flags);
}

}  // namespace

void add_train(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "train a net: a regression from a table, or a neural ODE");
  command->add_option("TRAIN.toml", options->file, "the training file")->required();
  command->add_option("-o,--output", options->beside.output, "how the files to write begin, instead of output.file")
      ->check(file_name());
  command->add_flag("--resume", options->flags.resume, "go on from the checkpoint of an earlier run");
  command->add_flag("--overwrite", options->beside.overwrite, "replace existing outputs");
  command->add_flag("-q,--quiet", options->flags.quiet, "print errors only");
  command->add_flag("--explain", options->explain, "say what would be trained and how, and write nothing");
  command->add_option("--seed", options->beside.seed, "seed of the initial weights, the split and the shuffling");
  command->add_option("--threads", options->beside.threads, "number of threads, 0 for all")
      ->transform(whole_number(0, kMostThreads));
  command->add_option("--cpu-target", options->cpu_target, "instruction set: avx512, avx2, neon or scalar");
  command->footer(std::string(kTrainExamples) + "\n");
  command->callback([&chosen, options] {
    chosen.run = [options, line = chosen.command_line] {
      options->flags.command_line = line;
      return train(*options);
    };
  });
}

}  // namespace lockstep::cli

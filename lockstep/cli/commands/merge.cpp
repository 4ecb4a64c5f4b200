// `lockstep merge`: one result file, or an index, of the parts of an ensemble.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/flag_checks.h"
#include "lockstep/cli/interrupt.h"
#include "lockstep/cli/progress.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/ode/merge.h"

namespace lockstep::cli {
namespace {

struct MergeCommand {
  std::vector<std::filesystem::path> parts;
  std::filesystem::path output;
  bool index = false;
  bool allow_unfinished = false;
  bool overwrite = false;
  bool quiet = false;
};

constexpr const char* kMergeExamples = R"(
Examples:
  lockstep solve lorenz.toml --shard 1/3      and 2/3 and 3/3, anywhere
  lockstep merge lorenz.shard-*.h5 --output lorenz.h5
  lockstep merge lorenz.shard-*.h5 --output lorenz.h5 --index
  lockstep merge lorenz.h5 --output whole.h5  of an index: its parts

The parts must be of one run and hold each trajectory once; the result has the same bits as one run's file. An index
holds no numbers but shows those of its parts: keep it beside them. docs/files.md describes both.)";

void print_summary(const std::vector<ode::EnsemblePart>& parts, const MergeCommand& command, std::uintmax_t bytes) {
  std::size_t unfinished = 0;
  for (const ode::EnsemblePart& part : parts) unfinished += part.unfinished;
  const std::size_t total = parts.front().total;
  const std::string files = parts.size() == 1 ? "1 file" : count_text(parts.size()) + " files";
  std::printf("%s: %s%s\n", (command.index ? "index of " + files : files + " merged").c_str(),
              (count_text(total) + (total == 1 ? " trajectory" : " trajectories")).c_str(),
              unfinished > 0 ? (", " + count_text(unfinished) + " of them not finished").c_str() : "");
  std::printf("%s: %s\n", command.output.string().c_str(), size_text(bytes).c_str());
}

int merge(const MergeCommand& command, const std::string& command_line) {
  require_result_name(command.output, "--output");
  ode::MergeOptions options;
  if (command.index) refuse_to_replace(command.output, command.parts);  // it would show itself
  options.existing = existing_output(command.output, command.overwrite);
  options.unfinished = command.allow_unfinished ? ode::Unfinished::accept : ode::Unfinished::refuse;
  const Interrupt interrupt;
  try {
    const auto parts = ode::arrange_parts(command.parts, options.unfinished);
    options.attributes = {{"command", command_line},
                          {"history", history_line(command_line, ode::ResultFile(parts.front().path))}};
    std::uintmax_t bytes = 0;
    if (command.index) {
      bytes = ode::index_parts(command.parts, command.output, options);
    } else {
      Progress progress("merging", "MB", command.quiet ? Verbosity::quiet : Verbosity::normal);
      bytes =
          ode::merge_parts(command.parts, command.output, options, {&interrupt.token(), progress.function(kMegabyte)});
    }
    if (!command.quiet) print_summary(parts, command, bytes);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::cancelled) throw;
    std::fprintf(stderr, "lockstep: stopped before the end: nothing written\n");
    return interrupt.exit_code();
  }
  return kSuccess;
}

}  // namespace

void add_merge(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<MergeCommand>();
  CLI::App* command = app.add_subcommand("merge", "make one result file, or an index, of an ensemble's parts");
  command->add_option("PART.h5", options->parts, "the parts, in any order")->required();
  command->add_option("-o,--output", options->output, "file to write")->check(file_name())->required();
  command->add_flag("--index", options->index, "write a small file that shows the parts as one, and copy nothing");
  command->add_flag("--allow-unfinished", options->allow_unfinished, "accept parts with cancelled trajectories");
  command->add_flag("--overwrite", options->overwrite, "replace an existing output");
  command->add_flag("-q,--quiet", options->quiet, "print errors only");
  command->footer(std::string(kMergeExamples) + "\n");
  command->callback(
      [&chosen, options] { chosen.run = [options, line = chosen.command_line] { return merge(*options, line); }; });
}

}  // namespace lockstep::cli

// `lockstep pack`: a result file made smaller for the archive, without loss.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/flag_checks.h"
#include "lockstep/cli/interrupt.h"
#include "lockstep/cli/progress.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/ode/pack.h"

namespace lockstep::cli {
namespace {

struct PackCommand {
  std::filesystem::path file;
  std::filesystem::path output;
  int level = ode::PackOptions{}.level;
  bool overwrite = false;
  bool quiet = false;
};

constexpr const char* kPackExamples = R"(
Examples:
  lockstep pack lorenz.h5                     the packed file replaces it
  lockstep pack lorenz.h5 --output archive/lorenz.h5
  lockstep pack lorenz.h5 --level 9           a little smaller, slower

Lossless: shuffle and deflate, filters that every HDF5 library has, so h5py, xarray and lockstep read it as before. Every
number is read back and compared before the new file takes its name. Chaotic states are nearly random below their first
digits: expect a tenth to a third less, and more from smooth or early-ending trajectories. A small file that would not
become smaller stays as it is.)";

int pack(const PackCommand& command, const std::string& command_line) {
  const bool in_place = command.output.empty();
  const std::filesystem::path& target = in_place ? command.file : command.output;
  ode::PackOptions options;
  options.existing = existing_output(target, in_place || command.overwrite);
  options.level = command.level;
  const Interrupt interrupt;
  try {
    options.attributes = {{"history", history_line(command_line, ode::ResultFile(command.file))}};
    ode::Packed packed;
    {
      Progress progress("packing", "MB", command.quiet ? Verbosity::quiet : Verbosity::normal);
      packed = ode::pack(command.file, target, options, {&interrupt.token(), progress.function(kMegabyte)});
    }
    if (!command.quiet && packed.stayed) {
      std::printf("%s: stays as it is, %s: packed it would take %s\n", target.c_str(),
                  size_text(packed.bytes_before).c_str(), size_text(packed.bytes_after).c_str());
    } else if (!command.quiet) {
      const bool smaller = packed.bytes_after < packed.bytes_before;
      const std::string change = smaller ? fixed_text(packed.ratio(), 2) + " times smaller" : "no smaller";
      std::printf("%s: %s, was %s: %s, every bit verified\n", target.c_str(), size_text(packed.bytes_after).c_str(),
                  size_text(packed.bytes_before).c_str(), change.c_str());
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::cancelled) throw;
    std::fprintf(stderr, "lockstep: stopped before the end: nothing written\n");
    return interrupt.exit_code();
  }
  return kSuccess;
}

}  // namespace

void add_pack(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<PackCommand>();
  CLI::App* command = app.add_subcommand("pack", "compress a result file for the archive, without loss");
  command->add_option("FILE.h5", options->file, "the result file")->required();
  command->add_option("-o,--output", options->output, "file to write; without it FILE.h5 is replaced")
      ->check(file_name());
  command->add_option("--level", options->level, "1 (fast) to 9 (small)")
      ->transform(whole_number(1, 9))
      ->capture_default_str();
  command->add_flag("--overwrite", options->overwrite, "replace an existing output");
  command->add_flag("-q,--quiet", options->quiet, "print errors only");
  command->footer(std::string(kPackExamples) + "\n");
  command->callback(
      [&chosen, options] { chosen.run = [options, line = chosen.command_line] { return pack(*options, line); }; });
}

}  // namespace lockstep::cli

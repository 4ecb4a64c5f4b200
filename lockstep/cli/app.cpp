#include "lockstep/cli/app.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/interrupt.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hdf5_closing.h"
#include "lockstep/core/printable.h"
#include "lockstep/nn/equations.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "Lockstep advances ensembles of differential equations whose right-hand side is a trained neural network, a\n"
    "built-in system, both added up, or equations written as text with networks in them.";

constexpr const char* kExamples = R"(
Examples:
  lockstep explain lorenz.toml                  what would run, and about how long
  lockstep solve lorenz.toml                    solve it into the file it names
  lockstep solve lorenz.toml --output b.h5 --cpu-target avx2 --threads 1
  lockstep validate a.h5 b.h5                   does b agree with a?
  lockstep merge part-*.h5 --output whole.h5    one file of an ensemble solved in parts
  lockstep pack lorenz.h5                       smaller, for the archive
  lockstep plot a.h5                            pictures beside the file
  lockstep info a.h5                            what a result, model or data file holds
  lockstep train train.toml                     a net from data: docs/training.md
  lockstep import net.onnx --output net.h5      a net of another tool, checked if you have its answers
  lockstep export net.h5 --c-header net.h       a header for C or CUDA that needs nothing else
  lockstep export net.h5 --onnx net.onnx        for ONNX Runtime and other tools
  lockstep evaluate net.safetensors --input x.h5 --output y.h5
  lockstep calibrate                            measure this machine once, for the choice of the device

A problem file, lorenz.toml:
  [rhs]
  model = "lorenz.safetensors"       # or system = "lorenz"; both: physics plus a net; or [rhs.equations]
  [ensemble]
  trajectories = 10000
  initial_state = { normal = { mean = [1, 0, 0], std = 0.1 } }
  [time]
  span = [0, 1]
  save = 101
  [output]
  file = "lorenz.h5"

`lockstep COMMAND --help` says more about each. Exit codes: 0 done; 1 validate found no agreement; 2 an error, told in
one line; 130 and 143 stopped by Ctrl-C or SIGTERM, with what was finished in the file.)";

constexpr const char* kNoMemory =
    "not enough memory; fewer trajectories, save points or weights take less, and fewer threads with rodas5p";

int fail(std::string message) {
  std::ranges::replace(message, '\n', ' ');  // which the parser of flags writes
  std::fprintf(stderr, "lockstep: error: %s\n", printable(message, LineBreaks::escape).c_str());
  return kFailure;
}

// What a shell would need to run the same again.
std::string command_line_text(int argc, const char* const* argv) {
  std::string text = "lockstep";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$`*?[]{}()<>|&;#~!") == std::string_view::npos;
    text += " ";
    if (plain) {
      text += word;
      continue;
    }
    text += "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += "'";
  }
  return text;
}

// An argument nobody expected: the nearest flag or command is named.
std::string unexpected(const CLI::App& app) {
  const CLI::App* place = &app;
  while (!place->get_subcommands().empty()) place = place->get_subcommands().front();
  const std::vector<std::string> remaining = app.remaining(true);
  if (remaining.empty()) return {};
  const std::string& word = remaining.front();
  std::vector<std::string> known;
  if (word.starts_with("-")) {
    for (const CLI::Option* option : place->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
  } else if (place == &app) {
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(command->get_name());
    }
  }
  const std::vector<std::string_view> choices(known.begin(), known.end());
  const std::string name = word.substr(0, word.find('='));
  const std::string remedy = did_you_mean(name, choices);
  return (word.starts_with("-") ? "unknown flag "
          : place == &app       ? "unknown command "
                                : "unexpected argument ") +
         name + "; " + (remedy.empty() ? "" : remedy + " ") + "see lockstep " +
         (place == &app ? "" : place->get_name() + " ") + "--help";
}

// "-overwrite": a flag's long name behind one dash, which would be read as -o verwrite.
void refuse_single_dash(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 3) return;
  const std::vector<const CLI::App*> commands =
      app.get_subcommands([&](const CLI::App* one) { return one->check_name(argv[1]); });
  if (commands.empty()) return;
  for (int i = 2; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with('-') || word.starts_with("--")) continue;
    const std::string name(word.substr(1, word.find('=') - 1));
    if (name.size() < 2 || commands.front()->get_option_no_throw("--" + name) == nullptr) continue;
    throw Error(ErrorKind::invalid_argument, {std::string(word), "a flag of several letters behind one dash", "two",
                                              "write --" + std::string(word.substr(1))});
  }
}

int parse_and_run(int argc, const char* const* argv) {
  CLI::App app(kDescription, "lockstep");
  Chosen chosen;
  chosen.command_line = command_line_text(argc, argv);
  app.set_version_flag("--version", "lockstep " LOCKSTEP_VERSION);
  app.footer(std::string(kExamples) + "\n");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& error) { return std::string(error.what()); });
  add_solve(app, chosen);
  add_train(app, chosen);
  add_evaluate(app, chosen);
  add_import(app, chosen);
  add_export(app, chosen);
  add_compile(app, chosen);
  add_validate(app, chosen);
  add_merge(app, chosen);
  add_pack(app, chosen);
  add_plot(app, chosen);
  add_info(app, chosen);
  add_explain(app, chosen);
  add_calibrate(app, chosen);
  refuse_single_dash(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    if (argc == 1) {
      std::fputs(app.help().c_str(), stdout);
      return kFailure;
    }
    const std::string text = unexpected(app);
    return fail(text.empty() ? std::string(error.what()) : text);
  }
  return chosen.run();
}

}  // namespace

namespace {

// An error where what was printed did not arrive, on a full disk, say. Who closed standard output wants none of it.
int with_output_delivered(int code) {
  const bool arrived = std::fflush(stdout) == 0;
  const int reason = errno;
  if ((arrived && std::ferror(stdout) == 0) || ::fcntl(STDOUT_FILENO, F_GETFD) == -1 || code != kSuccess) return code;
  return fail("standard output: found " + (arrived ? "a failed write" : std::generic_category().message(reason)) +
              ", expected room for what is printed; what was done is done");
}

int run(int argc, const char* const* argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const nn::ExpressionError& error) {
    fail(error.what());
    std::fprintf(stderr, "%s\n", printable(error.excerpt(), LineBreaks::keep).c_str());
    return kFailure;
  } catch (const Error& error) {
    fail(error.what());
    if (hdf5::closing_failed()) {  // that was the last word
      std::fflush(nullptr);
      std::_Exit(kFailure);
    }
    return kFailure;
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(printable(error.path1().string(), LineBreaks::escape) + ": found " + error.code().message() +
                ", expected a file or folder that can be looked at; check the path and its permissions");
  } catch (const std::bad_alloc&) {
    return fail(kNoMemory);
  } catch (const std::length_error&) {  // longer than any memory
    return fail(kNoMemory);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace

int run_app(int argc, const char* const* argv) {
  remove_temporary_files_when_killed();
  return with_output_delivered(run(argc, argv));
}

}  // namespace lockstep::cli

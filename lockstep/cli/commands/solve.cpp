// `lockstep solve`: a problem file in, a result file out.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "lockstep/agreement/certificate.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/problem_flags.h"
#include "lockstep/cli/interrupt.h"
#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/cli/progress.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/stored_problem.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/solve.h"

namespace lockstep::cli {
namespace {

struct SolveOptions {
  std::filesystem::path problem;
  ProblemOverrides overrides;
  bool quiet = false;
  bool certificate = false;
  std::size_t certificate_samples = agreement::CertificateOptions{}.samples;
};

constexpr const char* kExamples = R"(
Examples:
  lockstep solve lorenz.toml
  lockstep solve lorenz.toml --output /tmp/a.h5 --trajectories 1000 --precision f64
  lockstep solve lorenz.toml --method rk4 --dt 0.001 --overwrite
  lockstep solve lorenz.toml --certificate    so that validate can judge a port of this run

Flags win over the file's fields; --dt chooses fixed steps. The bits of `state` depend on neither threads nor
instruction set. Ctrl-C keeps what is finished (a second one does not wait). docs/problem_file.md lists every key.)";

std::string plural(std::size_t count, const std::string& what) {
  return count_text(static_cast<std::int64_t>(count)) + " " + what + (count == 1 ? "" : what.back() == 'y' ? "" : "s");
}

std::string trajectories_text(std::size_t count) {
  return count_text(static_cast<std::int64_t>(count)) + (count == 1 ? " trajectory" : " trajectories");
}

void print_summary(const ode::Summary& summary, const ode::Options& options, const std::string& path,
                   std::uintmax_t bytes) {
  std::size_t total = 0;
  std::string statuses;
  for (int i = 0; i < ode::kStatusCount; ++i) {
    const std::size_t count = summary.count_of[static_cast<std::size_t>(i)];
    total += count;
    if (count == 0) continue;
    statuses += (statuses.empty() ? "" : ", ") + count_text(static_cast<std::int64_t>(count)) + " " +
                std::string(ode::to_string(static_cast<ode::Status>(i)));
  }
  std::printf("%s: %s\n", trajectories_text(total).c_str(), statuses.c_str());
  std::printf("%s accepted, %s rejected, %s of the right-hand side\n",
              plural(static_cast<std::size_t>(summary.accepted), "step").c_str(), count_text(summary.rejected).c_str(),
              plural(static_cast<std::size_t>(summary.evaluations), "evaluation").c_str());
  std::printf("%s, %s trajectories/s: %s, %s, %s on %s (%s), %s\n", seconds_text(summary.seconds).c_str(),
              rate_text(static_cast<double>(total) / summary.seconds).c_str(), options.method.c_str(),
              to_string(options.control).c_str(), std::string(to_string(options.precision)).c_str(),
              summary.engine.c_str(), summary.cpu_target.c_str(),
              plural(static_cast<std::size_t>(summary.threads), "thread").c_str());
  std::printf("%s: %s\n", path.c_str(), size_text(bytes).c_str());
}

int solve(const SolveOptions& options, const std::string& command_line) {
  ProblemFile file = read_problem_file(options.problem);
  apply(options.overrides, file);
  if (!file.output.file) {
    throw Error(ErrorKind::invalid_argument, {file.path.string() + ": output.file", "nothing", "the file to write",
                                              "add [output] with file = \"results.h5\", or --output results.h5"});
  }
  const std::filesystem::path& path = file.output.file->value;
  const Existing existing = file.output.overwrite ? Existing::replace : Existing::refuse;
  if (existing == Existing::refuse && std::filesystem::exists(path)) {
    throw Error(ErrorKind::file,
                {path.string(), "a file of that name", "none", "choose another name, or replace it with --overwrite"});
  }
  const ProblemSetup setup = set_up(file);
  const Interrupt interrupt;
  std::function<void(hdf5::File&)> more = [&](hdf5::File& to) { store_problem(to, file, setup); };
  if (options.certificate) {
    agreement::CertificateOptions which;
    which.samples = options.certificate_samples;
    which.seed = file.ensemble.seed;
    agreement::Certificate certificate;
    try {
      Progress progress("certifying", "trajectories", options.quiet ? Verbosity::quiet : Verbosity::normal);
      certificate =
          agreement::make_certificate(setup.problem, setup.options, which, {&interrupt.token(), progress.function()});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::cancelled) throw;
      std::fprintf(stderr, "lockstep: stopped before the first trajectory: nothing written\n");
      return interrupt.exit_code();
    }
    more = [&file, &setup, certificate = std::move(certificate)](hdf5::File& to) {
      store_problem(to, file, setup);
      agreement::write_certificate(to, certificate);
    };
  }
  ode::ResultWriter writer(path, setup.problem, setup.options.precision,
                           {setup.title, setup.component_names, setup.parameter_names,
                            describe_problem(file, setup, command_line), std::move(more)},
                           existing);
  ode::Summary summary;
  {
    Progress progress("solving", "trajectories", options.quiet ? Verbosity::quiet : Verbosity::normal);
    summary = ode::solve(setup.problem, setup.options, writer, {&interrupt.token(), progress.function()});
  }
  const std::uintmax_t bytes = writer.finish(describe_run(summary));
  if (!options.quiet) print_summary(summary, setup.options, path.string(), bytes);
  if (!summary.cancelled) return kSuccess;
  const std::size_t total = setup.problem.trajectories();
  const std::size_t open = summary.count_of[static_cast<std::size_t>(ode::Status::cancelled)];
  std::fprintf(stderr, "lockstep: stopped: %s of %s are finished and in %s\n",
               count_text(static_cast<std::int64_t>(total - open)).c_str(), trajectories_text(total).c_str(),
               path.string().c_str());
  return interrupt.exit_code();
}

}  // namespace

void add_solve(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<SolveOptions>();
  CLI::App* command = app.add_subcommand("solve", "solve the ensemble a problem file describes into an HDF5 file");
  command->add_option("PROBLEM.toml", options->problem, "the problem file")->required();
  command->add_option("-o,--output", options->overrides.output, "file to write, instead of output.file");
  command->add_flag("--overwrite", options->overrides.overwrite, "replace an existing output");
  command->add_flag("-q,--quiet", options->quiet, "print errors only");
  command->add_flag("--certificate", options->certificate,
                    "also store perturbed members, for validate to know what rounding does");
  command->add_option("--certificate-samples", options->certificate_samples, "trajectories to perturb")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_problem_flags(*command, options->overrides);
  command->footer(std::string(kExamples) + "\n");
  command->callback(
      [&chosen, options] { chosen.run = [options, line = chosen.command_line] { return solve(*options, line); }; });
}

}  // namespace lockstep::cli

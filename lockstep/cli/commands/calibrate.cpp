// `lockstep calibrate`: measures this machine once, for the choice of the device and the predictions of `explain`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/interrupt.h"
#include "lockstep/cli/progress.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/ode/calibrate.h"
#include "lockstep/ode/cuda/load.h"

namespace lockstep::cli {
namespace {

struct CalibrateCommand {
  bool show = false;
  bool quiet = false;
};

constexpr const char* kCalibrateExamples = R"(
Examples:
  lockstep calibrate           measures, some seconds; run it while the machine is idle
  lockstep calibrate --show    what was measured before

The figures decide between CPU and GPU where the device is "auto", and explain predicts with them. They lie in
$XDG_CACHE_HOME/lockstep/calibration.json, or below ~/.cache; without them built-in ones serve. No bit of a result
depends on them. Run it again after a new card, driver or version of Lockstep.)";

void print(const ode::Calibration& calibration) {
  std::printf("%s, measured %s\n", calibration.machine.c_str(), calibration.measured.c_str());
  std::printf("operations a nanosecond (about one multiply-add each)\n");
  std::printf("  %-28s %-5s %10s %10s\n", "", "", "nets", "steps");
  for (const ode::CpuFigures& f : calibration.cpu) {
    std::printf("  %-28s %-5s %10s %10s\n", ("one thread, " + std::string(to_string(f.target))).c_str(),
                std::string(to_string(f.precision)).c_str(), rounded_text(f.net_rate, 3).c_str(),
                rounded_text(f.step_rate, 3).c_str());
  }
  for (const ode::GpuFigures& f : calibration.gpu) {
    std::printf("  %-28s %-5s %10s %10s   starts in %s, results at %s/s (CUDA %s)\n", f.name.c_str(),
                std::string(to_string(f.precision)).c_str(), rounded_text(f.net_rate, 3).c_str(),
                rounded_text(f.step_rate, 3).c_str(), seconds_text(f.latency).c_str(),
                size_text(static_cast<std::uint64_t>(f.bytes_a_second)).c_str(), f.driver.c_str());
  }
}

int calibrate(const CalibrateCommand& command) {
  const std::filesystem::path path = ode::calibration_path();
  if (path.empty()) {
    throw Error(ErrorKind::file, {.field = "HOME",
                                  .found = "neither it nor XDG_CACHE_HOME set",
                                  .expected = "a folder for the user's cache",
                                  .remedy = "set XDG_CACHE_HOME to a folder"});
  }
  if (command.show) {
    const auto known = ode::read_calibration(path, ode::this_machine());
    if (known) {
      print(*known);
    } else {
      std::printf("%s was not measured: built-in figures serve; run lockstep calibrate\n", ode::this_machine().c_str());
    }
    return kSuccess;
  }
  const Interrupt interrupt;
  ode::Calibration calibration;
  try {
    Progress progress("measuring", "parts", command.quiet ? Verbosity::quiet : Verbosity::normal);
    calibration = ode::calibrate({}, {&interrupt.token(), progress.function()});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::cancelled) throw;
    std::fprintf(stderr, "lockstep: stopped before the end: nothing written\n");
    return interrupt.exit_code();
  }
  ode::write_calibration(path, calibration);
  if (!command.quiet) {
    print(calibration);
    if (calibration.gpu.empty()) std::printf("no GPU measured: %s\n", ode::cuda::load_runtime().missing.c_str());
    std::printf("kept in %s\n", path.c_str());
  }
  return kSuccess;
}

}  // namespace

void add_calibrate(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<CalibrateCommand>();
  CLI::App* command = app.add_subcommand("calibrate", "measure this machine once, for the choice between CPU and GPU");
  command->add_flag("--show", options->show, "print what was measured before");
  command->add_flag("--quiet", options->quiet, "print nothing");
  command->footer(std::string(kCalibrateExamples) + "\n");
  command->callback([&chosen, options] { chosen.run = [options] { return calibrate(*options); }; });
}

}  // namespace lockstep::cli

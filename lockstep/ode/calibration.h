// Figures of this machine for the cost model: built in, or measured once by `lockstep calibrate` and kept in the user's
// cache.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/precision.h"
#include "lockstep/kernels/cpu_target.h"

namespace lockstep::ode {

// Rates are in operations (see Work) a nanosecond: of nets, and of everything else a step does.
struct CpuFigures {
  CpuTarget target = CpuTarget::scalar;
  Precision precision = Precision::f32;
  double net_rate = 0;  // of one thread
  double step_rate = 0;
};

// Of one card with one driver.
struct GpuFigures {
  std::string name, driver;
  Precision precision = Precision::f32;
  double latency = 0;  // seconds of a program's first solve beyond its work
  double net_rate = 0;
  double step_rate = 0;
  double bytes_a_second = 0;  // of results, into host memory
};

// What was measured on one machine.
struct Calibration {
  std::string machine;   // this_machine() where it was measured
  std::string measured;  // when, ISO 8601
  std::vector<CpuFigures> cpu;
  std::vector<GpuFigures> gpu;

  const CpuFigures* find(CpuTarget target, Precision precision) const;
  const GpuFigures* find(const std::string& name, const std::string& driver, Precision precision) const;
};

// The processor's name and its hardware threads: "AMD EPYC 9654, 192 threads".
std::string this_machine();

// $XDG_CACHE_HOME/lockstep/calibration.json, or ~/.cache/lockstep/calibration.json; empty where neither variable is
// set. One file may hold several machines that share a home directory.
std::filesystem::path calibration_path();

// What such a file says of a machine; nullopt where there is no file or nothing of that machine. Throws Error (file)
// when the file is damaged or of another version.
std::optional<Calibration> read_calibration(const std::filesystem::path& path, const std::string& machine);

// Puts it in place of what the file said of that machine, in one piece; folders are made, a damaged file is replaced.
// Throws Error (file).
void write_calibration(const std::filesystem::path& path, const Calibration& calibration);

// What the cost model goes by here.
struct KnownFigures {
  std::optional<Calibration> measured;  // otherwise the built-in figures
  std::optional<Error> warning;         // why not, where a file is there and cannot be used
};
// Of calibration_path() and this_machine(), read once for each path.
const KnownFigures& known_figures();

}  // namespace lockstep::ode

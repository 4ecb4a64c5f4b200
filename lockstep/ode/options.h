// How an ensemble is advanced. The defaults suit a careful scientist with a smooth, non-stiff problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/core/matrix_precision.h"
#include "lockstep/core/precision.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/ode/device_choice.h"
#include "lockstep/ode/engine_choice.h"

namespace lockstep::ode {

struct Problem;

enum class StepControl {
  per_trajectory,  // each trajectory has its own adaptive step size
  common,          // one adaptive step size for all: the largest error of any trajectory decides
  fixed,           // steps of `dt`, the last one shortened to land on the end time
};

struct Options {
  std::string method = "tsit5";  // a name from ode::method_names()
  StepControl control = StepControl::per_trajectory;
  double rtol = 1e-6;  // local error relative to |u|, and
  double atol = 1e-6;  // absolute, in the state's units; the norm is the RMS over components of err/(atol + rtol |u|)
  std::vector<double> component_atol = {};  // [component], in place of atol where components differ in size; or empty
  double dt = 0;                       // step size with fixed control (required there, > 0)
  std::optional<double> initial_step = {};  // > 0; otherwise chosen by Hairer, Norsett & Wanner I, II.4
  std::optional<double> max_step = {};      // > 0
  // Times at which steps end, in any order: where the right-hand side jumps or bends. The derivative is evaluated anew
  // behind each, and what belongs to the time behind is not read before. Adaptive steps are made to end there; of fixed
  // ones, in any trajectory, a step must.
  std::vector<double> stops = {};
  // The same at times that the right-hand side tells (StateFunction::time_knots). Fixed steps pass by those at which
  // none ends.
  bool stop_at_knots = true;
  std::int64_t max_steps = 100'000;  // attempts a trajectory may make, accepted and rejected
  Precision precision = Precision::f32;
  // Other than f32 takes f32 states, GPUs alone, and an engine that has the mode.
  MatrixPrecision matrix_precision = MatrixPrecision::f32;
  DeviceChoice device = {};                       // automatic: by predicted times; the bits do not depend on it
  EngineChoice engine = EngineChoice::automatic;  // on a GPU; other than automatic takes one
  int threads = 0;                                // 0: every thread this process may use
  std::optional<CpuTarget> cpu_target = {};       // otherwise the best of this machine; the bits do not depend on it

  double atol_of(std::size_t component) const { return component_atol.empty() ? atol : component_atol[component]; }
  // Throws Error (invalid_argument, or unsupported for a target this machine lacks).
  void validate() const;
};

// Whether the right-hand side tells of times that each trajectory's own parameters move.
bool knots_differ(const Problem& problem, const Options& options);

// The times within the trajectories' spans at which adaptive steps end, ascending: Options::stops and what the
// right-hand side knows of; of the first trajectory where parameters move them. None with fixed steps.
std::vector<double> stop_times(const Problem& problem, const Options& options);

// A jump of the right-hand side that lies within a fixed step of a trajectory, which keeps no order across it; none
// among the first `most` trajectories, or with adaptive steps.
struct PassedJump {
  double time;
  std::size_t trajectory;
};
std::optional<PassedJump> passed_jump(const Problem& problem, const Options& options, std::size_t most);

// That both are valid and fit each other. Throws Error.
void validate(const Problem& problem, const Options& options);

}  // namespace lockstep::ode

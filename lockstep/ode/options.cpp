#include "lockstep/ode/options.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/core/thread_count.h"
#include "lockstep/ode/detail/save_rows.h"
#include "lockstep/ode/detail/steps_of_resets.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode {
namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& found, const std::string& expected,
                         const std::string& remedy = {}) {
  throw Error(ErrorKind::invalid_argument,
              {.field = "options." + field, .found = found, .expected = expected, .remedy = remedy});
}

void require_positive(const char* field, double value, const char* remedy = "") {
  if (!(value > 0) || !std::isfinite(value)) refuse(field, number_text(value), "a finite number above 0", remedy);
}

}  // namespace

void Options::validate() const {
  const StandardArithmetic arithmetic;
  const Tableau& tableau = ode::method(method);
  if (control == StepControl::fixed) {
    if (dt == 0) refuse("dt", "0", "a step size above 0 with fixed control", "set dt");
    require_positive("dt", dt, "give the step's size; its sign follows the time span");
  } else {
    if (tableau.error.empty()) {
      refuse("control", "adaptive steps with method " + method, "a method with an error estimate",
             "use fixed control with dt, or a method such as tsit5");
    }
    if (dt != 0) {
      refuse("dt", number_text(dt), "no dt with adaptive steps",
             "use fixed control, or initial_step for the first step");
    }
    for (const auto& [field, value] : {std::pair{"rtol", rtol}, std::pair{"atol", atol}}) {
      if (!(value >= 0) || !std::isfinite(value)) refuse(field, number_text(value), "a finite tolerance, not negative");
    }
    if (rtol >= 1) {
      refuse("rtol", number_text(rtol), "a relative tolerance below 1, at which the error may be the whole solution",
             "give one such as 1e-6");
    }
    if (atol == 0) {
      refuse("atol", "0", "a tolerance above 0", "a component that passes through zero needs an absolute tolerance");
    }
    for (std::size_t c = 0; c < component_atol.size(); ++c) {
      if (!(component_atol[c] > 0) || !std::isfinite(component_atol[c])) {
        refuse("atol[" + std::to_string(c) + "]", number_text(component_atol[c]),
               "a finite tolerance above 0 for each component");
      }
    }
    // It counts in the state's precision, where a tolerance of 0 makes NaN of the error of a component that is 0.
    const auto refuse_small = [&](const std::string& field, double tolerance) {
      if (precision != Precision::f32 || static_cast<float>(tolerance) != 0) return;
      refuse(field, number_text(tolerance), "at least 1e-45 with f32", "use f64 for tighter tolerances");
    };
    if (component_atol.empty()) refuse_small("atol", atol);
    for (std::size_t c = 0; c < component_atol.size(); ++c) {
      refuse_small("atol[" + std::to_string(c) + "]", component_atol[c]);
    }
    const double finest = precision == Precision::f32 ? 1e-7 : 1e-15;
    if (rtol != 0 && rtol < finest) {
      refuse("rtol", number_text(rtol),
             "at least " + std::string(precision == Precision::f32 ? "1e-7 with f32" : "1e-15 with f64"),
             precision == Precision::f32 ? "use f64 for tighter tolerances" : "loosen it: float64 carries 16 digits");
    }
  }
  if (initial_step) require_positive("initial_step", *initial_step);
  if (max_step) require_positive("max_step", *max_step);
  for (std::size_t i = 0; i < stops.size(); ++i) {
    if (!std::isfinite(stops[i])) refuse("stops[" + std::to_string(i) + "]", number_text(stops[i]), "a finite time");
  }
  if (max_steps < 1) refuse("max_steps", std::to_string(max_steps), "at least 1");
  if (max_steps > 2'000'000'000) refuse("max_steps", std::to_string(max_steps), "at most 2,000,000,000");
  require_thread_count(threads, "options.threads");
  if (cpu_target) require_cpu_target(*cpu_target);
  device.validate();
  if (matrix_precision != MatrixPrecision::f32) {
    const std::string name{to_string(matrix_precision)};
    if (precision == Precision::f64)
      refuse("matrix_precision", name + " with f64 states", "f32 states", "use f64 without it, or precision f32");
    if (device.uses_cpu())
      refuse("matrix_precision", name + " on the CPU", "f32 there: " + name + " takes a GPU", "choose device cuda");
  }
  if (engine != EngineChoice::automatic && device.uses_cpu()) {
    const std::string name{to_string(engine)};
    refuse("engine", name + " on the CPU", "auto there: " + name + " takes a GPU", "choose device cuda");
  }
}

void validate(const Problem& problem, const Options& options) {
  detail::validate(problem, options, detail::SaveRows::full);
}

void detail::validate(const Problem& problem, const Options& options, SaveRows rows) {
  options.validate();
  validate(problem, rows);
  const std::size_t n = options.component_atol.size();
  if (n != 0 && n != problem.rhs->components()) {
    refuse("atol", std::to_string(n) + " numbers",
           "one for all components or one for each of " + std::to_string(problem.rhs->components()));
  }
  if (options.control == StepControl::common && problem.impulses_differ()) {
    refuse("control", "common with impulses of each trajectory's own", "impulses that all trajectories share",
           "use per_trajectory control");
  }
  if (options.control != StepControl::per_trajectory && !problem.resets.empty()) {
    const bool fixed = options.control == StepControl::fixed;
    refuse("control", std::string(fixed ? "fixed" : "common") + " with resets", detail::kStepsOfResets,
           fixed ? "use per_trajectory control, without dt" : "use per_trajectory control");
  }
  if (!options.stops.empty() || !problem.impulses.empty()) {
    Options given = options;
    given.stop_at_knots = false;
    if (const auto passed = passed_jump(problem, given, problem.trajectories())) {
      const bool is_stop = std::ranges::find(options.stops, passed->time) != options.stops.end();
      throw Error(ErrorKind::invalid_argument, {.field = is_stop ? "options.stops" : "problem.impulses",
                                                .found = number_text(passed->time) + " within a step of trajectory " +
                                                         std::to_string(passed->trajectory),
                                                .expected = "times at which fixed steps end",
                                                .remedy = "choose a dt whose steps end there, or leave dt out"});
    }
  }
}

}  // namespace lockstep::ode

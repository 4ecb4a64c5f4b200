#include "lockstep/ode/options.h"

#include <cmath>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/ode/detail/number_text.h"
#include "lockstep/ode/methods.h"

namespace lockstep::ode {
namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& found, const std::string& expected,
                         const std::string& remedy = {}) {
  throw Error(ErrorKind::invalid_argument,
              {.field = "options." + field, .found = found, .expected = expected, .remedy = remedy});
}

void require_positive(const char* field, double value, const char* remedy = "") {
  if (!(value > 0) || !std::isfinite(value))
    refuse(field, detail::number_text(value), "a finite number above 0", remedy);
}

}  // namespace

void Options::validate() const {
  const Tableau& tableau = ode::method(method);
  if (control == StepControl::fixed) {
    if (dt == 0) refuse("dt", "no step size", "a step size above 0 with fixed control", "set dt");
    require_positive("dt", dt, "give the step's size; its sign follows the time span");
  } else {
    if (tableau.error.empty()) {
      refuse("control", "adaptive steps with method " + method, "a method with an error estimate",
             "use fixed control with dt, or a method such as tsit5");
    }
    if (dt != 0) {
      refuse("dt", detail::number_text(dt), "no dt with adaptive steps",
             "use fixed control, or initial_step for the first step");
    }
    for (const auto& [field, value] : {std::pair{"rtol", rtol}, std::pair{"atol", atol}}) {
      if (!(value >= 0) || !std::isfinite(value))
        refuse(field, detail::number_text(value), "a finite tolerance, not negative");
    }
    if (atol == 0) {
      refuse("atol", "0", "a tolerance above 0", "a component that passes through zero needs an absolute tolerance");
    }
    const double finest = precision == Precision::f32 ? 1e-7 : 1e-15;
    if (rtol != 0 && rtol < finest) {
      refuse("rtol", detail::number_text(rtol),
             "at least " + std::string(precision == Precision::f32 ? "1e-7 with f32" : "1e-15 with f64"),
             precision == Precision::f32 ? "use f64 for tighter tolerances" : "loosen it: float64 carries 16 digits");
    }
  }
  if (initial_step) require_positive("initial_step", *initial_step);
  if (max_step) require_positive("max_step", *max_step);
  if (max_steps < 1) refuse("max_steps", std::to_string(max_steps), "at least 1");
  if (max_steps > 2'000'000'000) refuse("max_steps", std::to_string(max_steps), "at most 2,000,000,000");
  if (threads < 0) refuse("threads", std::to_string(threads), "a number of threads, or 0 for all");
  if (threads > 4096) refuse("threads", std::to_string(threads), "at most 4096");
  if (cpu_target) require_cpu_target(*cpu_target);
  device.validate();
}

}  // namespace lockstep::ode

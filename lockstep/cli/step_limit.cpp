#include "lockstep/cli/step_limit.h"

#include "lockstep/cli/text.h"

namespace lockstep::cli {

std::string limit_steps(const std::optional<nn::TimeFeature>& feature, ode::Options& options) {
  if (!feature || options.control == ode::StepControl::fixed || options.max_step) return {};
  options.max_step = feature->width;
  return "no longer than " + rounded_text(feature->width, 6) + ", the shortest that " + feature->table +
         " comes and goes in; max_step replaces it";
}

std::optional<std::string> note_of_long_steps(const std::optional<nn::TimeFeature>& feature,
                                              const ode::Options& options) {
  const bool fixed = options.control == ode::StepControl::fixed;
  const std::optional<double> longest = fixed ? std::optional(options.dt) : options.max_step;
  if (!feature || !longest || *longest <= feature->width) return std::nullopt;
  return "steps of " + rounded_text(*longest, 6) + " may pass over what " + feature->table + " does within " +
         rounded_text(feature->width, 6) + ": take " + (fixed ? "dt" : "max_step") + " = " +
         rounded_text(feature->width, 6) + " or less";
}

}  // namespace lockstep::cli

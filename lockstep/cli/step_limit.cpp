#include "lockstep/cli/step_limit.h"

#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

// "rain" of its second call's node "rain#2.table".
std::string table_of(const nn::TimeFeature& feature) {
  const std::string call = feature.node.substr(0, feature.node.rfind('.'));
  return call.substr(0, call.rfind('#'));
}

}  // namespace

std::string limit_steps(const std::optional<nn::TimeFeature>& feature, ode::Options& options) {
  if (!feature || options.control == ode::StepControl::fixed || options.max_step) return {};
  options.max_step = feature->width;
  return "no longer than " + rounded_text(feature->width, 6) + ", the shortest that " + table_of(*feature) +
         " comes and goes in; max_step replaces it";
}

std::optional<std::string> note_of_long_steps(const std::optional<nn::TimeFeature>& feature,
                                              const ode::Options& options) {
  const bool fixed = options.control == ode::StepControl::fixed;
  const std::optional<double> longest = fixed ? std::optional(options.dt) : options.max_step;
  if (!feature || !longest || *longest <= feature->width) return std::nullopt;
  return "steps of " + rounded_text(*longest, 6) + " may pass over what " + table_of(*feature) + " does within " +
         rounded_text(feature->width, 6) + ": take " + (fixed ? "dt" : "max_step") + " = " +
         rounded_text(feature->width, 6) + " or less";
}

}  // namespace lockstep::cli

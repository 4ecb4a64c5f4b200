#include "lockstep/cli/step_limit.h"

#include "lockstep/cli/text.h"
#include "lockstep/core/resolved_text.h"

namespace lockstep::cli {
namespace {

// Whose jumps and bends in time steps end at.
std::string who_jumps(const ode::Problem& problem) {
  return problem.event || !problem.resets.empty() ? "the right-hand side, an event or a reset" : "the right-hand side";
}

}  // namespace

std::string limit_steps(const std::optional<nn::TimeFeature>& feature, ode::Options& options) {
  if (!feature || options.control == ode::StepControl::fixed || options.stop_at_knots || options.max_step) return {};
  options.max_step = feature->width;
  return "steps are no longer than " + rounded_text(feature->width, 6) + ", the shortest that " + feature->table +
         " comes and goes in; max_step replaces it";
}

std::string text_of_stops(const ode::Problem& problem, const ode::Options& options) {
  if (!problem.impulses.empty()) {  // told of elsewhere
    ode::Problem others = problem;
    others.impulses.clear();
    others.first_impulse.clear();
    return text_of_stops(others, options);
  }
  const std::size_t count = ode::stop_times(problem, options).size();
  if (count == 0) return {};
  return "steps end at " + counted_text(count, "time") +
         (ode::knots_differ(problem, options) ? " of each trajectory's own" : "") + " at which " + who_jumps(problem) +
         " " + (options.stops.empty() ? "jumps or bends" : "jumps or bends, or that stops names") +
         (options.stop_at_knots ? "; stop_at_knots = false passes over those that it tells" : "");
}

std::optional<std::string> note_of_steps(const std::optional<nn::TimeFeature>& feature, const ode::Problem& problem,
                                         const ode::Options& options) {
  constexpr std::size_t kSpans = 64;
  const bool fixed = options.control == ode::StepControl::fixed;
  const bool may_pass = !options.max_step && options.stops.empty();
  const auto fixed_steps = [&] {
    return "steps of " + rounded_text(options.dt, 6) +
           " may pass over what that switches, and keep no order across it; take adaptive steps with max_step or "
           "stops, "
           "or a dt whose steps end at the times that stops names";
  };
  if (may_pass && problem.rhs->hides_knots()) {
    return "the right-hand side compares or looks up a function of the time other than a multiple of it, as in "
           "if(sin(t) > 0.9, ...): " +
           (fixed ? fixed_steps()
                  : "steps may pass over what that switches; give max_step, less than it lasts, or stops");
  }
  if (may_pass && problem.rhs->hides_knots_of_states()) {
    return "the right-hand side compares the time with a component, as in if(t < c, ...) or if(t % T < c, ...), and no "
           "step ends where it comes there: " +
           (fixed ? fixed_steps()
                  : "steps may pass over what that switches; make c a parameter where nothing changes it, else give "
                    "max_step, less than it lasts, or stops");
  }
  if (!fixed && options.stop_at_knots) return std::nullopt;
  const std::optional<double> longest = fixed ? std::optional(options.dt) : options.max_step;
  if (feature && longest && *longest > feature->width) {
    return "steps of " + rounded_text(*longest, 6) + " may pass over what " + feature->table + " does within " +
           rounded_text(feature->width, 6) + ": take " + (fixed ? "dt" : "max_step") + " = " +
           rounded_text(feature->width, 6) + " or less";
  }
  const auto passed = ode::passed_jump(problem, options, kSpans);
  if (!passed) return std::nullopt;
  return who_jumps(problem) + " jumps at " + resolved_text(passed->time, options.dt / 10) +
         ", within a fixed step of " + rounded_text(options.dt, 6) +
         ", which keeps no order across it: take a dt whose steps end there, or adaptive steps";
}

}  // namespace lockstep::cli

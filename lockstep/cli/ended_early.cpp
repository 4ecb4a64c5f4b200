#include "lockstep/cli/ended_early.h"

#include "lockstep/cli/text.h"
#include "lockstep/ode/methods.h"

namespace lockstep::cli {
namespace {

// What decays is no matter of a linearly implicit method's steps.
std::string too_long_for(const std::string& method) {
  if (ode::method(method).is_linearly_implicit()) return " may lead stages out of where it is finite";
  return " may be too long for " + method + " to be stable";
}

}  // namespace

std::string advice_on(ode::Status status, const ode::Options& options, HasResets resets) {
  const bool fixed = options.control == ode::StepControl::fixed;
  switch (status) {
    case ode::Status::step_too_small:
      return std::string("steps fell below the spacing of time itself: ") +
             (resets == HasResets::yes
                  ? "resets may follow each other ever faster there, as the bounces of a ball that "
                    "comes to rest or a switch whose thresholds for on and off leave no gap, or the solution may end"
                  : "the solution may end there");
    case ode::Status::not_finite:
      return std::string("the right-hand side or the state became NaN or infinite") +
             (fixed ? "; steps of " + number_text(options.dt) + too_long_for(options.method) +
                          ": try dt = " + number_text(options.dt / 2) + ", or tolerances in place of dt"
                    : "");
    case ode::Status::too_many_steps:
      return std::string("raise method.max_steps, or ") + (fixed ? "take larger steps" : "loosen the tolerances");
    default:
      return {};
  }
}

std::string ended_early_text(const ode::Summary& summary, std::size_t trajectories, const ode::Options& options,
                             std::optional<ode::Status> but, HasResets resets) {
  std::size_t total = 0;
  std::string each;
  for (const ode::Status status : kEndedEarly) {
    const std::size_t count = summary.count_of[static_cast<std::size_t>(status)];
    if (count == 0 || status == but) continue;
    total += count;
    each += (each.empty() ? "" : ", ") + count_text(count) + " " + std::string(ode::to_string(status)) + " (" +
            advice_on(status, options, resets) + ")";
  }
  if (total == 0) return {};
  return count_text(total) + " of " + counted_text(trajectories, "trajectory") +
         " ended early, with states of NaN from there: " + each;
}

}  // namespace lockstep::cli

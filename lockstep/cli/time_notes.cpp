#include "lockstep/cli/time_notes.h"

#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

// The last stage of a step lies at its end, and sees what begins there; an adaptive step is rejected for it.
bool looks_at_its_end(const std::string& method) { return method != "euler" && method != "midpoint"; }

std::string beyond(const nn::KnownTimes& known, double least, double most) {
  return known.name + " knows times from " + number_text(known.minimum) + " to " + number_text(known.maximum) +
         ", and is asked for " + number_text(least) + " to " + number_text(most) +
         (known.is_table ? ": beyond its ends a table keeps the value there" : ": of others it has learnt nothing");
}

}  // namespace

void add_time_notes(const nn::KnownTimes& known, double least, double most, const ode::Options& options,
                    std::vector<std::string>& notes) {
  if (least < known.minimum || most > known.maximum) notes.push_back(beyond(known, least, most));
  if (known.jumps && options.control == ode::StepControl::fixed && looks_at_its_end(options.method)) {
    notes.push_back(
        known.name + " jumps at its knots, and a fixed step of " + options.method +
        " that ends at one takes the value behind it for its own: take adaptive steps, the method midpoint, "
        "or the interpolation linear or pchip");
  }
}

void add_time_notes(const nn::KnownTimes& known, const ode::Problem& problem, const ode::Options& options,
                    std::vector<std::string>& notes) {
  const auto [least, most] = problem.time_range();
  if (least <= most) add_time_notes(known, least, most, options, notes);
}

}  // namespace lockstep::cli

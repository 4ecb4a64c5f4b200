#include "lockstep/cli/time_notes.h"

#include <algorithm>
#include <cmath>

#include "lockstep/cli/text.h"

namespace lockstep::cli {

void add_time_note(const nn::KnownTimes& known, double least, double most, std::vector<std::string>& notes) {
  if (least >= known.minimum && most <= known.maximum) return;
  notes.push_back(
      known.name + " knows times from " + number_text(known.minimum) + " to " + number_text(known.maximum) +
      ", and is asked for " + number_text(least) + " to " + number_text(most) +
      (known.is_table ? ": beyond its ends a table keeps the value there" : ": of others it has learnt nothing"));
}

// Where float32's spacing at the largest time is more than a thousandth of what a solution is looked at in: the span by
// its save points, of which a thousand are reckoned where there are fewer.
std::optional<std::string> coarse_time_note(const ode::Problem& problem, const std::string& reader) {
  constexpr double kShare = 1e-3, kFewest = 1000;
  for (std::size_t i = 0; i < std::max(problem.start_times.size(), problem.end_times.size()); ++i) {
    const double start = problem.start_time(i), end = problem.end_time(i),
                 far = std::max(std::abs(start), std::abs(end));
    const double spacing = std::ldexp(1.0, std::ilogb(std::max(far, 1e-30)) - 23);
    const double part = std::abs(end - start) / std::max(kFewest, static_cast<double>(problem.save_points()));
    if (part == 0 || spacing <= kShare * part) continue;
    return reader + " reads the time in float32, whose spacing is " + rounded_text(spacing, 2) +
           " at t = " + rounded_text(far, 6) + ", for a span of " + rounded_text(std::abs(end - start), 4) +
           ": take precision f64, or count time from nearer to 0";
  }
  return std::nullopt;
}

}  // namespace lockstep::cli

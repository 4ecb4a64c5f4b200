#include "lockstep/cli/time_notes.h"

#include <algorithm>
#include <cmath>

#include "lockstep/cli/text.h"

namespace lockstep::cli {

void add_time_note(const nn::KnownTimes& known, double least, double most, std::vector<std::string>& notes) {
  const auto& last = known.last_step;
  if (last && most - last->time > last->longest) {
    notes.push_back(known.name + " has its last knot at " + number_text(last->time) + ", and is asked for times to " +
                    number_text(most) + ": a table of steps keeps its last value, for longer than any step of it here");
  }
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

std::optional<std::string> far_stops_note(const ode::Problem& problem, const std::vector<double>& stops) {
  if (stops.empty() || problem.trajectories() == 0) return std::nullopt;
  const auto [first, last] = problem.time_range();
  std::size_t far = 0;
  const double* one = nullptr;
  for (const double& stop : stops) {
    if (stop >= first && stop <= last) continue;
    ++far;
    if (one == nullptr) one = &stop;
  }
  if (far == 0) return std::nullopt;
  return counted_text(far, "stop") + " of " + count_text(stops.size()) + (far == 1 ? " lies" : " lie") +
         " outside the times from " + number_text(first) + " to " + number_text(last) + ", as " + number_text(*one) +
         ": no step ends there";
}

std::optional<std::string> date_note(const std::string& unit) {
  constexpr std::string_view kSince = " since ";
  const std::size_t at = unit.find(kSince);
  if (at == unit.npos) return std::nullopt;
  const std::string word = unit.substr(0, at), date = unit.substr(at + kSince.size());
  if (!date.empty() && date.front() >= '0' && date.front() <= '9') return std::nullopt;
  return "the unit of time \"" + unit +
         "\" has no date behind since: xarray opens such a file with decode_times = False " + "alone; write \"" + word +
         "\", or a date as in \"" + word + " since 2026-01-01\"";
}

}  // namespace lockstep::cli

#include "lockstep/cli/time_notes.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "lockstep/cli/text.h"

namespace lockstep::cli {

void add_time_note(const nn::KnownTimes& known, double least, double most, std::vector<std::string>& notes) {
  if (least >= known.minimum && most <= known.maximum) return;
  notes.push_back(
      known.name + " knows times from " + number_text(known.minimum) + " to " + number_text(known.maximum) +
      ", and is asked for " + number_text(least) + " to " + number_text(most) +
      (known.is_table ? ": beyond its ends a table keeps the value there" : ": of others it has learnt nothing"));
}

void add_time_note(const nn::KnownTimes& known, const ode::Problem& problem, std::vector<std::string>& notes) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (std::size_t i = 0; i < std::max(problem.start_times.size(), problem.end_times.size()); ++i) {
    for (const double time : {problem.start_time(i), problem.end_time(i)}) {
      least = std::min(least, time);
      most = std::max(most, time);
    }
  }
  if (least <= most) add_time_note(known, least, most, notes);
}

}  // namespace lockstep::cli

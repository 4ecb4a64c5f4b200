#include "lockstep/cli/time_notes.h"

#include "lockstep/cli/text.h"

namespace lockstep::cli {

void add_time_note(const nn::KnownTimes& known, double least, double most, std::vector<std::string>& notes) {
  if (least >= known.minimum && most <= known.maximum) return;
  notes.push_back(
      known.name + " knows times from " + number_text(known.minimum) + " to " + number_text(known.maximum) +
      ", and is asked for " + number_text(least) + " to " + number_text(most) +
      (known.is_table ? ": beyond its ends a table keeps the value there" : ": of others it has learnt nothing"));
}

}  // namespace lockstep::cli

// Where the events of two solutions differ: which resets struck, and when.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "lockstep/agreement/ensemble.h"
#include "lockstep/core/run_control.h"
#include "lockstep/ode/event_log.h"

namespace lockstep::agreement {

struct Verdict;

struct EventDifference {
  struct Place {
    std::size_t trajectory = 0;
    std::size_t event = 0;                // its number in the trajectory
    std::optional<ode::ResetEvent> a, b;  // nothing where there are fewer
  };
  std::size_t events_a = 0, events_b = 0;  // of all trajectories
  std::size_t trajectories = 0;            // whose events are not the same to the bit
  std::size_t other_resets = 0;            // of these, with more, fewer or other resets
  double largest_time = 0;                 // how far apart times of the rest are, at most
  std::optional<Place> first;
  // The first of these trajectories that is the same in all other bits: rounding explains nothing there.
  std::optional<std::size_t> unexplained;

  bool same() const { return trajectories == 0; }
};

// Of two solutions with as many trajectories, save points and components; nothing where not both keep events. Throws
// Error (cancelled), or (file) where a file cannot be read.
std::optional<EventDifference> compare_events(const Ensemble& a, const Ensemble& b, const RunControl& control = {});

// "12 and 13 events, others in 1 trajectory; first in trajectory 4: its event 2 is reset 0 at t = 0.5, and none".
std::string text_of(const EventDifference& difference);

// What they add to a verdict on states. Where states part by rounding, so may events: that is said alone.
void judge_events(const Ensemble& a, const Ensemble& b, const RunControl& control, Verdict& verdict);

}  // namespace lockstep::agreement

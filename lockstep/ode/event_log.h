// Which resets struck the trajectories of an ensemble, and when: a neuron's spikes, a ball's bounces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::ode {

// One change of a trajectory's state by a reset.
struct ResetEvent {
  double time = 0;
  std::int32_t reset = 0;  // index in Problem::resets
  bool operator==(const ResetEvent&) const = default;
};

// Of one trajectory, in the order in which they happened: by time, forwards or backwards as its span runs.
using TrajectoryEvents = std::vector<ResetEvent>;

// Those of an ensemble in flat arrays, one trajectory's after the other's.
struct EventLog {
  std::vector<double> times;          // [event]
  std::vector<std::int32_t> resets;   // [event]
  std::vector<std::size_t> first{0};  // [trajectory + 1]: i's are those from first[i] to the next one's

  std::size_t trajectories() const { return first.size() - 1; }
  std::size_t count(std::size_t trajectory) const { return first[trajectory + 1] - first[trajectory]; }
  std::span<const double> times_of(std::size_t trajectory) const {
    return std::span(times).subspan(first[trajectory], count(trajectory));
  }
  std::span<const std::int32_t> resets_of(std::size_t trajectory) const {
    return std::span(resets).subspan(first[trajectory], count(trajectory));
  }
  // Those of the next trajectory.
  void add(std::span<const ResetEvent> events) {
    for (const ResetEvent& event : events) {
      times.push_back(event.time);
      resets.push_back(event.reset);
    }
    first.push_back(times.size());
  }
  // Those of the next trajectories.
  void append(const EventLog& more) {
    for (std::size_t i = 0; i < more.trajectories(); ++i) first.push_back(times.size() + more.first[i + 1]);
    times.insert(times.end(), more.times.begin(), more.times.end());
    resets.insert(resets.end(), more.resets.begin(), more.resets.end());
  }
  bool operator==(const EventLog&) const = default;
};

}  // namespace lockstep::ode

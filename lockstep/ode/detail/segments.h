// Trajectories of data cut into segments of equally many intervals: the shape of multiple shooting.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "lockstep/ode/detail/data_rows.h"
#include "lockstep/ode/fit.h"

namespace lockstep::ode::detail {

// Of one trajectory; points are counted from its start.
struct Segments {
  Segments(const FitPhase& phase, std::size_t data_points)
      : points(data_points),
        used(phase.horizon == 0 ? points : std::min(points, std::max<std::size_t>(phase.horizon, 2))),
        length(phase.segment == 0 ? used - 1 : std::min(phase.segment, used - 1)),
        count((used - 2) / length + 1) {}

  std::size_t points;  // of the data
  std::size_t used;    // of them, the first
  std::size_t length;  // intervals of a segment: the more points, the more
  std::size_t count;   // segments of a trajectory

  // The point where a segment begins; the last one reaches back where the intervals do not divide, so that all take
  // equally many steps of one size. What it has in common with the segment before it counts once, there.
  std::size_t first(std::size_t segment) const { return std::min(segment * length, used - 1 - length); }
  // The first point that no segment before it holds, its own start not counted.
  std::size_t first_new(std::size_t segment) const { return segment * length + 1; }
};

// Of all trajectories, counted through.
class SegmentList {
 public:
  SegmentList(const FitPhase& phase, const DataRows& rows) {
    for (std::size_t i = 0; i < rows.trajectories(); ++i) {
      const Segments& of = of_.emplace_back(phase, rows.points(i));
      for (std::size_t segment = 0; segment < of.count; ++segment) all_.push_back({i, segment});
    }
  }
  struct Place {
    std::size_t trajectory, segment;
  };
  std::size_t size() const { return all_.size(); }
  const Place& operator[](std::size_t i) const { return all_[i]; }
  const Segments& of(std::size_t trajectory) const { return of_[trajectory]; }

 private:
  std::vector<Segments> of_;
  std::vector<Place> all_;
};

// A problem whose trajectories are the segments, from `starts` [trajectory][point][component] at their first points,
// saved at the points after them: in rows of `width`, filled up with infinities behind shorter segments.
inline Problem segment_problem(const Rhs& rhs, const TrajectoryData& data, std::span<const double> starts,
                               const DataRows& rows, const SegmentList& segments, std::size_t width) {
  const std::size_t n = rhs->components(), m = rhs->parameters();
  Problem problem;
  problem.rhs = rhs;
  problem.start_times.clear();
  problem.save_times_per_trajectory = true;
  const bool shared_parameters = data.parameters.size() == m;
  if (shared_parameters) problem.parameters = data.parameters;
  if (data.impulses_differ()) {
    problem.first_impulse.push_back(0);
  } else {
    problem.impulses = data.impulses;
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto [trajectory, segment] = segments[i];
    const std::size_t length = segments.of(trajectory).length, first = segments.of(trajectory).first(segment);
    const double* const times = rows.times(data, trajectory) + first;
    const double* const start = starts.data() + (rows.first(trajectory) + first) * n;
    problem.start_times.push_back(times[0]);
    problem.end_times.push_back(times[length]);
    problem.initial_states.insert(problem.initial_states.end(), start, start + n);
    problem.save_times.insert(problem.save_times.end(), times + 1, times + length + 1);
    const double never = std::numeric_limits<double>::infinity();
    problem.save_times.resize((i + 1) * width, times[length] < times[0] ? -never : never);
    if (!shared_parameters) {
      const double* p = data.parameters.data() + trajectory * m;
      problem.parameters.insert(problem.parameters.end(), p, p + m);
    }
    if (!data.impulses_differ()) continue;
    // Which of them are a segment's the engine knows best; those farther away than it is long are none of it.
    const double around = times[length] - times[0];
    for (const Impulse& impulse : data.impulses_of(trajectory)) {
      if (impulse.time < times[0] - around || impulse.time > times[length] + around) continue;
      problem.impulses.push_back(impulse);
    }
    problem.first_impulse.push_back(problem.impulses.size());
  }
  return problem;
}

}  // namespace lockstep::ode::detail

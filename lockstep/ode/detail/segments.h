// Trajectories of data cut into segments of equally many intervals: the shape of multiple shooting.
#pragma once

#include <algorithm>
#include <cstddef>

#include "lockstep/ode/fit.h"

namespace lockstep::ode::detail {

// Of every trajectory alike; points are counted from its start.
struct Segments {
  Segments(const FitPhase& phase, std::size_t data_points)
      : points(data_points),
        used(phase.horizon == 0 ? points : std::min(points, std::max<std::size_t>(phase.horizon, 2))),
        length(phase.segment == 0 ? used - 1 : std::min(phase.segment, used - 1)),
        count((used - 2) / length + 1) {}

  std::size_t points;  // of the data
  std::size_t used;    // of them, the first
  std::size_t length;  // intervals of a segment
  std::size_t count;   // segments of a trajectory

  // The point where a segment begins; the last one reaches back where the intervals do not divide.
  std::size_t first(std::size_t segment) const { return std::min(segment * length, used - 1 - length); }
  // The first point that no segment before it holds, its own start not counted.
  std::size_t first_new(std::size_t segment) const { return segment * length + 1; }
};

// A problem whose trajectories are the segments, from the data at their starts, saved at the points after them.
inline Problem segment_problem(const Rhs& rhs, const TrajectoryData& data, const Segments& segments) {
  const std::size_t n = rhs->components(), m = rhs->parameters(), points = segments.points;
  Problem problem;
  problem.rhs = rhs;
  problem.start_times.clear();
  problem.save_times_per_trajectory = true;
  const bool shared_parameters = data.parameters.size() == m;
  if (shared_parameters) problem.parameters = data.parameters;
  for (std::size_t trajectory = 0; trajectory < data.trajectories; ++trajectory) {
    const double* times = data.times.data() + (data.shares_times(n) ? 0 : trajectory * points);
    const double* states = data.states.data() + trajectory * points * n;
    for (std::size_t segment = 0; segment < segments.count; ++segment) {
      const std::size_t first = segments.first(segment), end = first + segments.length;
      problem.start_times.push_back(times[first]);
      problem.end_times.push_back(times[end]);
      problem.initial_states.insert(problem.initial_states.end(), states + first * n, states + (first + 1) * n);
      problem.save_times.insert(problem.save_times.end(), times + first + 1, times + end + 1);
      if (!shared_parameters) {
        const double* p = data.parameters.data() + trajectory * m;
        problem.parameters.insert(problem.parameters.end(), p, p + m);
      }
    }
  }
  return problem;
}

}  // namespace lockstep::ode::detail

// Ensembles whose states change at once, for comparing engines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "lockstep/ode/problem.h"

namespace lockstep::ode::cuda {

// The ensemble with spans that all run forward.
inline Problem forward(Problem problem) {
  const auto saves = static_cast<std::ptrdiff_t>(problem.save_points());
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    if (problem.end_times[i] >= problem.start_times[i]) continue;
    std::swap(problem.start_times[i], problem.end_times[i]);
    const auto row = problem.save_times.begin() + static_cast<std::ptrdiff_t>(i) * saves;
    std::reverse(row, row + saves);
  }
  return problem;
}

// Two at one time, of two components or more; those that begin at 0.25 begin behind one, some end at 0.25 or 0.5.
inline Problem with_impulses(Problem problem) {
  problem = forward(std::move(problem));
  problem.impulses = {{0.5, 0, 0.2}, {0.25, 1, -0.1, 0.75}, {0.25, 1, 0.3}, {0.1, 0, 0.125}, {0.28, 1, 0.1}, {9, 0, 1}};
  return problem;
}

// Of each trajectory: none, or up to three at times of its own.
inline Problem with_own_impulses(Problem problem) {
  problem = forward(std::move(problem));
  problem.first_impulse = {0};
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    for (std::size_t k = 0; k < i % 4; ++k) {
      const double time = problem.start_times[i] + 0.03 * static_cast<double>(k * (i % 5));
      problem.impulses.push_back({time, k % 2, 0.1 + 0.01 * static_cast<double>(i), k == 1 ? 0.75 : 1});
    }
    problem.first_impulse.push_back(problem.impulses.size());
  }
  return problem;
}

}  // namespace lockstep::ode::cuda

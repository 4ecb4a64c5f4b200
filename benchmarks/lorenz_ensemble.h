// The ensemble of Lorenz systems that the benchmarks of solves share.
#pragma once

#include <cstddef>

#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep {

// rho from 0 to 21, u0 = (1, 0, 0), t from 0 to 1, end state only.
inline ode::Problem lorenz_ensemble(std::size_t size) {
  ode::Problem problem;
  problem.rhs = ode::system("lorenz");
  problem.end_times = {1};
  for (std::size_t i = 0; i < size; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), {1, 0, 0});
    const double share = size == 1 ? 0 : static_cast<double>(i) / static_cast<double>(size - 1);
    problem.parameters.insert(problem.parameters.end(), {10, 21 * share, 8.0 / 3});
  }
  return problem;
}

}  // namespace lockstep

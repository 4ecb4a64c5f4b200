// What gpu_bench holds results of a device to: a few trajectories by the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "lockstep/ode/solve.h"

namespace lockstep::benchmarks {

inline ode::Options far_stricter() {
  ode::Options options;
  options.method = "dop853";
  options.rtol = options.atol = 1e-13;
  options.max_steps = 1'000'000;
  return options;
}

// Evenly spaced trajectories, and their end states by the CPU in float64.
struct Reference {
  std::vector<std::size_t> rows;
  std::vector<double> end_states;  // [row][component]

  explicit Reference(const ode::Problem& problem, ode::Options options = far_stricter()) {
    const std::size_t size = problem.trajectories(), count = std::min<std::size_t>(size, 64);
    for (std::size_t i = 0; i < count; ++i) rows.push_back(count == 1 ? 0 : i * (size - 1) / (count - 1));
    options.precision = Precision::f64;
    options.device = ode::DeviceChoice::cpu();
    const ode::Solution solution = ode::solve(problem.selection(rows), options);
    end_states.assign(solution.end_states<double>().begin(), solution.end_states<double>().end());
  }
  template <class T>
  double error(const T* of_all, std::size_t components) const {
    double worst = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t c = 0; c < components; ++c) {
        const double off = std::fabs(double(of_all[rows[i] * components + c]) - end_states[i * components + c]);
        worst = std::isnan(worst) || off <= worst ? worst : off;
      }
    }
    return worst;
  }
  // Of the rows, those whose end states are not what the CPU makes of the same problem.
  template <class T>
  std::size_t other_bits(const ode::Problem& problem, ode::Options options, const T* of_all) const {
    options.device = ode::DeviceChoice::cpu();
    const ode::Solution solution = ode::solve(problem.selection(rows), options);
    const std::size_t n = problem.rhs->components();
    std::size_t others = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
      others += std::memcmp(of_all + rows[i] * n, solution.end_states<T>().data() + i * n, n * sizeof(T)) != 0;
    return others;
  }
};

}  // namespace lockstep::benchmarks

// Problems solved by the CPU's engine and by the kernels, on a device that is the host or on a card.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/cuda/testing/uneven_ensemble.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode::cuda {

// Both engines on one problem; the kernel that ran.
inline std::string expect_same_on_both(const Problem& problem, Options options) {
  options.device = DeviceChoice::cpu();
  HostDevice device;
  Summary summary;
  const Solution other = solve_on(device, problem, options, std::size_t{1} << 28, &summary, wanted_card());
  expect_same(solve(problem, options), other);
  const std::string text = summary.kernel.substr(0, summary.kernel.find(','));
  return text.substr(text.find(' ') + 1);  // "cuda NAME, ..."
}

inline Problem uneven(Rhs rhs, const std::vector<double>& u0, const std::vector<double>& parameters, std::size_t count,
                      double span) {
  return uneven_ensemble(std::move(rhs), u0, parameters, count, span, {0, 0.1, 0.105, 0.5, 1});
}

inline Problem lorenz(std::size_t count) { return uneven(system("lorenz"), {1, 2, 20}, {10, 28, 8.0 / 3}, count, 0.3); }

// A method of second order would take a hundred times the steps of the others at 1e-8.
inline Options set_for(std::string_view name, Precision precision) {
  const bool coarse = precision == Precision::f32 || method(name).order < 3;
  return adaptive_or_fixed(name, precision, coarse ? 1e-5 : 1e-8, 0.0123);
}

inline Options fixed(Options options, double dt) {
  options.control = StepControl::fixed;
  options.dt = dt;
  return options;
}

}  // namespace lockstep::ode::cuda

// Problems for comparing engines.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode::cuda {

// Trajectories whose parameters, starts, spans (some of them backwards) and save points differ: those lie at `shares`
// of each span, ascending from 0 to 1.
inline Problem uneven_ensemble(Rhs rhs, const std::vector<double>& u0, const std::vector<double>& parameters,
                               std::size_t count, double span, std::initializer_list<double> shares) {
  Problem problem;
  problem.rhs = std::move(rhs);
  problem.start_times.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i % 17) / 17;
    for (const double u : u0) problem.initial_states.push_back(u + 0.1 * x);
    for (const double p : parameters) problem.parameters.push_back(p * (1 + 0.1 * x));
    const double start = 0.25 * static_cast<double>(i % 3);
    const double length = (i % 7 == 6 ? -0.3 : 1.0) * span * (i % 5 == 4 ? 3 : 1);
    problem.start_times.push_back(start);
    problem.end_times.push_back(start + length);
    for (const double share : shares)
      problem.save_times.push_back(share == 1 ? start + length : start + length * share);
  }
  problem.save_times_per_trajectory = true;
  return problem;
}

// One thread; a method without an error estimate takes steps of dt.
inline Options adaptive_or_fixed(std::string_view name, Precision precision, double tolerance, double dt) {
  Options options;
  options.method = name;
  options.precision = precision;
  options.threads = 1;
  options.rtol = options.atol = tolerance;
  if (method(name).error.empty()) {
    options.control = StepControl::fixed;
    options.dt = dt;
  }
  return options;
}

// A net of the state, parameters and time whose hidden units jump at times that the options' stops are.
inline constexpr double kJumps[] = {0.1, 0.25, 0.28, 0.5};
inline Mlp jumping_net(std::size_t components, std::size_t width) {
  Mlp mlp = mlp::random_mlp({components + 1, width, components}, {ActivationKind::tanh}, 23);
  DenseLayer& hidden = mlp.layers[0];
  for (std::size_t unit = 0; unit < width; ++unit) {
    const double jump = kJumps[unit % 4];
    hidden.weights[unit * (components + 1) + components] = 1e9;
    hidden.bias[unit] = -1e9 * jump;
  }
  return mlp;
}
inline Options with_stops(Options options) {
  options.stops = {0.5, 0.1, 0.25, 0.28};
  return options;
}
// Steps of which one ends at each stop.
inline Options with_fixed_stops(Options options) {
  options.control = StepControl::fixed;
  options.dt = 0.01;
  return with_stops(std::move(options));
}

}  // namespace lockstep::ode::cuda

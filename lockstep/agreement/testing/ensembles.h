// The ensembles that the verdict is tried on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/agreement/ensemble.h"
#include "lockstep/core/random.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::agreement::testing {

inline constexpr double kStep = 0.01;

// States scattered over the Lorenz attractor's extent, saved every 0.5 until `end`.
inline ode::Problem lorenz(std::size_t trajectories, double end, std::uint64_t seed = 1) {
  ode::Problem problem;
  problem.rhs = ode::system("lorenz");
  problem.parameters = {10, 28, 8.0 / 3};
  problem.end_times = {end};
  for (int k = 0; 0.5 * k <= end; ++k) problem.save_times.push_back(0.5 * k);
  const Random random(seed);
  for (std::size_t i = 0; i < trajectories; ++i) {
    problem.initial_states.push_back(7 * random.normal(i, 0));
    problem.initial_states.push_back(7 * random.normal(i, 1));
    problem.initial_states.push_back(25 + 5 * random.normal(i, 2));
  }
  return problem;
}

// Prey and predators on closed orbits: differences grow in proportion to time.
inline ode::Problem lotka_volterra(std::size_t trajectories, double end, std::uint64_t seed = 1) {
  ode::Problem problem;
  problem.rhs = ode::system("lotka_volterra");
  problem.parameters = {1.5, 1, 3, 1};
  problem.end_times = {end};
  for (int k = 0; 0.5 * k <= end; ++k) problem.save_times.push_back(0.5 * k);
  const Random random(seed);
  for (std::size_t i = 0; i < trajectories; ++i) {
    problem.initial_states.push_back(1 + 2 * random.uniform(i, 0));
    problem.initial_states.push_back(1 + random.uniform(i, 1));
  }
  return problem;
}

inline ode::Options fixed_rk4(Precision precision = Precision::f64) {
  ode::Options options;
  options.method = "rk4";
  options.control = ode::StepControl::fixed;
  options.dt = kStep;
  options.precision = precision;
  options.threads = 1;  // small ensembles, beside other tests
  return options;
}

inline ode::Options adaptive(Precision precision, double tolerance, const char* method = "tsit5") {
  ode::Options options;
  options.method = method;
  options.rtol = options.atol = tolerance;
  options.precision = precision;
  options.threads = 1;  // small ensembles, beside other tests
  return options;
}

// As a file states how it was solved.
inline std::vector<std::pair<std::string, std::string>> stated(const ode::Options& options) {
  if (options.control == ode::StepControl::fixed) return {{"method", options.method}, {"dt", number_text(options.dt)}};
  return {{"method", options.method}, {"rtol", number_text(options.rtol)}, {"atol", number_text(options.atol)}};
}

// One that another program might have made with these options, and says so.
inline HeldEnsemble stated_port(const ode::Problem& of, const ode::Problem& solved, const ode::Options& options) {
  Numbers numbers = numbers_of(ode::solve(solved, options));
  numbers.name = "port";
  numbers.provenance = stated(options);
  return {of, std::move(numbers)};
}

// Our own solution, with its certificate.
inline HeldEnsemble solved(const ode::Problem& problem, const ode::Options& options, std::uint64_t seed = 0) {
  Numbers numbers = numbers_of(ode::solve(problem, options));
  numbers.name = "ours";
  CertificateOptions which;
  which.seed = seed;
  numbers.certificate = make_certificate(problem, options, which);
  if (options.control != ode::StepControl::fixed) {
    numbers.provenance = stated(options);
  }
  return {problem, std::move(numbers)};
}

}  // namespace lockstep::agreement::testing

// Ports that evaluate a net as tensor cores do, for the verdict to be tried on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "lockstep/agreement/ensemble.h"
#include "lockstep/agreement/testing/ensembles.h"
#include "lockstep/ode/testing/rounded_net.h"

namespace lockstep::agreement::testing {

inline constexpr MatrixPrecision kModes[] = {MatrixPrecision::tf32, MatrixPrecision::bf16, MatrixPrecision::fp16};

// Three components, two hidden layers of 16; weights, about as large as training leaves them, from the seed.
inline Mlp random_net(std::uint64_t seed, Activation activation = {ActivationKind::tanh}) {
  const Random random(seed, 11);
  Mlp mlp;
  std::uint32_t draw = 0;
  for (const auto& [inputs, outputs] : {std::pair<std::size_t, std::size_t>{3, 16}, {16, 16}, {16, 3}}) {
    DenseLayer layer{.inputs = inputs, .outputs = outputs};
    const double size = 1.5 / std::sqrt(static_cast<double>(inputs));
    for (std::size_t i = 0; i < inputs * outputs; ++i) layer.weights.push_back(size * random.normal(0, draw++));
    for (std::size_t i = 0; i < outputs; ++i) layer.bias.push_back(0.3 * random.normal(0, draw++));
    if (mlp.layers.size() < 2) layer.activation = activation;
    mlp.layers.push_back(std::move(layer));
  }
  return mlp;
}

inline ode::Problem problem_of(const Mlp& mlp, std::size_t trajectories, std::uint64_t seed) {
  ode::Problem problem;
  problem.rhs = ode::net(mlp);
  problem.end_times = {1};
  problem.save_times = {0, 0.02, 0.05, 0.1, 0.2, 0.5, 1};
  const Random random(seed, 12);
  for (std::size_t i = 0; i < 3 * trajectories; ++i) problem.initial_states.push_back(random.normal(i, 0));
  return problem;
}

// What a solver gives that rounds the net's factors, and says so, or says something else.
inline Numbers solve_rounded(ode::Problem problem, const Mlp& mlp, MatrixPrecision mode, const ode::Options& options,
                             MatrixPrecision said) {
  using lockstep::cuda::Bf16, lockstep::cuda::Fp16, lockstep::cuda::Tf32;
  problem.rhs = mode == MatrixPrecision::bf16   ? ode::testing::rounded_net<Bf16>(mlp)
                : mode == MatrixPrecision::fp16 ? ode::testing::rounded_net<Fp16>(mlp)
                                                : ode::testing::rounded_net<Tf32>(mlp);
  Numbers numbers = numbers_of(ode::solve(problem, options));
  numbers.provenance = {{"matrix_precision", std::string(to_string(said))}};
  return numbers;
}
inline Numbers solve_rounded(const ode::Problem& problem, const Mlp& mlp, MatrixPrecision mode,
                             const ode::Options& options) {
  return solve_rounded(problem, mlp, mode, options, mode);
}

}  // namespace lockstep::agreement::testing

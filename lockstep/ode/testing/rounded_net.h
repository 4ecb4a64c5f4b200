// A net as tensor cores evaluate it where they add as the simulator does, for the CPU engine.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "lockstep/kernels/cuda/testing/tensor_reference.h"
#include "lockstep/ode/testing/plain_function.h"

namespace lockstep::ode::testing {

// Weights and the inputs of each layer rounded to the format (lockstep::cuda::Bf16, ...).
template <class Format>
Rhs rounded_net(const Mlp& mlp) {
  const std::size_t n = mlp.outputs();
  return plain_function(n, 0, [mlp, n](double, auto u, auto, auto out) {
    std::vector<float> x;
    for (std::size_t c = 0; c < n; ++c) x.push_back(static_cast<float>(u(c)));
    const std::vector<float> y = lockstep::cuda::testing::tensor_reference<Format>(mlp, std::move(x));
    for (std::size_t c = 0; c < n; ++c) out(c) = y[c];
  });
}

}  // namespace lockstep::ode::testing

// For programs that compile a kernel whose threads share weights as they like (counted, or watched for races): it takes
// the place of host_runtime.cpp's, in the simulator of blocks.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string_view>

#include "lockstep/kernels/cuda/testing/block_simulator.h"
#include "lockstep/ode/cuda/advance.cuh"
#include "lockstep/ode/cuda/testing/host_runtime.h"
#include "lockstep/ode/methods/tsit5.h"

namespace lockstep::ode::cuda {

inline void run_net3_tanh_tsit5_f32(std::string_view name, const void* arguments) {
  using Body =
      KernelBody<float, CompiledScheme<Tsit5>, FoldedNetDerivative<3, ActivationKind::tanh, float>, /*threads=*/64>;
  ASSERT_EQ(name, "net3_tanh_tsit5_f32");
  const auto& launch = *static_cast<const Launch<float>*>(arguments);
  const SharedWeights shared = Body::Derivative::shared_weights(launch);
  lockstep::cuda::testing::simulate(
      {.blocks = 1, .threads = Body::kThreads, .shared_bytes = static_cast<std::size_t>(shared.count) * sizeof(float)},
      [&](unsigned char* bytes) { advance<Body>(launch, bytes); });
}

}  // namespace lockstep::ode::cuda

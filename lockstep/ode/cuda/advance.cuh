// A body as a kernel runs it: weights to shared memory, then trajectory after trajectory from a counter.
#pragma once

#include "lockstep/kernels/cuda/device_words.cuh"
#include "lockstep/ode/cuda/kernel_body.h"

namespace lockstep::ode::cuda {

// One block's work. `bytes`: shared memory for the weights that the derivative wants there.
template <class Body>
__device__ __forceinline__ void advance(const Launch<typename Body::T>& launch, unsigned char* bytes) {
  using T = typename Body::T;
  T* const shared = reinterpret_cast<T*>(bytes);
  const SharedWeights wanted = Body::Derivative::shared_weights(launch);
  for (std::int64_t i = threadIdx.x; i < wanted.count; i += blockDim.x) shared[i] = launch.weights[wanted.first + i];
  __syncthreads();
  Body::run(launch, shared, [&] { return static_cast<std::int64_t>(atomicAdd(launch.counter, 1ull)); });
}

}  // namespace lockstep::ode::cuda

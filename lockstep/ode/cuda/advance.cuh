// A body as a kernel runs it: weights to shared memory, then trajectory after trajectory from a counter.
#pragma once

#include "lockstep/kernels/cuda/device_words.cuh"
#include "lockstep/ode/cuda/kernel_body.h"

namespace lockstep::ode::cuda {

// Threads of a warp that begin a trajectory do so together: a beginning costs the whole warp one or two evaluations and
// a step's worth of arithmetic, for one thread as for all. So those whose trajectory ended wait until they are
// kIdleThreads; with 4 a warp loses less than 6 % to waiting, and ensembles in random order, which end at different
// steps, gain 15 to 27 % (Lorenz by tsit5, rtol 1e-8 to 1e-3; by steps counted on a CPU and this kernel's instructions).
inline constexpr int kIdleThreads = 4;

class WarpQueue {
 public:
  __device__ WarpQueue(unsigned long long* counter, std::int64_t count) : counter_(counter), count_(count) {}

  // As KernelBody::run asks; all threads of the warp together.
  __device__ __forceinline__ std::int64_t operator()(bool busy) {
    constexpr unsigned kAll = 0xffffffff;
    const unsigned idle = __ballot_sync(kAll, !busy);
    if (!more_) return idle == kAll ? kNoneAnyMore : kNoneNow;
    const int wanted = __popc(idle);
    if (wanted < kIdleThreads) return kNoneNow;
    const unsigned lane = threadIdx.x % 32;
    unsigned long long first = 0;
    if (lane == 0) first = atomicAdd(counter_, static_cast<unsigned long long>(wanted));
    const auto begin = static_cast<std::int64_t>(__shfl_sync(kAll, first, 0));
    more_ = begin + wanted < count_;
    const std::int64_t mine = begin + __popc(idle & ((1u << lane) - 1));
    return !busy && mine < count_ ? mine : kNoneNow;
  }

 private:
  unsigned long long* counter_;
  std::int64_t count_;
  bool more_ = true;  // trajectories that nobody has taken, as far as this warp knows
};

// One block's work. `bytes`: shared memory for the weights that the derivative wants there.
template <class Body>
__device__ __forceinline__ void advance(const Launch<typename Body::T>& launch, unsigned char* bytes) {
  using T = typename Body::T;
  T* const shared = reinterpret_cast<T*>(bytes);
  const SharedWeights wanted = Body::Derivative::shared_weights(launch);
  for (std::int64_t i = threadIdx.x; i < wanted.count; i += blockDim.x) shared[i] = launch.weights[wanted.first + i];
  __syncthreads();
  Body::run(launch, shared, WarpQueue(launch.counter, launch.ensemble.count));
}

}  // namespace lockstep::ode::cuda

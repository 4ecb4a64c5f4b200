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

// As long as there are more trajectories for each thread than this, a warp takes 32 at once and keeps what it does not
// begin: all warps ask one counter, which answers about one a clock, hundreds of clocks later. Near the end nobody
// keeps what another could begin.
inline constexpr std::int64_t kFarFromTheEnd = 2;

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
    const int rank = __popc(idle & ((1u << lane) - 1));
    std::int64_t mine = next_ + rank;
    if (wanted <= kept_) {
      next_ += wanted;
      kept_ -= wanted;
    } else {
      const int lacking = wanted - kept_;
      const int taken = count_ - next_ > kFarFromTheEnd * std::int64_t{gridDim.x} * blockDim.x ? 32 : lacking;
      unsigned long long first = 0;
      if (lane == 0) first = atomicAdd(counter_, static_cast<unsigned long long>(taken));
      next_ = static_cast<std::int64_t>(__shfl_sync(kAll, first, 0));
      if (rank >= kept_) mine = next_ + rank - kept_;
      next_ += lacking;
      kept_ = taken - lacking;
    }
    more_ = next_ < count_;
    return !busy && mine < count_ ? mine : kNoneNow;
  }

 private:
  unsigned long long* counter_;
  std::int64_t count_;
  // Taken, but not begun.
  std::int64_t next_ = 0;
  int kept_ = 0;
  bool more_ = true;  // trajectories that nobody has begun, as far as this warp knows
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

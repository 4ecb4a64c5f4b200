// The words of CUDA C++ that our kernels use, for a host compiler: included in place of the CUDA headers where kernels
// run in the simulator. Whatever is missing here is not used by any kernel.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "lockstep/kernels/cuda/testing/block_simulator.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

#define threadIdx (::lockstep::cuda::testing::thread_index)
#define blockIdx (::lockstep::cuda::testing::block_index)
#define blockDim (::lockstep::cuda::testing::block_extent)
#define gridDim (::lockstep::cuda::testing::grid_extent)

#define LOCKSTEP_TEXT_OF(x) #x
#define LOCKSTEP_LINE_TEXT(x) LOCKSTEP_TEXT_OF(x)
#define LOCKSTEP_HERE __FILE__ ":" LOCKSTEP_LINE_TEXT(__LINE__)
#define __syncthreads() ::lockstep::cuda::testing::wait_for_block(LOCKSTEP_HERE)
#define __syncthreads_count(value) ::lockstep::cuda::testing::count_in_block(value, LOCKSTEP_HERE)
#define __syncthreads_or(value) (::lockstep::cuda::testing::count_in_block(value, LOCKSTEP_HERE) != 0)
#define __syncwarp() ::lockstep::cuda::testing::wait_for_warp(0xffffffffu, LOCKSTEP_HERE)
#define __shfl_sync(mask, value, source) ::lockstep::cuda::testing::shuffle(mask, value, (source)&31u, LOCKSTEP_HERE)
#define __shfl_xor_sync(mask, value, distance)                                                                  \
  ::lockstep::cuda::testing::shuffle(mask, value, (::lockstep::cuda::testing::lane_index() ^ (distance)) & 31u, \
                                     LOCKSTEP_HERE)
#define __ballot_sync(mask, value) ::lockstep::cuda::testing::ballot_in_warp(mask, value, LOCKSTEP_HERE)
#define __popc(bits) std::popcount(static_cast<unsigned>(bits))

namespace lockstep::cuda::testing {

template <class T>
T shuffle(unsigned mask, T value, unsigned source, const char* where) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange_in_warp(mask, bits, source, where);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace lockstep::cuda::testing

// An atomic operation in earnest, so that ThreadSanitizer knows it for one.
template <class T>
T atomicAdd(T* place, T value) {
  return __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
}
template <class T>
T atomicExch(T* place, T value) {
  return __atomic_exchange_n(place, value, __ATOMIC_ACQ_REL);
}
template <class T>
T atomicCAS(T* place, T expected, T value) {
  __atomic_compare_exchange_n(place, &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
// In order with the operation beside it, which ThreadSanitizer knows; fences it does not.
inline void __threadfence() {}

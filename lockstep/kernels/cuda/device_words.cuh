// What kernels need beyond CUDA C++: copies to shared memory in the background, each PTX instruction behind one
// function; and where a host compiler reads a kernel, the words of CUDA themselves (tests only).
#pragma once

#include "lockstep/kernels/cuda/unroll.h"
#ifndef __CUDACC__
#include "lockstep/kernels/cuda/testing/cuda_words.h"
#endif

namespace lockstep::cuda {

// 16 bytes, both ends aligned to 16. Groups end in order; waiting leaves the latest `open` of them under way, and makes
// visible to the waiting thread alone what arrived: others need a barrier.
#ifdef __CUDACC__
__device__ __forceinline__ void copy_16_bytes(void* shared, const void* global) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}
__device__ __forceinline__ void end_copy_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int open>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(open) : "memory");
}
#else
inline void copy_16_bytes(void* shared, const void* global) { testing::copy_later(shared, global, 16); }
inline void end_copy_group() { testing::end_copy_group(); }
template <int open>
void wait_for_copies() {
  testing::wait_for_copies(open);
}
#endif

}  // namespace lockstep::cuda

// How much of a multiprocessor's memory a kernel's blocks have as shared memory, for the CUDA component's host code.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>

namespace lockstep::cuda {

// How many blocks of `threads` threads and so many bytes of dynamic shared memory a multiprocessor of `device` holds,
// and room for them: the driver's own division between that and the cache may leave room for fewer. What another caller
// wanted of the kernel stays, and no more than is wanted is taken from the cache.
inline cudaError_t make_room(const void* kernel, int device, int threads, std::size_t bytes, int& blocks) {
  constexpr std::size_t kReserved = 1024;  // bytes a block that the driver takes
  cudaFuncAttributes attributes{};
  int most = 0;
  cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, bytes);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, kernel);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  if (error != cudaSuccess || blocks < 1 || most < 1) return error;
  const std::size_t wanted = static_cast<std::size_t>(blocks) * (bytes + attributes.sharedSizeBytes + kReserved);
  const auto all = static_cast<std::size_t>(most);
  const int percent = static_cast<int>(std::min<std::size_t>((wanted * 100 + all - 1) / all, 100));
  if (percent <= attributes.preferredShmemCarveout) return error;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, percent);
}

}  // namespace lockstep::cuda

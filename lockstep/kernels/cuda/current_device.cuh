// The calling thread's current device, for the CUDA component: a caller's own choice is left as it was.
#pragma once

#include <cuda_runtime_api.h>

namespace lockstep::cuda {

// Makes a device current, and the one before it again.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    error = cudaGetDevice(&before_);
    if (error != cudaSuccess || device == before_) return;
    error = cudaSetDevice(device);
    changed_ = error == cudaSuccess;
  }
  ~CurrentDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  cudaError_t error = cudaSuccess;

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace lockstep::cuda

// What plans on a device share: memory there that is given back with them, and what they say when something is missing.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/kernels/cuda/evaluation_runtime.h"

namespace lockstep::cuda {

[[noreturn]] inline void refuse_device(int device, std::string found, std::string remedy) {
  throw Error(ErrorKind::unsupported, {.field = "cuda:" + std::to_string(device),
                                       .found = std::move(found),
                                       .expected = "a device that evaluates the net",
                                       .remedy = std::move(remedy)});
}

// The component, and how many multiprocessors the device has. Throws Error (unsupported) naming what is missing.
inline EvaluationRuntime& require_device(int device, int& multiprocessors) {
  std::string failure;
  EvaluationRuntime* const runtime = load_evaluation_runtime(failure);
  if (runtime == nullptr) refuse_device(device, failure, "install the CUDA component, or evaluate on the CPU");
  failure = runtime->count_multiprocessors(device, multiprocessors);
  if (!failure.empty()) refuse_device(device, failure, "check the devices with nvidia-smi, or evaluate on the CPU");
  return *runtime;
}

class DeviceMemory {
 public:
  DeviceMemory(EvaluationRuntime& runtime, int device) : runtime_(runtime), device_(device) {}
  ~DeviceMemory() {
    if (data_ != nullptr) runtime_.release(device_, data_);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Once, either of them; null for no numbers.
  template <class T>
  T* upload(const std::vector<T>& numbers) {
    if (numbers.empty()) return nullptr;
    require(runtime_.upload(device_, numbers.data(), numbers.size() * sizeof(T), data_));
    return static_cast<T*>(data_);
  }
  template <class T>
  T* allocate(std::size_t numbers) {
    require(runtime_.allocate(device_, numbers * sizeof(T), data_));
    return static_cast<T*>(data_);
  }

 private:
  void require(const std::string& failure) const {
    if (!failure.empty()) refuse_device(device_, failure, "free memory on the device, or evaluate on the CPU");
  }

  EvaluationRuntime& runtime_;
  int device_;
  void* data_ = nullptr;
};

}  // namespace lockstep::cuda

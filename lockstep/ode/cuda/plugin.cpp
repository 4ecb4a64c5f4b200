// The CUDA component's side of runtime.h, over the CUDA runtime that is linked into it.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "lockstep/ode/cuda/kernels.h"
#include "lockstep/ode/cuda/runtime.h"

namespace lockstep::ode::cuda {
namespace {

constexpr int kLeastMajor = 8;  // compiled for compute capability 8.0 and later

const std::vector<CompiledKernel>& all_kernels() {
  static const std::vector<CompiledKernel> kernels = [] {
    std::vector<CompiledKernel> list;
    add_kernels_f32(list);
    add_kernels_f64(list);
    return list;
  }();
  return kernels;
}

Fault fault_of(cudaError_t error, std::string where) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // leaves nothing behind for the next call
  return {true, error == cudaErrorMemoryAllocation, std::move(where),
          std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")"};
}

class CudaStream : public Stream {
 public:
  CudaStream(int device, cudaStream_t stream, int multiprocessors)
      : device_(device), multiprocessors_(multiprocessors), stream_(stream) {}
  ~CudaStream() override {
    free_all();
    cudaStreamDestroy(stream_);
  }

  void* allocate(std::size_t bytes) override {
    cudaSetDevice(device_);
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) return static_cast<void>(cudaGetLastError()), nullptr;
    device_blocks_.push_back(memory);
    return memory;
  }
  void* allocate_pinned(std::size_t bytes) override {
    cudaSetDevice(device_);
    void* memory = nullptr;
    if (cudaMallocHost(&memory, bytes) != cudaSuccess) return static_cast<void>(cudaGetLastError()), nullptr;
    pinned_blocks_.push_back(memory);
    return memory;
  }
  void free_all() override {
    cudaSetDevice(device_);
    cudaStreamSynchronize(stream_);
    for (void* memory : std::exchange(device_blocks_, {})) cudaFree(memory);
    for (void* memory : std::exchange(pinned_blocks_, {})) cudaFreeHost(memory);
    cudaGetLastError();
  }

  void upload(void* device, const void* pinned, std::size_t bytes) override {
    keep(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream_), "copy to the device");
  }
  void clear(void* device, std::size_t bytes) override {
    keep(cudaMemsetAsync(device, 0, bytes, stream_), "clearing memory");
  }
  void download(void* pinned, const void* device, std::size_t bytes) override {
    keep(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, stream_), "copy from the device");
  }

  void launch(std::string_view name, const void* launch) override {
    cudaSetDevice(device_);
    const auto& kernels = all_kernels();
    const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const auto& k) { return k.name == name; });
    last_kernel_ = "kernel " + std::string(name);
    if (found == kernels.end()) {
      if (!fault_.happened) fault_ = {true, false, last_kernel_, "not in this build of the CUDA component"};
      return;
    }
    // As many blocks as the device holds at once, each thread taking trajectory after trajectory; fewer for few.
    const std::size_t shared = found->shared_bytes(launch);
    int blocks = 0;
    keep(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, found->function, found->threads, shared), last_kernel_);
    const std::int64_t all = std::int64_t{std::max(blocks, 1)} * multiprocessors_;
    const std::int64_t useful = (found->trajectories(launch) + found->threads - 1) / found->threads;
    void* arguments[] = {const_cast<void*>(launch)};
    keep(
        cudaLaunchKernel(found->function, dim3(static_cast<unsigned>(std::max<std::int64_t>(std::min(all, useful), 1))),
                         dim3(static_cast<unsigned>(found->threads)), arguments, shared, stream_),
        last_kernel_);
  }

  Fault wait() override {
    cudaSetDevice(device_);
    // An error that surfaces only here comes from what ran: the kernel.
    keep(cudaStreamSynchronize(stream_), last_kernel_);
    return std::exchange(fault_, {});
  }

 private:
  void keep(cudaError_t error, const std::string& where) {
    if (error != cudaSuccess && !fault_.happened) fault_ = fault_of(error, where);
  }

  int device_;
  int multiprocessors_;
  cudaStream_t stream_;
  std::vector<void*> device_blocks_, pinned_blocks_;
  std::string last_kernel_ = "the stream";
  Fault fault_;
};

class CudaRuntime : public Runtime {
 public:
  std::vector<DeviceInfo> devices(Fault& fault) override {
    int driver = 0, runtime = 0, count = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) {
      fault = {true, false, "driver", "no CUDA driver on this machine"};
      return {};
    }
    fault = fault_of(cudaGetDeviceCount(&count), "driver");
    if (fault.happened) {
      fault.text += "; the driver knows CUDA " + version(driver) + ", this build needs " + version(runtime);
      return {};
    }
    std::vector<DeviceInfo> result;
    for (int index = 0; index < count; ++index) {
      cudaDeviceProp properties;
      if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) continue;
      if (properties.major < kLeastMajor) continue;
      DeviceInfo info{.index = index,
                      .name = properties.name,
                      .major = properties.major,
                      .minor = properties.minor,
                      .multiprocessors = properties.multiProcessorCount};
      int kilohertz = 0;
      if (cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, index) == cudaSuccess)
        info.clock_ghz = kilohertz * 1e-6;
      info.memory = info.free_memory = properties.totalGlobalMem;
      result.push_back(std::move(info));
    }
    if (result.empty())
      fault = {true, false, "device", "no device of compute capability 8.0 or later among " + std::to_string(count)};
    return result;
  }

  std::unique_ptr<Stream> open_stream(int device, Fault& fault) override {
    cudaStream_t stream = nullptr;
    int multiprocessors = 0;
    fault = fault_of(cudaSetDevice(device), "device " + std::to_string(device));
    if (!fault.happened)
      fault = fault_of(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "device");
    if (!fault.happened) fault = fault_of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    if (fault.happened) return nullptr;
    return std::make_unique<CudaStream>(device, stream, multiprocessors);
  }

 private:
  static std::string version(int number) {
    return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) Runtime* lockstep_cuda_runtime(int version) {
  static CudaRuntime runtime;
  return version == kRuntimeVersion ? &runtime : nullptr;
}

}  // namespace lockstep::ode::cuda

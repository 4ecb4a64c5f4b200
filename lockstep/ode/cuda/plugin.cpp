// The CUDA component's side of runtime.h, over the CUDA runtime that is linked into it.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "lockstep/kernels/cuda/current_device.cuh"
#include "lockstep/kernels/cuda/kernel_shared_memory.cuh"
#include "lockstep/ode/cuda/kernels.h"
#include "lockstep/ode/cuda/launch.h"
#include "lockstep/ode/cuda/runtime.h"

namespace lockstep::ode::cuda {
namespace {

using lockstep::cuda::CurrentDevice;

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
  CudaStream(int device, cudaStream_t stream, int multiprocessors, bool borrowed)
      : device_(device), multiprocessors_(multiprocessors), stream_(stream), borrowed_(borrowed) {}
  ~CudaStream() override {
    free_all();
    for (const Prepared& kernel : kernels_) {
      if (kernel.library != nullptr) cudaLibraryUnload(kernel.library);
    }
    if (!borrowed_) cudaStreamDestroy(stream_);
  }

  void* allocate(std::size_t bytes) override {
    const CurrentDevice current(device_);
    void* memory = nullptr;
    if (!have(current) || !keep(cudaMalloc(&memory, bytes), "memory")) return nullptr;
    device_blocks_.push_back(memory);
    return memory;
  }
  void* allocate_pinned(std::size_t bytes) override {
    const CurrentDevice current(device_);
    void* memory = nullptr;
    if (!have(current) || !keep(cudaMallocHost(&memory, bytes), "pinned memory")) return nullptr;
    pinned_blocks_.push_back(memory);
    return memory;
  }
  void free_all() override {
    const CurrentDevice current(device_);
    if (device_blocks_.empty() && pinned_blocks_.empty()) return;
    cudaStreamSynchronize(stream_);
    for (void* memory : std::exchange(device_blocks_, {})) cudaFree(memory);
    for (void* memory : std::exchange(pinned_blocks_, {})) cudaFreeHost(memory);
    cudaGetLastError();
  }

  // The default stream, which may be borrowed, is the current device's.
  void upload(void* device, const void* pinned, std::size_t bytes) override {
    const CurrentDevice current(device_);
    if (have(current))
      keep(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream_), "copy to the device");
  }
  void clear(void* device, std::size_t bytes) override {
    const CurrentDevice current(device_);
    if (have(current)) keep(cudaMemsetAsync(device, 0, bytes, stream_), "clearing memory");
  }
  void download(void* pinned, const void* device, std::size_t bytes) override {
    const CurrentDevice current(device_);
    if (have(current))
      keep(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, stream_), "copy from the device");
  }

  Fault add_kernel(std::string_view name, const KernelImage& image) override {
    const CurrentDevice current(device_);
    if (!have(current)) return take_fault();
    Prepared kernel{.name = std::string(name), .threads = image.threads, .own_shared = image.shared_bytes};
    const std::string where = "kernel " + kernel.name;
    Fault fault = fault_of(
        cudaLibraryLoadData(&kernel.library, image.code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), where);
    cudaKernel_t function = nullptr;
    if (!fault.happened) fault = fault_of(cudaLibraryGetKernel(&function, kernel.library, image.entry.c_str()), where);
    if (fault.happened) {
      if (kernel.library != nullptr) cudaLibraryUnload(kernel.library);
      return fault;
    }
    kernel.function = reinterpret_cast<const void*>(function);
    kernel.trajectories = image.float64 ? count_of<double> : count_of<float>;
    kernel.threads_a_trajectory = image.threads_a_trajectory;
    kernels_.push_back(std::move(kernel));
    return {};
  }

  Fault prepare(std::string_view name, const void* launch) override {
    const CurrentDevice current(device_);
    if (!have(current)) return take_fault();
    Fault fault;
    Prepared* const kernel = find(name, fault);
    if (kernel == nullptr) return fault;
    count_blocks(*kernel, shared_bytes(*kernel, launch));
    return take_fault();
  }

  void launch(std::string_view name, const void* launch) override {
    const CurrentDevice current(device_);
    last_kernel_ = "kernel " + std::string(name);
    if (!have(current) || fault_.happened) return;  // its inputs never came: it might run for ever
    Fault fault;
    Prepared* const kernel = find(name, fault);
    if (kernel == nullptr) {
      if (!fault_.happened) fault_ = fault;
      return;
    }
    const std::size_t shared = shared_bytes(*kernel, launch);
    if (shared != kernel->shared || kernel->blocks == 0) count_blocks(*kernel, shared);
    // As many blocks as the device holds at once, each thread taking trajectory after trajectory; fewer for few.
    const std::int64_t all = std::int64_t{std::max(kernel->blocks, 1)} * multiprocessors_;
    const std::int64_t threads = kernel->trajectories(launch) * kernel->threads_a_trajectory;
    const std::int64_t useful = (threads + kernel->threads - 1) / kernel->threads;
    void* arguments[] = {const_cast<void*>(launch)};
    keep(cudaLaunchKernel(kernel->function,
                          dim3(static_cast<unsigned>(std::max<std::int64_t>(std::min(all, useful), 1))),
                          dim3(static_cast<unsigned>(kernel->threads)), arguments, shared, stream_),
         last_kernel_);
  }

  Fault wait() override {
    const CurrentDevice current(device_);
    // An error that surfaces only here comes from what ran: the kernel.
    if (have(current)) keep(cudaStreamSynchronize(stream_), last_kernel_);
    return take_fault();
  }
  Fault take_fault() override { return std::exchange(fault_, {}); }

 private:
  // A kernel that this stream has launched or will.
  struct Prepared {
    std::string name;
    const void* function = nullptr;
    int threads = 0;
    const CompiledKernel* describe = nullptr;  // of those compiled ahead
    std::int64_t (*trajectories)(const void* launch) = nullptr;
    int threads_a_trajectory = 1;     // of those that came as text
    cudaLibrary_t library = nullptr;  // of those that came as text
    std::size_t own_shared = 0;       // bytes of shared memory that those need
    std::size_t shared = 0;           // bytes, for which
    int blocks = 0;                   // fit on a multiprocessor; 0: not asked yet
  };

  template <class T>
  static std::int64_t count_of(const void* launch) {
    return static_cast<const Launch<T>*>(launch)->ensemble.count;
  }

  static std::size_t shared_bytes(const Prepared& kernel, const void* launch) {
    return kernel.describe == nullptr ? kernel.own_shared : kernel.describe->shared_bytes(launch);
  }

  Prepared* find(std::string_view name, Fault& fault) {
    for (Prepared& kernel : kernels_) {
      if (kernel.name == name) return &kernel;
    }
    for (const CompiledKernel& compiled : all_kernels()) {
      if (compiled.name != name) continue;
      kernels_.push_back({.name = std::string(name),
                          .function = compiled.function,
                          .threads = compiled.threads,
                          .describe = &compiled,
                          .trajectories = compiled.trajectories});
      return &kernels_.back();
    }
    fault = {true, false, "kernel " + std::string(name), "not in this build of the CUDA component"};
    return nullptr;
  }

  void count_blocks(Prepared& kernel, std::size_t shared) {
    kernel.shared = shared;
    const std::string where = "kernel " + kernel.name;
    // Loads the kernel, which a launch may not do while a graph is captured.
    cudaFuncAttributes attributes{};
    keep(cudaFuncGetAttributes(&attributes, kernel.function), where);
    constexpr std::size_t kUnasked = 48 << 10;  // bytes that any kernel may have
    const bool much = attributes.sharedSizeBytes + shared > kUnasked;
    if (much) {
      // All that its own arrays leave: another stream may want more of this kernel than this one.
      int most = 0;
      keep(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_), where);
      keep(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                most - static_cast<int>(attributes.sharedSizeBytes)),
           where);
    }
    keep(much ? lockstep::cuda::make_room(kernel.function, device_, kernel.threads, shared, kernel.blocks)
              : cudaOccupancyMaxActiveBlocksPerMultiprocessor(&kernel.blocks, kernel.function, kernel.threads, shared),
         where);
  }

  bool have(const CurrentDevice& current) { return keep(current.error, "device " + std::to_string(device_)); }
  // False where that is an error: the first one stays.
  bool keep(cudaError_t error, const std::string& where) {
    const Fault fault = fault_of(error, where);
    if (fault.happened && !fault_.happened) fault_ = fault;
    return !fault.happened;
  }

  int device_;
  int multiprocessors_;
  cudaStream_t stream_;
  bool borrowed_;
  std::vector<Prepared> kernels_;
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
      if (const Fault failed = fault_of(cudaGetDeviceProperties(&properties, index), "device " + std::to_string(index));
          failed.happened) {
        fault = failed;
        continue;
      }
      if (properties.major < kLeastMajor) continue;
      DeviceInfo info{.index = index,
                      .name = properties.name,
                      .major = properties.major,
                      .minor = properties.minor,
                      .multiprocessors = properties.multiProcessorCount,
                      .driver = version(driver)};
      int kilohertz = 0;
      if (cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, index) == cudaSuccess)
        info.clock_ghz = kilohertz * 1e-6;
      info.memory = info.free_memory = properties.totalGlobalMem;
      result.push_back(std::move(info));
    }
    if (!result.empty()) {
      fault = {};
    } else if (!fault.happened) {
      fault = {true, false, "device", "no device of compute capability 8.0 or later among " + std::to_string(count)};
    }
    return result;
  }

  std::unique_ptr<Stream> open_stream(int device, Fault& fault) override {
    cudaStream_t stream = nullptr;
    int multiprocessors = 0;
    const CurrentDevice current(device);
    fault = fault_of(current.error, "device " + std::to_string(device));
    if (!select(device, multiprocessors, fault)) return nullptr;
    fault = fault_of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    if (fault.happened) return nullptr;
    return std::make_unique<CudaStream>(device, stream, multiprocessors, false);
  }

  std::unique_ptr<Stream> borrow_stream(int device, void* stream, Fault& fault) override {
    int multiprocessors = 0;
    const CurrentDevice current(device);
    fault = fault_of(current.error, "device " + std::to_string(device));
    if (!select(device, multiprocessors, fault)) return nullptr;
    return std::make_unique<CudaStream>(device, static_cast<cudaStream_t>(stream), multiprocessors, true);
  }

 private:
  static bool select(int device, int& multiprocessors, Fault& fault) {
    if (!fault.happened)
      fault = fault_of(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "device");
    return !fault.happened;
  }
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

// The CUDA component's side of evaluation_runtime.h.
#include <cuda_runtime_api.h>

#include "lockstep/kernels/cuda/block_net.h"
#include "lockstep/kernels/cuda/current_device.cuh"
#include "lockstep/kernels/cuda/evaluate_kernels.h"
#include "lockstep/kernels/cuda/evaluation_runtime.h"
#include "lockstep/kernels/cuda/kernel_shared_memory.cuh"

namespace lockstep::cuda {
namespace {

std::string text_of(cudaError_t error) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // leaves nothing behind for the next call
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

const void* find_kernel(EvaluationMode mode, int tile) {
  static const std::vector<EvaluateKernel> kernels = [] {
    std::vector<EvaluateKernel> list;
    add_evaluate_kernels_f32(list);
    add_evaluate_kernels_f64(list);
    add_tensor_kernels(list);
    add_graph_kernels_f32(list);
    add_graph_kernels_f64(list);
    return list;
  }();
  for (const EvaluateKernel& kernel : kernels) {
    if (kernel.mode == mode && kernel.tile == tile) return kernel.function;
  }
  return nullptr;
}

class CudaEvaluation : public EvaluationRuntime {
 public:
  std::string count_multiprocessors(int device, int& count) override {
    int driver = 0, devices = 0, major = 0;
    cudaDriverGetVersion(&driver);
    if (driver == 0) return "no CUDA driver on this machine";
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess) return text_of(error);
    if (device < 0 || device >= devices) return "no such device among " + std::to_string(devices);
    error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess && major < 8) return "a device of compute capability below 8.0";
    return text_of(error);
  }

  std::string upload(int device, const void* host, std::size_t bytes, void*& memory) override {
    const CurrentDevice current(device);
    if (current.error != cudaSuccess) return text_of(current.error);
    cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaSuccess) error = cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice);
    // A copy from pageable memory may still be under way, and other streams do not wait for it.
    if (error == cudaSuccess) error = cudaStreamSynchronize(nullptr);
    return text_of(error);
  }
  std::string allocate(int device, std::size_t bytes, void*& memory) override {
    const CurrentDevice current(device);
    if (current.error != cudaSuccess) return text_of(current.error);
    return text_of(cudaMalloc(&memory, bytes));
  }
  std::string download(int device, void* host, const void* memory, std::size_t bytes) override {
    const CurrentDevice current(device);
    if (current.error != cudaSuccess) return text_of(current.error);
    return text_of(cudaMemcpy(host, memory, bytes, cudaMemcpyDeviceToHost));
  }
  void release(int device, void* memory) override {
    const CurrentDevice current(device);
    cudaFree(memory);
    cudaGetLastError();
  }

  std::string prepare(int device, EvaluationMode mode, int tile, std::size_t shared_bytes, int& blocks) override {
    const CurrentDevice current(device);
    if (current.error != cudaSuccess) return text_of(current.error);
    const void* const kernel = find_kernel(mode, tile);
    if (kernel == nullptr) return "no kernel for tiles of " + std::to_string(tile) + " samples in this build";
    // Loads the kernel, which a launch may not do while a graph is captured.
    cudaFuncAttributes attributes{};
    int most = 0;
    cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error != cudaSuccess) return text_of(error);
    most -= static_cast<int>(attributes.sharedSizeBytes);  // the kernel's own arrays
    if (shared_bytes > static_cast<std::size_t>(most)) {
      return std::to_string(most) + " bytes of shared memory, and the net needs " + std::to_string(shared_bytes);
    }
    // All that is left: another plan may need more than this one.
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
    if (error == cudaSuccess) error = make_room(kernel, device, kBlockThreads, shared_bytes, blocks);
    return text_of(error);
  }

  std::string enqueue(int device, void* stream, EvaluationMode mode, int tile, unsigned blocks,
                      std::size_t shared_bytes, const void* launch) override {
    const CurrentDevice current(device);
    if (current.error != cudaSuccess) return text_of(current.error);
    void* arguments[] = {const_cast<void*>(launch)};
    return text_of(cudaLaunchKernel(find_kernel(mode, tile), dim3(blocks), dim3(kBlockThreads), arguments, shared_bytes,
                                    static_cast<cudaStream_t>(stream)));
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) EvaluationRuntime* lockstep_cuda_evaluation(int version) {
  static CudaEvaluation runtime;
  return version == kEvaluationVersion ? &runtime : nullptr;
}

}  // namespace lockstep::cuda

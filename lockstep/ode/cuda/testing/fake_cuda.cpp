#include "lockstep/ode/cuda/testing/fake_cuda.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>

#include "lockstep/kernels/cuda/evaluate_kernels.h"
#include "lockstep/ode/cuda/kernel_list.h"
#include "lockstep/ode/cuda/kernels.h"
#include "lockstep/ode/cuda/testing/host_runtime.h"

namespace lockstep::ode::cuda {
namespace testing {

FakeCuda& fake_cuda() {
  static FakeCuda state;
  return state;
}

namespace {

cudaError_t last_error = cudaSuccess;
constexpr int kSharedMost = 232448, kSharedOwn = 1024;  // bytes that a block may have, and that each kernel declares
std::map<void*, std::size_t> sizes;

// What every call does first.
cudaError_t enter(const char* name) {
  FakeCuda& fake = fake_cuda();
  ++fake.calls[name];
  const int number = fake.calls_so_far++;
  if (fake.failing_call < 0) return cudaSuccess;
  if (number != fake.failing_call && !(fake.lasting && number > fake.failing_call)) return cudaSuccess;
  return last_error = static_cast<cudaError_t>(fake.error);
}
cudaError_t queue(const char* name, cudaStream_t stream) {
  fake_cuda().sequence.emplace_back(name);
  fake_cuda().queued_on.push_back(stream);
  return enter(name);
}
cudaError_t act(const char* name) {
  fake_cuda().sequence.emplace_back(name);
  return enter(name);
}

cudaError_t take(const char* name, void** memory, std::size_t bytes, std::size_t& used, int& blocks) {
  if (const cudaError_t error = act(name); error != cudaSuccess) return error;
  if (used + bytes > fake_cuda().memory) return last_error = cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0xa5, bytes);
  sizes[*memory] = bytes;
  used += bytes;
  ++blocks;
  return cudaSuccess;
}
// Also where the call fails: a test counts what was never given back.
cudaError_t give_back(const char* name, void* memory, std::size_t& used, int& blocks) {
  const cudaError_t error = act(name);
  if (memory == nullptr) return error;
  used -= sizes[memory];
  sizes.erase(memory);
  --blocks;
  std::free(memory);
  return error;
}

struct FakeKernel {
  std::string name;
  bool tiles = false;
  std::size_t most_shared = (48 << 10) - kSharedOwn;  // bytes that a launch may ask for
};
std::deque<FakeKernel>& kernels() {
  static std::deque<FakeKernel> all;
  return all;
}
const void* make_kernel(std::string_view name, bool tiles) {
  kernels().push_back({std::string(name), tiles});
  return &kernels().back();
}

template <class T>
CompiledKernel describe(std::string_view name, bool tiles) {
  return {name, make_kernel(name, tiles), 128,
          tiles ? [](const void*) { return std::size_t{64} << 10; } : [](const void*) { return std::size_t{0}; },
          [](const void* launch) { return static_cast<const Launch<T>*>(launch)->ensemble.count; }};
}

}  // namespace
}  // namespace testing

using namespace testing;

void add_kernels_f32(std::vector<CompiledKernel>& list) {
  for_each_kernel<float>([&]<class Body>(std::string_view name) { list.push_back(describe<float>(name, false)); });
  list.push_back(describe<float>("tiles_f32", true));
}
void add_kernels_f64(std::vector<CompiledKernel>& list) {
  for_each_kernel<double>([&]<class Body>(std::string_view name) { list.push_back(describe<double>(name, false)); });
  list.push_back(describe<double>("tiles_f64", true));
}

}  // namespace lockstep::ode::cuda

namespace lockstep::cuda {
// Counted, not run: device_plan_test runs them.
void add_evaluate_kernels_f32(std::vector<EvaluateKernel>& list) {
  static const int function = 0;
  for (const int tile : {32, 64, 128}) list.push_back({EvaluationMode::f32, tile, &function});
}
void add_evaluate_kernels_f64(std::vector<EvaluateKernel>& list) {
  static const int function = 0;
  for (const int tile : {32, 64}) list.push_back({EvaluationMode::f64, tile, &function});
}
void add_tensor_kernels(std::vector<EvaluateKernel>&) {}
void add_graph_kernels_f32(std::vector<EvaluateKernel>& list) {
  static const int function = 0;
  for (const int tile : {32, 128}) list.push_back({EvaluationMode::graph_f32, tile, &function});
}
void add_graph_kernels_f64(std::vector<EvaluateKernel>&) {}
}  // namespace lockstep::cuda

using namespace lockstep::ode::cuda;
using namespace lockstep::ode::cuda::testing;

extern "C" {

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorMemoryAllocation) return "out of memory";
  if (error == cudaErrorInsufficientDriver) return "CUDA driver version is insufficient for CUDA runtime version";
  if (error == cudaErrorIllegalAddress) return "an illegal memory access was encountered";
  return "the device went away";
}
const char* cudaGetErrorName(cudaError_t error) {
  if (error == cudaErrorMemoryAllocation) return "cudaErrorMemoryAllocation";
  if (error == cudaErrorInsufficientDriver) return "cudaErrorInsufficientDriver";
  if (error == cudaErrorIllegalAddress) return "cudaErrorIllegalAddress";
  return "cudaErrorDevicesUnavailable";
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = fake_cuda().driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  if (const cudaError_t error = enter("cudaGetDeviceCount"); error != cudaSuccess) return error;
  if (fake_cuda().driver < 13000) return last_error = cudaErrorInsufficientDriver;
  *count = fake_cuda().devices;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  if (const cudaError_t error = enter("cudaGetDeviceProperties"); error != cudaSuccess) return error;
  *properties = {};
  std::strcpy(properties->name, "a card that is not there");
  properties->major = fake_cuda().major;
  properties->multiProcessorCount = 2;
  properties->totalGlobalMem = fake_cuda().memory;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (const cudaError_t error = enter("cudaDeviceGetAttribute"); error != cudaSuccess) return error;
  *value = 2;
  if (attribute == cudaDevAttrComputeCapabilityMajor) *value = fake_cuda().major;
  if (attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin) *value = kSharedMost;
  if (attribute == cudaDevAttrMaxSharedMemoryPerMultiprocessor) *value = kSharedMost + 1024;
  if (attribute == cudaDevAttrClockRate) *value = 1700000;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = fake_cuda().current_device;
  return enter("cudaGetDevice");
}
cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = enter("cudaSetDevice"); error != cudaSuccess) return error;
  if (device < 0 || device >= fake_cuda().devices) return last_error = cudaErrorInvalidDevice;
  fake_cuda().current_device = device;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return take("cudaMalloc", memory, bytes, fake_cuda().used, fake_cuda().device_blocks);
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  return take("cudaMallocHost", memory, bytes, fake_cuda().pinned, fake_cuda().pinned_blocks);
}
cudaError_t cudaFree(void* memory) {
  return give_back("cudaFree", memory, fake_cuda().used, fake_cuda().device_blocks);
}
cudaError_t cudaFreeHost(void* memory) {
  return give_back("cudaFreeHost", memory, fake_cuda().pinned, fake_cuda().pinned_blocks);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (const cudaError_t error = act("cudaStreamCreateWithFlags"); error != cudaSuccess) return error;
  *stream = reinterpret_cast<cudaStream_t>(std::malloc(1));
  ++fake_cuda().streams;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  --fake_cuda().streams;
  std::free(stream);
  return act("cudaStreamDestroy");
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return act("cudaStreamSynchronize"); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (const cudaError_t error = queue("cudaMemcpyAsync", stream); error != cudaSuccess) return error;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (const cudaError_t error = act("cudaMemcpy"); error != cudaSuccess) return error;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = queue("cudaMemsetAsync", stream); error != cudaSuccess) return error;
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* function, dim3, dim3, void** arguments, size_t shared, cudaStream_t stream) {
  if (const cudaError_t error = queue("cudaLaunchKernel", stream); error != cudaSuccess) return error;
  for (const FakeKernel& kernel : kernels()) {
    if (&kernel != function) continue;
    if (shared > kernel.most_shared) return last_error = cudaErrorInvalidValue;
    HostDevice device;
    std::size_t trajectories = 0;
    if (!kernel.tiles) run_listed_kernel(device, kernel.name, arguments[0]);
    if (kernel.tiles) run_tile_kernel(kernel.name, arguments[0], trajectories);
  }
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  *attributes = {};
  attributes->sharedSizeBytes = kSharedOwn;
  const auto found = fake_cuda().shared_percent.find(function);
  attributes->preferredShmemCarveout = found == fake_cuda().shared_percent.end() ? -1 : found->second;
  return enter("cudaFuncGetAttributes");
}
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int most) {
  if (const cudaError_t error = enter("cudaFuncSetAttribute"); error != cudaSuccess) return error;
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) {
    if (most < 0 || most > 100) return last_error = cudaErrorInvalidValue;
    fake_cuda().shared_percent[function] = most;
    return cudaSuccess;
  }
  if (most + kSharedOwn > kSharedMost) return last_error = cudaErrorInvalidValue;
  for (FakeKernel& kernel : kernels()) {
    if (&kernel == function) kernel.most_shared = static_cast<std::size_t>(most);
  }
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  *blocks = 2;
  return enter("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
}
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void*, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  if (const cudaError_t error = enter("cudaLibraryLoadData"); error != cudaSuccess) return error;
  *library = reinterpret_cast<cudaLibrary_t>(&fake_cuda());
  ++fake_cuda().libraries;
  return cudaSuccess;
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t, const char*) {
  *kernel = reinterpret_cast<cudaKernel_t>(&fake_cuda());
  return enter("cudaLibraryGetKernel");
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) {
  --fake_cuda().libraries;
  return enter("cudaLibraryUnload");
}

}  // extern "C"

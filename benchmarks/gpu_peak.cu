// What this machine's GPU can do at best, for gpu_bench to be judged by: fused multiply-adds, copies on the device and
// over the bus, the latency of a launch. Prints one JSON object a line; exit code 3 without a device.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gpu_warm_up.h"

namespace {

constexpr int kChains = 16;  // independent sums a thread: more than the latency of an fma times its rate
constexpr int kRounds = 4096;

// Written with fma(), because the flags of the bits forbid contraction.
template <class T>
__global__ void fma_chains(T scale, T shift, T* out) {
  T sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = static_cast<T>(threadIdx.x + i);
  for (int round = 0; round < kRounds; ++round) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) sum[i] = fma(sum[i], scale, shift);
  }
  T total = 0;
  for (int i = 0; i < kChains; ++i) total += sum[i];
  if (total == T(-1)) out[0] = total;  // never: keeps the work
}

__global__ void copy_blocks(const float4* from, float4* to, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) to[i] = from[i];
}

__global__ void nothing() {}

void require(cudaError_t error, const char* where) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "gpu_peak: %s: %s\n", where, cudaGetErrorString(error));
  std::exit(1);
}

// The best of `repeats` times of work() on the device, in seconds.
template <class Work>
double best_seconds(int repeats, const Work& work) {
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin), "event");
  require(cudaEventCreate(&end), "event");
  lockstep::benchmarks::warm_up([&] {
    work();
    require(cudaDeviceSynchronize(), "kernel");
  });
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    require(cudaEventRecord(begin), "event");
    work();
    require(cudaEventRecord(end), "event");
    require(cudaEventSynchronize(end), "kernel");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "event");
    best = std::min(best, milliseconds * 1e-3);
  }
  require(cudaGetLastError(), "launch");
  return best;
}

template <class T>
void print_fma_peak(const char* precision, int blocks) {
  constexpr int kThreads = 256;
  T* out = nullptr;
  require(cudaMalloc(&out, sizeof(T)), "memory");
  const double seconds = best_seconds(10, [&] { fma_chains<T><<<blocks, kThreads>>>(T(0.999), T(0.001), out); });
  const double operations = double(blocks) * kThreads * kChains * kRounds;
  std::printf("{\"measure\": \"fma_peak\", \"precision\": \"%s\", \"fma_per_s\": %.6g, \"tflops\": %.5g}\n", precision,
              operations / seconds, 2e-12 * operations / seconds);
  cudaFree(out);
}

void print_rate(const char* measure, double bytes, double seconds) {
  std::printf("{\"measure\": \"%s\", \"bytes_per_s\": %.6g}\n", measure, bytes / seconds);
}

void print_copies(int blocks) {
  std::size_t bytes = std::size_t{1} << 30;
  void *from = nullptr, *to = nullptr, *host = nullptr;
  while (cudaMalloc(&from, bytes) != cudaSuccess || cudaMalloc(&to, bytes) != cudaSuccess) {
    cudaGetLastError();
    cudaFree(from);
    from = nullptr;
    bytes /= 2;
    if (bytes < 4096) require(cudaErrorMemoryAllocation, "memory");
  }
  const double copy = best_seconds(10, [&] {
    copy_blocks<<<blocks, 256>>>(static_cast<const float4*>(from), static_cast<float4*>(to), bytes / sizeof(float4));
  });
  print_rate("device_copy", 2.0 * bytes, copy);  // read and written
  bytes = std::min(bytes, std::size_t{1} << 28);
  require(cudaMallocHost(&host, bytes), "pinned memory");
  print_rate("host_to_device", bytes, best_seconds(5, [&] { cudaMemcpyAsync(from, host, bytes, cudaMemcpyDefault); }));
  print_rate("device_to_host", bytes, best_seconds(5, [&] { cudaMemcpyAsync(host, from, bytes, cudaMemcpyDefault); }));
  cudaFreeHost(host);
  cudaFree(from);
  cudaFree(to);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a kill keeps the rows so far
  int count = 0, driver = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    std::fprintf(stderr, "gpu_peak: no CUDA device: %s\n", cudaGetErrorString(error));
    return 3;
  }
  cudaDeviceProp device;
  require(cudaGetDeviceProperties(&device, 0), "device");
  require(cudaDriverGetVersion(&driver), "driver");
  std::printf(
      "{\"measure\": \"device\", \"name\": \"%s\", \"capability\": \"%d.%d\", \"multiprocessors\": %d, "
      "\"memory\": %zu, \"driver_cuda\": %d}\n",
      device.name, device.major, device.minor, device.multiProcessorCount, device.totalGlobalMem, driver);
  if (argc > 1 && std::strcmp(argv[1], "--device") == 0) return 0;
  const int blocks = device.multiProcessorCount * 8;
  print_fma_peak<float>("float32", blocks);
  print_fma_peak<double>("float64", blocks);
  print_copies(blocks);
  constexpr int kLaunches = 100;
  const double launches = best_seconds(10, [] {
    for (int i = 0; i < kLaunches; ++i) nothing<<<1, 1>>>();
  });
  std::printf("{\"measure\": \"launch\", \"seconds\": %.4g}\n", launches / kLaunches);
}

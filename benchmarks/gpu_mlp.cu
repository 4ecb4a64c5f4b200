// Times the evaluation of a 32-128-128-31 relu net for a million samples that lie on the device, row by row: one JSON
// object a precision, for gpu_verdict. `gpu_mlp --once` runs each kernel once, for a profiler. Exit code 3 without a
// device, 1 where a result is wrong.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "gpu_warm_up.h"
#include "lockstep/core/random.h"
#include "lockstep/kernels/cuda/kernel_shared_memory.cuh"
#include "lockstep/kernels/cuda/tensor_kernel.cuh"
#include "lockstep/kernels/cuda/testing/tensor_reference.h"

namespace {

using namespace lockstep;

constexpr int kSamples = 1 << 20, kInputs = 32, kHidden = 128, kOutputs = 31;
constexpr int kCheckedStep = 16381;  // prime: the samples looked at lie at many places of their tiles

bool once = false, all_right = true;

void require(cudaError_t error, const char* where) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "gpu_mlp: %s: %s\n", where, cudaGetErrorString(error));
  std::exit(1);
}

template <class T, int samples>
__global__ void __launch_bounds__(cuda::kBlockThreads)
    evaluate(const __grid_constant__ cuda::EvaluateLaunch<T> launch) {
  extern __shared__ __align__(16) unsigned char shared[];
  cuda::evaluate_tiles<T, samples, 128>(launch, shared);
}

template <class Format, int samples, cuda::WeightPlace place>
__global__ void __launch_bounds__(cuda::kBlockThreads, cuda::tensor_blocks(samples))
    evaluate_on_tensor_cores(const __grid_constant__ cuda::TensorLaunch launch) {
  extern __shared__ __align__(16) unsigned char shared[];
  cuda::evaluate_tensor_tiles<Format, samples, place>(launch, shared);
}

Mlp ocean_net() {
  const Random random(1, 0);
  std::size_t drawn = 0;
  Mlp mlp;
  const auto layer = [&](std::size_t inputs, std::size_t outputs, ActivationKind kind) {
    DenseLayer dense;
    dense.inputs = inputs;
    dense.outputs = outputs;
    for (std::size_t i = 0; i < inputs * outputs; ++i)
      dense.weights.push_back(static_cast<float>((random.uniform(drawn++, 0) - 0.5) * 2 / std::sqrt(double(inputs))));
    dense.bias.assign(outputs, 0.125);
    dense.activation = {kind, 0};
    mlp.layers.push_back(dense);
  };
  layer(kInputs, kHidden, ActivationKind::relu);
  layer(kHidden, kHidden, ActivationKind::relu);
  layer(kHidden, kOutputs, ActivationKind::identity);
  return mlp;
}

std::vector<double> reference(const Mlp& mlp, std::vector<double> x) {
  for (const DenseLayer& layer : mlp.layers) {
    std::vector<double> y(layer.bias);
    for (std::size_t j = 0; j < layer.outputs; ++j) {
      for (std::size_t k = 0; k < layer.inputs; ++k) y[j] += layer.weights[j * layer.inputs + k] * x[k];
      if (layer.activation.kind == ActivationKind::relu) y[j] = std::max(y[j], 0.0);
    }
    x = y;
  }
  return x;
}

template <class T>
T* on_device(const std::vector<T>& numbers) {
  T* device = nullptr;
  require(cudaMalloc(&device, numbers.size() * sizeof(T)), "memory");
  require(cudaMemcpy(device, numbers.data(), numbers.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
  return device;
}

// The launch's net is laid out for `kernel`, which takes it. most_error(inputs)[output]: what is more is wrong.
template <class T, class Launch, class Bound>
void measure(const char* precision, int samples, const char* weights, const Mlp& mlp, Launch launch,
             void (*kernel)(Launch), std::size_t shared, const Bound& most_error) {
  launch.samples = kSamples;
  const Random random(2, 0);
  std::vector<T> in(std::size_t{kSamples} * kInputs), out(std::size_t{kSamples} * kOutputs);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<T>(static_cast<float>(random.uniform(i, 0) - 0.5));
  launch.in = on_device(in);
  launch.in_row_stride = kInputs;
  launch.in_column_stride = 1;
  launch.out = on_device(out);
  require(cudaMemset(launch.out, 0xff, out.size() * sizeof(T)), "memory");  // NaN, where nothing is written
  launch.out_row_stride = kOutputs;
  launch.out_column_stride = 1;

  require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared)), "kernel");
  int blocks = 0, multiprocessors = 0;
  require(cuda::make_room(reinterpret_cast<const void*>(kernel), 0, cuda::kBlockThreads, shared, blocks), "kernel");
  require(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "device");
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin), "event");
  require(cudaEventCreate(&end), "event");
  const auto run = [&] {
    require(cudaEventRecord(begin), "event");
    kernel<<<std::max(blocks, 1) * multiprocessors, cuda::kBlockThreads, shared>>>(launch);
    require(cudaGetLastError(), "launch");
    require(cudaEventRecord(end), "event");
    require(cudaEventSynchronize(end), "kernel");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "event");
    return milliseconds;
  };
  const int repeats = once ? 1 : 20;
  if (!once) benchmarks::warm_up(run);
  float best = 1e30f;
  for (int i = 0; i < repeats; ++i) best = std::min(best, run());
  require(cudaMemcpy(out.data(), launch.out, out.size() * sizeof(T), cudaMemcpyDeviceToHost), "copy");
  double error = 0;
  bool failed = false;
  for (std::size_t i = 0; i < kSamples; i += kCheckedStep) {
    const std::vector<double> x(in.begin() + i * kInputs, in.begin() + (i + 1) * kInputs);
    const auto y = reference(mlp, x), most = most_error(x);
    for (std::size_t j = 0; j < kOutputs; ++j) {
      const double off = std::fabs(y[j] - double(out[i * kOutputs + j]));
      error = std::isnan(error) || off <= error ? error : off;
      failed = failed || !(off <= most[j]);  // a wrong result is no time
    }
  }
  all_right = all_right && !failed;
  char shown[32] = "null";  // JSON has no NaN
  if (std::isfinite(error)) std::snprintf(shown, sizeof shown, "%.3g", error);
  std::printf(
      "{\"workload\": \"mlp\", \"precision\": \"%s\", \"kernel\": \"%d samples a block%s\", \"size\": %d, "
      "\"seconds\": %.6g, \"repeats\": %d, \"error\": %s, \"failed\": %d}\n",
      precision, samples, weights, kSamples, best * 1e-3, repeats, shown, int(failed));
  std::fflush(stdout);
  cudaFree(const_cast<T*>(launch.in));
  cudaFree(launch.out);
}

template <class T, int samples>
void measure_fma(const char* precision) {
  const Mlp mlp = ocean_net();
  cuda::BlockWeights<T> weights;
  cuda::EvaluateLaunch<T> launch{};
  launch.net = weights.add(mlp);
  launch.chunks = on_device(weights.chunks);
  launch.resident = on_device(weights.resident);
  launch.resident_numbers = static_cast<std::int32_t>(weights.resident.size());
  // Sums of 128 products near 1 lose no more than this.
  const std::vector<double> most(kOutputs, sizeof(T) == 4 ? 1e-4 : 1e-12);
  measure<T>(precision, samples, "", mlp, launch, evaluate<T, samples>, cuda::evaluate_shared_bytes(launch, samples),
             [&](const std::vector<double>&) { return most; });
}

template <class Format, int samples, cuda::WeightPlace place>
void measure_tensor(const char* precision) {
  const Mlp mlp = ocean_net();
  cuda::TensorWeights<Format> weights;
  cuda::TensorLaunch launch{};
  launch.net = weights.add(mlp);
  launch.fragments = on_device(weights.words);
  launch.resident = on_device(weights.resident);
  launch.layout = cuda::tensor_layout<Format>(&launch.net, 1, samples, weights.resident.size());
  if (place != cuda::WeightPlace::global)
    launch.layout.weight_bytes = static_cast<std::int32_t>(weights.words.size() * sizeof(std::uint32_t));
  const char* const weights_in = place == cuda::WeightPlace::global   ? ", weights in global memory"
                                 : place == cuda::WeightPlace::shared ? ", weights in shared memory"
                                                                      : ", weights in shared memory, by generic loads";
  measure<float>(precision, samples, weights_in, mlp, launch, evaluate_on_tensor_cores<Format, samples, place>,
                 launch.layout.shared_bytes(), [&](const std::vector<double>& x) {
                   std::vector<double> most;
                   for (const auto& y : cuda::testing::tensor_bound<Format>(mlp, {x.begin(), x.end()}))
                     most.push_back(y.error);
                   return most;
                 });
}

}  // namespace

int main(int argc, char** argv) {
  once = argc > 1 && std::strcmp(argv[1], "--once") == 0;
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    std::fprintf(stderr, "gpu_mlp: no CUDA device: %s\n", cudaGetErrorString(error));
    return 3;
  }
  measure_fma<float, 128>("float32");
  measure_fma<float, 64>("float32");
  measure_fma<double, 64>("float64");
  using enum cuda::WeightPlace;
  measure_tensor<cuda::Tf32, 128, global>("tf32");
  measure_tensor<cuda::Bf16, 32, shared>("bf16");
  measure_tensor<cuda::Bf16, 16, shared>("bf16");
  measure_tensor<cuda::Bf16, 32, global>("bf16");
  measure_tensor<cuda::Bf16, 128, shared>("bf16");
  measure_tensor<cuda::Bf16, 128, as_laid_out>("bf16");  // in shared memory, unknown to the compiler
  measure_tensor<cuda::Bf16, 128, global>("bf16");
  measure_tensor<cuda::Bf16, 64, shared>("bf16");
  measure_tensor<cuda::Fp16, 32, shared>("fp16");
  return all_right ? 0 : 1;
}

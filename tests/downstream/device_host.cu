// A host program whose arrays lie on a GPU, its kernels in the same file: compiled and linked as it stands. Without a
// card, or where the component is not found, it must be told which.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/nn/device_net_plan.h"
#include "lockstep/nn/load.h"

__global__ void halve(float* x, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) x[i] /= 2;
}

int main(int, char** arguments) {
  using namespace lockstep;
  constexpr std::size_t kColumns = 64;
  try {
    const auto plan = nn::DeviceNetPlan<float>::compile(nn::load(arguments[1]));
    const std::size_t inputs = plan.inputs()[0].width, outputs = plan.outputs()[0].width;
    float *in = nullptr, *out = nullptr;
    if (cudaMalloc(&in, kColumns * inputs * sizeof(float)) != cudaSuccess) return 1;
    if (cudaMalloc(&out, kColumns * outputs * sizeof(float)) != cudaSuccess) return 1;
    if (cudaMemset(in, 0, kColumns * inputs * sizeof(float)) != cudaSuccess) return 1;
    plan.enqueue(nullptr, {in, kColumns, inputs}, {out, kColumns, outputs});
    halve<<<static_cast<unsigned>(outputs), kColumns>>>(out, static_cast<int>(kColumns * outputs));
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
  } catch (const Error& error) {
    std::puts(error.what());
    const bool is_told = std::strstr(error.what(), "name it in LOCKSTEP_CUDA_LIBRARY") != nullptr ||
                         std::strstr(error.what(), "no CUDA driver on this machine") != nullptr;
    return error.kind() == ErrorKind::unsupported && is_told ? 0 : 1;
  }
}

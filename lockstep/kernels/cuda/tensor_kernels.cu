// The kernels that evaluate nets on tensor cores: each format, each tile size, weights in either memory.
#include "lockstep/kernels/cuda/evaluate_kernels.h"
#include "lockstep/kernels/cuda/tensor_kernel.cuh"

namespace lockstep::cuda {
namespace {

template <class Format, int samples, WeightPlace place>
__global__ void __launch_bounds__(kBlockThreads, tensor_blocks(samples))
    evaluate_tensor_kernel(const __grid_constant__ TensorLaunch launch) {
  extern __shared__ __align__(16) unsigned char evaluate_shared[];
  evaluate_tensor_tiles<Format, samples, place>(launch, evaluate_shared);
}

template <class Format, WeightPlace place>
void add(EvaluationMode mode, std::vector<EvaluateKernel>& kernels) {
  constexpr int large = kTensorTiles[0], small = kTensorTiles[1];
  kernels.push_back({mode, large, reinterpret_cast<const void*>(evaluate_tensor_kernel<Format, large, place>)});
  kernels.push_back({mode, small, reinterpret_cast<const void*>(evaluate_tensor_kernel<Format, small, place>)});
  if constexpr (Format::kTile == 16)
    kernels.push_back(
        {mode, kWarpTile, reinterpret_cast<const void*>(evaluate_tensor_kernel<Format, kWarpTile, place>)});
}

}  // namespace

void add_tensor_kernels(std::vector<EvaluateKernel>& kernels) {
  add<Tf32, WeightPlace::global>(EvaluationMode::tf32, kernels);
  add<Bf16, WeightPlace::global>(EvaluationMode::bf16, kernels);
  add<Fp16, WeightPlace::global>(EvaluationMode::fp16, kernels);
  add<Tf32, WeightPlace::shared>(EvaluationMode::tf32_shared, kernels);
  add<Bf16, WeightPlace::shared>(EvaluationMode::bf16_shared, kernels);
  add<Fp16, WeightPlace::shared>(EvaluationMode::fp16_shared, kernels);
}

}  // namespace lockstep::cuda

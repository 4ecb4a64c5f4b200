// The kernels that evaluate nets on tensor cores: each format, each tile size.
#include "lockstep/kernels/cuda/evaluate_kernels.h"
#include "lockstep/kernels/cuda/tensor_kernel.cuh"

namespace lockstep::cuda {
namespace {

template <class Format, int samples>
__global__ void __launch_bounds__(kBlockThreads, 2)
    evaluate_tensor_kernel(const __grid_constant__ TensorLaunch launch) {
  extern __shared__ __align__(16) unsigned char evaluate_shared[];
  evaluate_tensor_tiles<Format, samples>(launch, evaluate_shared);
}

template <class Format>
void add(EvaluationMode mode, std::vector<EvaluateKernel>& kernels) {
  constexpr int large = kTensorTiles[0], small = kTensorTiles[1];
  kernels.push_back({mode, large, reinterpret_cast<const void*>(evaluate_tensor_kernel<Format, large>)});
  kernels.push_back({mode, small, reinterpret_cast<const void*>(evaluate_tensor_kernel<Format, small>)});
}

}  // namespace

void add_tensor_kernels(std::vector<EvaluateKernel>& kernels) {
  add<Tf32>(EvaluationMode::tf32, kernels);
  add<Bf16>(EvaluationMode::bf16, kernels);
  add<Fp16>(EvaluationMode::fp16, kernels);
}

}  // namespace lockstep::cuda

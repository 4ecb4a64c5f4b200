// The kernels of float32 states for blocks that evaluate nets together on tensor cores, one a format.
#include "lockstep/ode/cuda/tensor_tile.cuh"
#include "lockstep/ode/cuda/tile_kernel.cuh"

namespace lockstep::ode::cuda {
void add_tensor_tile_kernels(std::vector<CompiledKernel>& kernels) {
  kernels.push_back(describe_tile_kernel<TensorTile<lockstep::cuda::Tf32>>("tiles_tf32"));
  kernels.push_back(describe_tile_kernel<TensorTile<lockstep::cuda::Bf16>>("tiles_bf16"));
  kernels.push_back(describe_tile_kernel<TensorTile<lockstep::cuda::Fp16>>("tiles_fp16"));
}
}  // namespace lockstep::ode::cuda

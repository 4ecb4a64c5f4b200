// The kernel of float32 states for blocks that evaluate nets together.
#include "lockstep/ode/cuda/tile_kernel.cuh"

namespace lockstep::ode::cuda {
void add_tile_kernel_f32(std::vector<CompiledKernel>& kernels) {
  kernels.push_back(describe_tile_kernel<FmaTile<float>>("tiles_f32"));
}
}  // namespace lockstep::ode::cuda

// The kernel of float64 states for blocks that evaluate nets together.
#include "lockstep/ode/cuda/tile_kernel.cuh"

namespace lockstep::ode::cuda {
void add_tile_kernel_f64(std::vector<CompiledKernel>& kernels) {
  kernels.push_back(describe_tile_kernel<FmaTile<double>>("tiles_f64"));
}
}  // namespace lockstep::ode::cuda

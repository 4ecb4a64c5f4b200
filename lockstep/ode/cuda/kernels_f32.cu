// The kernels of float32 states.
#include "lockstep/ode/cuda/kernels.cuh"

namespace lockstep::ode::cuda {

template __global__ void contraction_probe<float>(const float*, const float*, const float*, float*);

void add_kernels_f32(std::vector<CompiledKernel>& kernels) {
  for_each_kernel<float>(AddKernel{kernels});
  add_tile_kernel_f32(kernels);
  add_tensor_tile_kernels(kernels);
}
}  // namespace lockstep::ode::cuda

// The kernels of float64 states.
#include "lockstep/ode/cuda/kernels.cuh"

namespace lockstep::ode::cuda {

template __global__ void contraction_probe<double>(const double*, const double*, const double*, double*);

void add_kernels_f64(std::vector<CompiledKernel>& kernels) {
  for_each_kernel<double>(AddKernel{kernels});
  add_tile_kernel_f64(kernels);
}
}  // namespace lockstep::ode::cuda

// The evaluation kernels of float64.
#include "lockstep/kernels/cuda/evaluate_kernels.cuh"

namespace lockstep::cuda {

void add_evaluate_kernels_f64(std::vector<EvaluateKernel>& kernels) {
  for_each_tile_size<double>(AddEvaluateKernel<double>{kernels});
}

}  // namespace lockstep::cuda

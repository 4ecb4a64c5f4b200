// The evaluation kernels of float32.
#include "lockstep/kernels/cuda/evaluate_kernels.cuh"

namespace lockstep::cuda {

void add_evaluate_kernels_f32(std::vector<EvaluateKernel>& kernels) {
  for_each_tile_size<float>(AddEvaluateKernel<float>{kernels});
}

}  // namespace lockstep::cuda

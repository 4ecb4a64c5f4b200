// The kernels of graphs in float32.
#include "lockstep/kernels/cuda/graph_kernels.cuh"

namespace lockstep::cuda {

void add_graph_kernels_f32(std::vector<EvaluateKernel>& kernels) {
  for_each_graph_tile<float>(AddGraphKernel<float>{kernels});
}

}  // namespace lockstep::cuda

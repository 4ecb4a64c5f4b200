// The kernels of graphs in float64.
#include "lockstep/kernels/cuda/graph_kernels.cuh"

namespace lockstep::cuda {

void add_graph_kernels_f64(std::vector<EvaluateKernel>& kernels) {
  for_each_graph_tile<double>(AddGraphKernel<double>{kernels});
}

}  // namespace lockstep::cuda

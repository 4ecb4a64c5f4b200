// A kernel round the evaluation of graphs for each tile size.
#pragma once

#include "lockstep/kernels/cuda/evaluate_kernels.h"
#include "lockstep/kernels/cuda/graph_kernel.cuh"

namespace lockstep::cuda {

template <class T, int samples>
__global__ void __launch_bounds__(kBlockThreads, 2) graph_kernel(const __grid_constant__ GraphLaunch<T> launch) {
  extern __shared__ __align__(16) unsigned char graph_shared[];
  evaluate_graph_tiles<T, samples>(launch, graph_shared);
}

template <class T>
struct AddGraphKernel {
  std::vector<EvaluateKernel>& kernels;
  template <int samples>
  void operator()() const {
    kernels.push_back({sizeof(T) == 8 ? EvaluationMode::graph_f64 : EvaluationMode::graph_f32, samples,
                       reinterpret_cast<const void*>(graph_kernel<T, samples>)});
  }
};

}  // namespace lockstep::cuda

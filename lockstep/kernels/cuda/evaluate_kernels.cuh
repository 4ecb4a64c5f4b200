// A kernel round the evaluation of each tile size: two blocks a multiprocessor, one computing while the other waits.
#pragma once

#include "lockstep/kernels/cuda/evaluate_kernel.cuh"
#include "lockstep/kernels/cuda/evaluate_kernels.h"

namespace lockstep::cuda {

template <class T, int samples, int widest>
__global__ void __launch_bounds__(kBlockThreads, 2) evaluate_kernel(const __grid_constant__ EvaluateLaunch<T> launch) {
  extern __shared__ __align__(16) unsigned char evaluate_shared[];
  evaluate_tiles<T, samples, widest>(launch, evaluate_shared);
}

template <class T>
struct AddEvaluateKernel {
  std::vector<EvaluateKernel>& kernels;
  template <int samples, int widest>
  void operator()() const {
    kernels.push_back({sizeof(T) == 8 ? EvaluationMode::f64 : EvaluationMode::f32, samples,
                       reinterpret_cast<const void*>(evaluate_kernel<T, samples, widest>)});
  }
};

}  // namespace lockstep::cuda

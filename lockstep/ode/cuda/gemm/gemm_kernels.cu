// The kernels round the bodies of round.cuh.
#include "lockstep/ode/cuda/gemm/gemm_kernels.h"
#include "lockstep/ode/cuda/gemm/round.cuh"

namespace lockstep::ode::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kGemmThreads)
    gemm_start(const GemmLaunch<T>* launch, const __grid_constant__ Ensemble<T> ensemble) {
  static_assert(sizeof launch + sizeof ensemble <= kMostCaptured);
  start_columns(*launch, ensemble);
}
template <class T>
__global__ void __launch_bounds__(kGemmThreads) gemm_advance(const GemmLaunch<T>* launch, bool counts) {
  advance_columns(*launch, counts);
}
template <class T>
__global__ void __launch_bounds__(kCompactionThreads) gemm_plan(const GemmLaunch<T>* launch, std::int32_t target) {
  __shared__ std::int32_t shared[kCompactionSharedBytes / sizeof(std::int32_t)];
  plan_moves(*launch, target, shared);
}
template <class T>
__global__ void __launch_bounds__(kGemmThreads) gemm_move(const GemmLaunch<T>* launch) {
  move_columns(*launch);
}
template <class T>
__global__ void __launch_bounds__(kGemmThreads) gemm_activate(const __grid_constant__ ActivationLaunch<T> launch) {
  activate_products(launch);
}

__global__ void gemm_count(std::int32_t* busy) { end_pass(busy); }

}  // namespace

template <class T>
GemmKernels gemm_kernels() {
  return {reinterpret_cast<const void*>(gemm_start<T>), reinterpret_cast<const void*>(gemm_advance<T>),
          reinterpret_cast<const void*>(gemm_plan<T>), reinterpret_cast<const void*>(gemm_move<T>),
          reinterpret_cast<const void*>(gemm_activate<T>)};
}
template GemmKernels gemm_kernels<float>();
template GemmKernels gemm_kernels<double>();

const void* gemm_count_kernel() { return reinterpret_cast<const void*>(gemm_count); }

}  // namespace lockstep::ode::cuda

// The kernels that let a graph repeat itself, in a module of their own: it asks for a driver that knows such graphs
// (CUDA 12.4), and is loaded where one is made. With an older driver the other kernels still run, counted by the host.
#include "lockstep/ode/cuda/gemm/gemm_kernels.h"
#include "lockstep/ode/cuda/gemm/round.cuh"

namespace lockstep::ode::cuda {
namespace {

__global__ void gemm_enter(const std::int32_t* busy, std::int32_t floor, cudaGraphConditionalHandle again) {
  cudaGraphSetConditional(again, has_work(busy, floor) ? 1 : 0);
}
__global__ void gemm_repeat(std::int32_t* busy, std::int32_t floor, cudaGraphConditionalHandle again) {
  cudaGraphSetConditional(again, end_pass(busy) > floor ? 1 : 0);
}

}  // namespace

const void* gemm_enter_kernel() { return reinterpret_cast<const void*>(gemm_enter); }
const void* gemm_repeat_kernel() { return reinterpret_cast<const void*>(gemm_repeat); }

}  // namespace lockstep::ode::cuda

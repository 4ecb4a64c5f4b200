// The engine cuda_gemm's kernels as the component launches them: defined by gemm_kernels.cu and gemm_graph_kernels.cu.
#pragma once

#include <cstddef>

namespace lockstep::ode::cuda {

// Arguments, in order: where a GemmLaunch<T> lies on the device; then, of start, an Ensemble<T>, of advance, a bool:
// count, of plan, the target. activate: an ActivationLaunch<T> alone.
struct GemmKernels {
  const void *start, *advance, *plan, *move, *activate;
};
template <class T>
GemmKernels gemm_kernels();

// Before the first pass of a repetition, and at the end of each: GemmLaunch::busy, the floor, and the graph's
// cudaGraphConditionalHandle. At the end of a pass that nothing repeats: GemmLaunch::busy.
const void* gemm_enter_kernel();
const void* gemm_repeat_kernel();
const void* gemm_count_kernel();

}  // namespace lockstep::ode::cuda

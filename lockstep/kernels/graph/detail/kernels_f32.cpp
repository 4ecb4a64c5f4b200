// The graph kernels of float32, once for each instruction set.
#include "lockstep/kernels/lane/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/graph/detail/kernels_f32.cpp"
#include <hwy/foreach_target.h>
//
#include "lockstep/kernels/graph/detail/kernels-inl.h"
#include "lockstep/kernels/lane/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
const graph::Kernels<float>* graph_kernels_f32() { return graph_kernels::kernel_table<float>(); }
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::graph {
template <>
const Kernels<float>& kernels_for<float>(CpuTarget target) {
  return *LOCKSTEP_CHOOSE(target, graph_kernels_f32)();
}
}  // namespace lockstep::graph
#endif

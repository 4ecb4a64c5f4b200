// The graph kernels of float64, once for each instruction set.
#include "lockstep/kernels/lane/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/graph/detail/kernels_f64.cpp"
#include <hwy/foreach_target.h>
//
#include "lockstep/kernels/graph/detail/kernels-inl.h"
#include "lockstep/kernels/lane/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
const graph::Kernels<double>* graph_kernels_f64() { return graph_kernels::kernel_table<double>(); }
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::graph {
template <>
const Kernels<double>& kernels_for<double>(CpuTarget target) {
  return *LOCKSTEP_CHOOSE(target, graph_kernels_f64)();
}
}  // namespace lockstep::graph
#endif

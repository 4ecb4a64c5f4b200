// Reverse mode of float32, once for each instruction set.
#include "lockstep/kernels/lane/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/mlp/detail/reverse_f32.cpp"
#include <hwy/foreach_target.h>
//
#include "lockstep/kernels/lane/dispatch.h"
#include "lockstep/kernels/mlp/detail/reverse_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
const mlp::ReverseKernels<float>* reverse_kernels_f32() { return mlp_kernels::reverse_table<float>(); }
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::mlp {
template <>
const ReverseKernels<float>& reverse_kernels_for<float>(CpuTarget target) {
  return *LOCKSTEP_CHOOSE(target, reverse_kernels_f32)();
}
}  // namespace lockstep::mlp
#endif

// Reverse mode of one instruction set. Include after lane/targets.h and hwy/foreach_target.h, outside any namespace.
#if defined(LOCKSTEP_KERNELS_MLP_REVERSE_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_MLP_REVERSE_KERNELS_INL_H_
#undef LOCKSTEP_KERNELS_MLP_REVERSE_KERNELS_INL_H_
#else
#define LOCKSTEP_KERNELS_MLP_REVERSE_KERNELS_INL_H_
#endif

#include "lockstep/kernels/mlp/detail/kernels-inl.h"
#include "lockstep/kernels/mlp/detail/reverse_packed.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace mlp_kernels {

using mlp::kSlots;
using mlp::Places;
using mlp::ReverseKernels;
using mlp::ReverseLayer;
using mlp::ReverseNet;
using mlp::Vectors;

#include "lockstep/kernels/mlp/detail/derivative_pass-inl.h"
//
#include "lockstep/kernels/mlp/detail/back_kernel-inl.h"
#include "lockstep/kernels/mlp/detail/weight_gradient-inl.h"
//
#include "lockstep/kernels/mlp/detail/thin_back-inl.h"
#include "lockstep/kernels/mlp/detail/thin_gradient-inl.h"
//
#include "lockstep/kernels/mlp/detail/fused_sample-inl.h"
//
#include "lockstep/kernels/mlp/detail/reverse_sample-inl.h"
#include "lockstep/kernels/mlp/detail/reverse_tile-inl.h"
//
#include "lockstep/kernels/mlp/detail/derivative_tile-inl.h"
#include "lockstep/kernels/mlp/detail/few_gradient-inl.h"
#include "lockstep/kernels/mlp/detail/regression-inl.h"

template <class T>
void transpose(const T* from, size_t rows, size_t columns, T* to, size_t to_stride) {
  const size_t lanes = hn::Lanes(Register<T>());
  size_t k = 0;
  if (lanes == 1 || rows >= kQuad<T>) {
    for (; k + lanes <= columns; k += lanes) {
      lanes_to_rows(from + k, columns, rows, to + k * to_stride, static_cast<ptrdiff_t>(to_stride));
    }
  }
  for (; k < columns; ++k) {
    for (size_t j = 0; j < rows; ++j) to[k * to_stride + j] = from[j * columns + k];
  }
}

template <class T>
const ReverseKernels<T>* reverse_table() {
  static constexpr ReverseKernels<T> table = {evaluate_recording<T>, reverse_tile<T>,   accumulate_tiles<T>,
                                              evaluate_sample<T>,    reverse_sample<T>, accumulate_samples<T>,
                                              regression_chunk<T>,   jvp<T>,            vjp<T>,
                                              transpose<T>};
  return &table;
}

}  // namespace mlp_kernels
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target

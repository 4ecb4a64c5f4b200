// The MLP kernels of one instruction set. Include after lane/targets.h and hwy/foreach_target.h, outside any namespace.
#if defined(LOCKSTEP_KERNELS_MLP_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_MLP_KERNELS_INL_H_
#undef LOCKSTEP_KERNELS_MLP_KERNELS_INL_H_
#else
#define LOCKSTEP_KERNELS_MLP_KERNELS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "lockstep/kernels/lane/lane_group-inl.h"
#include "lockstep/kernels/math/math_hwy-inl.h"
#include "lockstep/kernels/mlp/detail/packed.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace mlp_kernels {

using mlp::Kernels;
using mlp::Packed;
using mlp::PackedLayer;
using mlp::Place;
using mlp::StripStep;
using mlp::TanhBlock;
using mlp::ThinBlock;
using mlp::ThinRows;
using mlp::TileBlock;

template <class T>
using Register = hn::ScalableTag<T>;

// Sums in registers: outputs times two in a tile block; in a row block of n samples, n times kRowRegisters[n - 1].
// About 24 of the 32 registers of AVX-512 and NEON, 12 of the 16 of AVX2; the rest hold inputs and weights. Where a
// core begins two 512-bit operations a cycle, each load beside them costs: tile blocks of 14 take 0.98 of the time
// of 12.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kTileOutputs = 14;
inline constexpr int kRowRegisters[] = {8, 8, 7, 6, 5, 4, 3, 3};
#elif HWY_TARGET == HWY_NEON
inline constexpr int kTileOutputs = 12;
inline constexpr int kRowRegisters[] = {8, 8, 7, 6, 5, 4};
#elif HWY_TARGET == HWY_AVX2
inline constexpr int kTileOutputs = 6;
inline constexpr int kRowRegisters[] = {8, 4, 3, 3, 2, 2};
#else
inline constexpr int kTileOutputs = 4;
inline constexpr int kRowRegisters[] = {1};
#endif
inline constexpr int kRowsAtOnce = std::size(kRowRegisters);
inline constexpr int kMostRowRegisters = kRowRegisters[0];

#include "lockstep/kernels/mlp/detail/tanh_fours-inl.h"
//
#include "lockstep/kernels/mlp/detail/activation_pass-inl.h"
#include "lockstep/kernels/mlp/detail/prefetch-inl.h"
//
#include "lockstep/kernels/mlp/detail/row_kernel-inl.h"
#include "lockstep/kernels/mlp/detail/tile_kernel-inl.h"
#include "lockstep/kernels/mlp/detail/transpose-inl.h"
//
#include "lockstep/kernels/mlp/detail/thin_kernel-inl.h"
//
#include "lockstep/kernels/mlp/detail/strip_steps-inl.h"
//
#include "lockstep/kernels/mlp/detail/far_kernel-inl.h"
//
#include "lockstep/kernels/mlp/detail/evaluate-inl.h"

template <class T>
void layer_lanes(const PackedLayer<T>& layer, const T* x, size_t x_stride, T* y, size_t y_stride, int registers) {
  tile_layer(layer, x, x_stride, y, y_stride, registers);
}
template <class T>
void layer_lanes_beside_tanh(const PackedLayer<T>& layer, const T* x, T* pending, size_t x_stride, T* y,
                             size_t y_stride, bool defers) {
  tile_layer_beside_tanh(layer, x, pending, x_stride, y, y_stride, defers);
}

template <class T>
const Kernels<T>* kernel_table() {
  static constexpr Kernels<T> table = {
      .lanes = hn::MaxLanes(Register<T>()),
      .tile_outputs = kTileOutputs,
      .row_registers = kRowRegisters,
      .evaluate = evaluate_samples<T>,
      .evaluate_tile = evaluate_lanes<T>,
      .layer_lanes = layer_lanes<T>,
      .defers_tanh = defers_tanh<T>,
      .is_thin = is_thin<T>,
      .has_few_inputs = has_few_inputs<T>,
      .make_steps = make_steps<T>,
      .tanh_outputs = kTanhOutputs,
      .layer_lanes_beside_tanh = layer_lanes_beside_tanh<T>,
      .layer_rows = row_layer<T>,
      .load = load_lanes<T>,
      .store = store_lanes<T>,
      .activation = activation_pass<T>,
  };
  return &table;
}

}  // namespace mlp_kernels
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target

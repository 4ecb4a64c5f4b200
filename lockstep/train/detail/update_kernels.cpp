// One loop for each form of step, number type and instruction set; lanes are parameters.
#include "lockstep/train/detail/update_kernels.h"

#include "lockstep/kernels/lane/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/train/detail/update_kernels.cpp"
#include <hwy/foreach_target.h>
//
#include "lockstep/kernels/lane/dispatch.h"
#include "lockstep/kernels/lane/hwy_lane-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace update_kernels {

using train::detail::ChunkDot;
using train::detail::Update;
using train::detail::UpdateLoop;
using train::detail::UpdateScalars;

template <class T, Update kUpdate>
HWY_INLINE void update_register(T* parameters, const T* gradient, T* first, T* second, const UpdateScalars<T>& s) {
  using D = hn::ScalableTag<T>;
  using L = HwyLane<D>;
  using V = typename L::V;
  constexpr bool kHasSecond = kUpdate != Update::momentum && kUpdate != Update::nesterov;
  const D d;
  V x = hn::LoadU(d, parameters);
  const V g = L::fma(L::set(s.added_decay), x, hn::LoadU(d, gradient));
  V m = hn::LoadU(d, first);
  x = L::mul(x, L::set(s.keep));
  if constexpr (!kHasSecond) {
    m = L::fma(L::set(s.beta1), m, g);
    const V direction = kUpdate == Update::momentum ? m : L::fma(L::set(s.beta1), m, g);
    x = L::nfma(L::set(s.step), direction, x);
  } else {
    m = L::fma(L::set(s.beta1), m, L::mul(L::set(s.beta1_rest), g));
    V v = hn::LoadU(d, second);
    if constexpr (kUpdate == Update::maximum) {
      v = L::max(L::add(L::abs(g), L::set(s.epsilon)), L::mul(L::set(s.beta2), v));
      x = L::sub(x, L::div(L::mul(L::set(s.step), m), v));
    } else {
      v = L::fma(L::set(s.beta2), v, L::mul(L::mul(L::set(s.beta2_rest), g), g));
      if constexpr (kUpdate == Update::mean_alone) {
        x = L::nfma(L::set(s.step), m, x);
      } else {
        const V denominator = L::fma(L::set(s.root_scale), L::sqrt(v), L::set(s.epsilon));
        x = L::sub(x, L::div(L::mul(L::set(s.step), m), denominator));
      }
    }
    hn::StoreU(v, d, second);
  }
  hn::StoreU(m, d, first);
  hn::StoreU(x, d, parameters);
}

template <class T, Update kUpdate>
void update_all(T* parameters, const T* gradient, T* first, T* second, size_t count, const UpdateScalars<T>& scalars) {
  constexpr bool kHasSecond = kUpdate != Update::momentum && kUpdate != Update::nesterov;
  const UpdateScalars<T> s = scalars;  // a copy that the stores below cannot alias
  const size_t lanes = hn::Lanes(hn::ScalableTag<T>());
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    update_register<T, kUpdate>(parameters + i, gradient + i, first + i, kHasSecond ? second + i : nullptr, s);
  }
  if (i == count) return;
  // The last, partial register goes through a copy padded with zeros.
  HWY_ALIGN T copy[4][HWY_MAX_BYTES / sizeof(T)] = {};
  T* const arrays[4] = {parameters, nullptr, first, kHasSecond ? second : nullptr};
  const size_t rest = count - i;
  for (size_t j = 0; j < rest; ++j) {
    copy[1][j] = gradient[i + j];
    for (const size_t a : {0, 2, 3}) {
      if (arrays[a] != nullptr) copy[a][j] = arrays[a][i + j];
    }
  }
  update_register<T, kUpdate>(copy[0], copy[1], copy[2], copy[3], s);
  for (size_t j = 0; j < rest; ++j) {
    for (const size_t a : {0, 2, 3}) {
      if (arrays[a] != nullptr) arrays[a][i + j] = copy[a][j];
    }
  }
}

template <class T>
UpdateLoop<T> loop_of(Update update) {
  switch (update) {
    case Update::momentum:
      return update_all<T, Update::momentum>;
    case Update::nesterov:
      return update_all<T, Update::nesterov>;
    case Update::root_mean_square:
      return update_all<T, Update::root_mean_square>;
    case Update::maximum:
      return update_all<T, Update::maximum>;
    case Update::mean_alone:
      break;
  }
  return update_all<T, Update::mean_alone>;
}

// The sums of sums.h.
constexpr size_t kSlots = 16;

HWY_INLINE auto load_as_double(const double* from) { return hn::LoadU(hn::ScalableTag<double>(), from); }
HWY_INLINE auto load_as_double(const float* from) {
  const hn::ScalableTag<double> d;
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, decltype(d)>(), from));
}

template <class T>
double dot_of_chunk(const T* a, const T* b, size_t n) {
  const hn::ScalableTag<double> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<double>()), kRegisters = kSlots / kLanes;
  hn::Vec<decltype(d)> sums[kRegisters];
#pragma GCC unroll 16
  for (size_t r = 0; r < kRegisters; ++r) sums[r] = hn::Zero(d);
  size_t i = 0;
  for (; i + kSlots <= n; i += kSlots) {
#pragma GCC unroll 16
    for (size_t r = 0; r < kRegisters; ++r) {
      const size_t at = i + r * kLanes;
      sums[r] = hn::Add(sums[r], hn::Mul(load_as_double(a + at), load_as_double(b + at)));
    }
  }
  HWY_ALIGN double slots[kSlots];
  for (size_t r = 0; r < kRegisters; ++r) hn::Store(sums[r], d, slots + r * kLanes);
  for (size_t s = 0; i + s < n; ++s) slots[s] += static_cast<double>(a[i + s]) * static_cast<double>(b[i + s]);
  for (size_t width = kSlots / 2; width > 0; width /= 2) {
    for (size_t s = 0; s < width; ++s) slots[s] += slots[s + width];
  }
  return slots[0];
}

ChunkDot<float> dot_f32() { return dot_of_chunk<float>; }
ChunkDot<double> dot_f64() { return dot_of_chunk<double>; }

UpdateLoop<float> loop_f32(Update update) { return loop_of<float>(update); }
UpdateLoop<double> loop_f64(Update update) { return loop_of<double>(update); }

}  // namespace update_kernels
using update_kernels::dot_f32;
using update_kernels::dot_f64;
using update_kernels::loop_f32;
using update_kernels::loop_f64;
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::train::detail {
template <>
UpdateLoop<float> update_loop<float>(Update update, CpuTarget target) {
  return LOCKSTEP_CHOOSE(target, loop_f32)(update);
}
template <>
UpdateLoop<double> update_loop<double>(Update update, CpuTarget target) {
  return LOCKSTEP_CHOOSE(target, loop_f64)(update);
}
template <>
ChunkDot<float> chunk_dot<float>(CpuTarget target) {
  return LOCKSTEP_CHOOSE(target, dot_f32)();
}
template <>
ChunkDot<double> chunk_dot<double>(CpuTarget target) {
  return LOCKSTEP_CHOOSE(target, dot_f64)();
}
}  // namespace lockstep::train::detail
#endif

#include "lockstep/ode/cpu/adjoint_kernels.h"

#include <algorithm>

#include "lockstep/kernels/lane/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/ode/cpu/adjoint_kernels.cpp"
#include <hwy/foreach_target.h>

#include "lockstep/ode/cpu/linear_tile-inl.h"
#include "lockstep/ode/cpu/tile_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

using ode::cpu::LoweredTableau;
using ode::cpu::StageSum;
using ode::cpu::TileCotangents;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Lane = HwyLane<Tag<T>>;

// body(register's first lane, index of its first number) for the registers of `rows` rows that hold the first `lanes`
// lanes.
template <class T, class Body>
HWY_INLINE void each_register(std::size_t rows, int lanes, const Body& body) {
  const int n = static_cast<int>(hn::Lanes(Tag<T>()));
  const auto each_up_to = [&](int end) HWY_ATTR {
    for (std::size_t row = 0; row < rows; ++row) {
      for (int v = 0; v < end; v += n) body(v, row * kTileLanes + static_cast<std::size_t>(v));
    }
  };
  if (lanes > kTileLanes - n) return each_up_to(kTileLanes);  // a number that the compiler knows
  each_up_to(lanes);
}

template <class T>
void begin(TileCotangents<T>& bar, std::size_t components, int stages, int total_stages, LaneMask accepted) {
  const Tag<T> d;
  const std::size_t size = components * kTileLanes;
  T* const k_last = bar.k.data() + static_cast<std::size_t>(stages - 1) * size;
  each_register<T>(components * static_cast<std::size_t>(total_stages), bar.lanes,
                   [&](int, std::size_t at) { hn::Store(hn::Zero(d), d, bar.k.data() + at); });
  each_register<T>(components, bar.lanes, [&](int v, std::size_t at) {
    const auto taken = lanes_of(d, accepted, v);
    const auto y = hn::Load(d, bar.y.data() + at);
    hn::Store(hn::IfThenElseZero(taken, hn::Load(d, bar.k_first.data() + at)), d, k_last + at);
    hn::Store(hn::IfThenElseZero(taken, y), d, bar.y1.data() + at);
    hn::Store(hn::Zero(d), d, bar.stage_argument.data() + at);
    hn::Store(hn::IfThenZeroElse(taken, y), d, bar.y.data() + at);
  });
}

template <class T>
void interpolate(TileCotangents<T>& bar, std::size_t components, const LoweredTableau<T>& tableau) {
  using L = Lane<T>;
  const Tag<T> d;
  const DoubleTag dd;
  const int degree = tableau.source->interpolant_degree;
  alignas(64) T weights[kTileLanes];
  each_register<T>(components, bar.lanes, [&](int v, std::size_t at) {
    const auto saved = hn::Load(d, bar.saved.data() + at);
    hn::Store(L::add(hn::Load(d, bar.y.data() + at), saved), d, bar.y.data() + at);
    hn::Store(L::mul(hn::Load(d, bar.h + v), saved), d, bar.saved.data() + at);
  });
  for (const std::size_t j : tableau.interpolant_stages) {
    const double* p = &tableau.source->interpolant[j * static_cast<std::size_t>(degree)];
    for (int v = 0; v < bar.lanes; v += static_cast<int>(hn::Lanes(dd))) {
      const auto weight = interpolant_weight<LD>(p, degree, hn::Load(dd, bar.theta + v));
      if constexpr (sizeof(T) == 8) {
        hn::Store(weight, dd, weights + v);
      } else {
        const hn::Rebind<float, DoubleTag> d32;
        hn::Store(hn::DemoteTo(d32, weight), d32, weights + v);
      }
    }
    T* const k = bar.k.data() + j * components * kTileLanes;
    each_register<T>(components, bar.lanes, [&](int v, std::size_t at) {
      hn::Store(L::fma(hn::Load(d, weights + v), hn::Load(d, bar.saved.data() + at), hn::Load(d, k + at)), d, k + at);
    });
  }
}

template <class T>
void stage(TileCotangents<T>& bar, std::size_t components, const StageSum<T>& row) {
  using L = Lane<T>;
  const Tag<T> d;
  const std::size_t size = components * kTileLanes;
  each_register<T>(components, bar.lanes, [&](int v, std::size_t at) {
    const auto argument = hn::Load(d, bar.stage_argument.data() + at);
    hn::Store(L::add(hn::Load(d, bar.y.data() + at), argument), d, bar.y.data() + at);
    hn::Store(hn::Zero(d), d, bar.stage_argument.data() + at);
    const auto scaled = L::mul(hn::Load(d, bar.h + v), argument);
    for (const auto& term : row.terms) {
      T* const k = bar.k.data() + term.stage * size + at;
      hn::Store(L::fma(L::set(term.weight), scaled, hn::Load(d, k)), d, k);
    }
  });
}

void stage_times(const double* t, const double* h, double c, double* out, int lanes) {
  const DoubleTag d;
  for (int v = 0; v < lanes; v += static_cast<int>(hn::Lanes(d))) {
    hn::Store(LD::fma(LD::set(c), hn::Load(d, h + v), hn::Load(d, t + v)), d, out + v);
  }
}

template <class T>
void end(TileCotangents<T>& bar, std::size_t components, LaneMask accepted) {
  const Tag<T> d;
  each_register<T>(components, bar.lanes, [&](int v, std::size_t at) {
    const auto taken = lanes_of(d, accepted, v);
    hn::Store(hn::IfThenElse(taken, hn::Load(d, bar.k.data() + at), hn::Load(d, bar.k_first.data() + at)), d,
              bar.k_first.data() + at);
  });
}

template <class T>
void merge(T* in_out, std::size_t rows, std::size_t width, const T* other, std::size_t components, LaneMask kept,
           int lanes) {
  const Tag<T> d;
  for (int v = 0; v < lanes; v += static_cast<int>(hn::Lanes(d))) {
    const auto keep = lanes_of(d, kept, v);
    T* at = in_out + v;
    for (std::size_t row = 0; row < rows; row += components) {
      const T* from = other + v;
      for (std::size_t i = std::min(components, rows - row); i-- > 0; at += width, from += kTileLanes)
        hn::Store(hn::IfThenElse(keep, hn::Load(d, at), hn::Load(d, from)), d, at);
    }
  }
}

template <class T, class Body>
HWY_INLINE void each_system(const LinearTile<T>& linear, int lanes, const Body& body) {
  for (int v = 0; v < lanes; v += static_cast<int>(hn::Lanes(Tag<T>()))) body(LinearLanes<T>(linear, v), v);
}
template <class T>
void factor(const LinearTile<T>& linear, T inverse_gamma, const T* h, int lanes) {
  each_system(linear, lanes, [&](const LinearLanes<T>& system, int v) {
    system.shift(inverse_gamma, hn::Load(Tag<T>(), h + v));
    system.factor();
  });
}
template <class T>
void solve(const LinearTile<T>& linear, T* rows, int lanes) {
  each_system(linear, lanes, [&](const LinearLanes<T>& system, int) { system.solve(rows); });
}
template <class T>
void solve_transposed(const LinearTile<T>& linear, T* rows, int lanes) {
  each_system(linear, lanes, [&](const LinearLanes<T>& system, int) { system.solve_transposed(rows); });
}

template <class T>
void spread(TileCotangents<T>& bar, std::size_t components, const StageSum<T>& row, const T* from) {
  using L = Lane<T>;
  const Tag<T> d;
  const std::size_t size = components * kTileLanes;
  each_register<T>(components, bar.lanes, [&](int, std::size_t at) {
    for (const auto& term : row.terms) {
      T* const k = bar.k.data() + term.stage * size + at;
      hn::Store(L::fma(L::set(term.weight), hn::Load(d, from + at), hn::Load(d, k)), d, k);
    }
  });
}
template <class T>
void scale(const T* h, std::size_t rows, const T* in, T* out, int lanes) {
  const Tag<T> d;
  each_register<T>(rows, lanes, [&](int v, std::size_t at) {
    hn::Store(Lane<T>::mul(hn::Load(d, h + v), hn::Load(d, in + at)), d, out + at);
  });
}

template <class T>
void add_scaled(const T* h, std::size_t rows, const T* in, T* out, int lanes) {
  using L = Lane<T>;
  const Tag<T> d;
  each_register<T>(rows, lanes, [&](int v, std::size_t at) {
    hn::Store(L::add(hn::Load(d, out + at), L::mul(hn::Load(d, h + v), hn::Load(d, in + at))), d, out + at);
  });
}

template <class T>
void stage_sum(const T* h, std::size_t rows, const StageSum<T>& row, const T* k, const T* from, T* out, int lanes) {
  using L = Lane<T>;
  const Tag<T> d;
  each_register<T>(rows, lanes, [&](int v, std::size_t at) {
    const auto step = hn::Load(d, h + v);
    auto sum = from == nullptr ? hn::Zero(d) : hn::Load(d, from + at);
    for (const auto& term : row.terms) {
      const auto scaled =
          L::mul(L::mul(step, L::set(term.weight)), hn::Load(d, k + term.stage * rows * kTileLanes + at));
      sum = L::add(sum, scaled);
    }
    hn::Store(sum, d, out + at);
  });
}

template <class T>
void interpolant_weights(const LoweredTableau<T>& tableau, double theta, double h, T* weights) {
  const int degree = tableau.source->interpolant_degree;
  for (const std::size_t j : tableau.interpolant_stages) {
    const double* p = &tableau.source->interpolant[j * static_cast<std::size_t>(degree)];
    *weights++ = static_cast<T>(h * hn::GetLane(interpolant_weight<LD>(p, degree, LD::set(theta))));
  }
}

// With c the error e cut at the threshold, h(e) = c (e + (e - c)): the operations of e e where nothing is cut.
template <bool kCut, class T>
HWY_INLINE void squared_error_eight(const T* states, const double* targets, const double* weights,
                                    const double* thresholds, T* bar, double* sums) {
  const DoubleTag d;
  for (std::size_t v = 0; v < 8; v += hn::Lanes(d)) {
    hn::Vec<DoubleTag> state;
    if constexpr (sizeof(T) == 8) {
      state = hn::LoadU(d, states + v);
    } else {
      state = hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, DoubleTag>(), states + v));
    }
    const auto target = hn::LoadU(d, targets + v);
    const auto difference = hn::IfThenElseZero(LD::le(target, target), LD::sub(state, target));
    auto cut = difference, other = difference;
    if constexpr (kCut) {
      const auto threshold = hn::LoadU(d, thresholds + v);
      cut = LD::max(LD::min(difference, threshold), LD::sub(hn::Zero(d), threshold));
      other = LD::add(difference, LD::sub(difference, cut));
    }
    const auto weighted = LD::mul(hn::LoadU(d, weights + v), cut);
    hn::StoreU(LD::fma(weighted, other, hn::LoadU(d, sums + v)), d, sums + v);
    const auto slope = LD::add(weighted, weighted);
    if constexpr (sizeof(T) == 8) {
      hn::StoreU(slope, d, bar + v);
    } else {
      const hn::Rebind<float, DoubleTag> d32;
      hn::StoreU(hn::DemoteTo(d32, slope), d32, bar + v);
    }
  }
}

template <bool kCut, class T>
double sum_of_squared_errors(const T* states, const double* targets, const double* weights, const double* thresholds,
                             std::size_t count, T* bar) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    squared_error_eight<kCut>(states + i, targets + i, weights + i, kCut ? thresholds + i : nullptr, bar + i, sums);
  if (i < count) {
    T last_states[8] = {}, last_bar[8];
    double last_targets[8] = {}, last_weights[8] = {}, last_thresholds[8] = {};
    std::copy(states + i, states + count, last_states);
    std::copy(targets + i, targets + count, last_targets);
    std::copy(weights + i, weights + count, last_weights);
    if (kCut) std::copy(thresholds + i, thresholds + count, last_thresholds);
    squared_error_eight<kCut>(last_states, last_targets, last_weights, last_thresholds, last_bar, sums);
    std::copy(last_bar, last_bar + (count - i), bar + i);
  }
  for (int half = 4; half > 0; half /= 2) {
    for (int s = 0; s < half; ++s) sums[s] += sums[s + half];
  }
  return sums[0];
}

template <class T>
double squared_error(const T* states, const double* targets, const double* weights, const double* thresholds,
                     std::size_t count, T* bar) {
  return thresholds == nullptr ? sum_of_squared_errors<false>(states, targets, weights, thresholds, count, bar)
                               : sum_of_squared_errors<true>(states, targets, weights, thresholds, count, bar);
}

template <class T>
const ode::cpu::AdjointKernels<T>* table() {
  static constexpr ode::cpu::AdjointKernels<T> kTable = {
      begin<T>,        interpolate<T>,      stage<T>,  stage_times, end<T>,        merge<T>,     factor<T>,
      solve<T>,        solve_transposed<T>, spread<T>, scale<T>,    add_scaled<T>, stage_sum<T>, interpolant_weights<T>,
      squared_error<T>};
  return &kTable;
}

}  // namespace

const ode::cpu::AdjointKernels<float>* adjoint_kernels_f32() { return table<float>(); }
const ode::cpu::AdjointKernels<double>* adjoint_kernels_f64() { return table<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "lockstep/kernels/lane/dispatch.h"

namespace lockstep {

template <>
const ode::cpu::AdjointKernels<float>& ode::cpu::adjoint_kernels<float>(CpuTarget target) {
  return *LOCKSTEP_CHOOSE(target, adjoint_kernels_f32)();
}
template <>
const ode::cpu::AdjointKernels<double>& ode::cpu::adjoint_kernels<double>(CpuTarget target) {
  return *LOCKSTEP_CHOOSE(target, adjoint_kernels_f64)();
}

}  // namespace lockstep
#endif

#include "lockstep/ode/cpu/tile_kernels.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "lockstep/kernels/lane/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/ode/cpu/tile_kernels.cpp"
#include <hwy/foreach_target.h>

#include "lockstep/ode/cpu/linear_tile-inl.h"
#include "lockstep/ode/cpu/packed_attempt-inl.h"
#include "lockstep/ode/cpu/tile_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

using ode::cpu::StageSum;

// body(lane group, its first lane) for the registers that hold the first `lanes` lanes.
template <class T, class Body>
HWY_INLINE void each_group(int lanes, const Body& body) {
  using D = hn::ScalableTag<T>;
  constexpr int n = static_cast<int>(hn::MaxLanes(D()));
  int v = 0;
  if constexpr (4 * n <= kTileLanes) {
    for (; lanes - v > 3 * n; v += 4 * n) body(LaneGroup<D, 4>(), v);
  }
  for (; lanes - v > n; v += 2 * n) body(LaneGroup<D, 2>(), v);
  if (v < lanes) body(LaneGroup<D, 1>(), v);
}

// out = y + h sum_j w_j k_j for every component.
template <class T>
HWY_INLINE void combine(TileState<T>& s, const StageSum<T>& sum, const T* HWY_RESTRICT h, T* HWY_RESTRICT out) {
  const std::size_t size = s.components * kTileLanes;
  each_group<T>(s.lanes, [&](auto group, int v) HWY_ATTR {
    using G = decltype(group);
    const auto step = G::load(h + v);
    for (std::size_t at = static_cast<std::size_t>(v); at < size; at += kTileLanes) {
      const auto acc = weigh<G>(s.k.data() + at, size, sum);
      G::store(G::fma(step, acc, G::load(s.y.data() + at)), out + at);
    }
  });
}

template <class T>
HWY_INLINE void evaluate_stage(TileState<T>& s, const StepSettings<T>& settings, const double* t, const T* in,
                               std::size_t i) {
  settings.rhs->evaluate({t, in, s.parameters.data(), s.stage(i), s.lanes}, s.workspace);
}

// Mean squares over components of values / (its atol + rtol |y|), in float64: [lane].
template <class T, class Value>
HWY_INLINE void start_norm(const TileState<T>& s, const StepSettings<T>& settings, double* HWY_RESTRICT out,
                           const Value& value) {
  const DoubleTag d;
  const auto rtol = hn::Set(d, settings.rtol_f64);
  const auto over_n = hn::Set(d, 1.0 / static_cast<double>(s.components));
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d))) {
    auto sum = hn::Zero(d);
    for (std::size_t c = 0; c < s.components; ++c) {
      const std::size_t at = c * kTileLanes + static_cast<std::size_t>(v);
      const auto scale = LD::fma(rtol, LD::abs(widen(s.y.data() + at)), hn::Set(d, settings.atol_f64[c]));
      sum = add_square<LD>(sum, value(at), scale);
    }
    hn::Store(LD::mul(sum, over_n), d, out + v);
  }
}

// First step size: the explicit Euler trial of Hairer, Norsett & Wanner I, II.4.
template <class T>
HWY_INLINE void first_steps(TileState<T>& s, const StepSettings<T>& settings) {
  const DoubleTag d;
  const int n = static_cast<int>(hn::Lanes(d));
  const T* k1 = s.stage(0);
  alignas(64) double d0[kTileLanes], d1[kTileLanes], d2[kTileLanes];
  start_norm(s, settings, d0, [&](std::size_t at) { return widen(s.y.data() + at); });
  start_norm(s, settings, d1, [&](std::size_t at) { return widen(k1 + at); });
  for (int v = 0; v < s.lanes; v += n) {
    const auto t = hn::Load(d, s.t + v);
    const auto span = LD::sub(hn::Load(d, s.t_end + v), t);
    const auto h0 = LD::copysign(trial_step_size<LD>(hn::Load(d, d0 + v), hn::Load(d, d1 + v), span), span);
    hn::Store(h0, d, s.h_try + v);
    hn::Store(LD::add(t, h0), d, s.t_stage + v);
  }
  alignas(64) T h_memory[kTileLanes];
  const T* h = narrow(s.h_try, h_memory, s.lanes);
  const hn::ScalableTag<T> dt;
  for (std::size_t c = 0; c < s.components; ++c) {
    for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(dt))) {
      const std::size_t at = c * kTileLanes + static_cast<std::size_t>(v);
      hn::Store(
          HwyLane<hn::ScalableTag<T>>::fma(hn::Load(dt, h + v), hn::Load(dt, k1 + at), hn::Load(dt, s.y.data() + at)),
          dt, s.scratch.data() + at);
    }
  }
  evaluate_stage(s, settings, s.t_stage, s.scratch.data(), 1);
  const T* f1 = s.stage(1);
  start_norm(s, settings, d2, [&](std::size_t at) { return LD::sub(widen(f1 + at), widen(k1 + at)); });
  const auto& source = *settings.tableau->source;
  const float exponent = 1.0f / static_cast<float>(error_power(source.error_order, !source.error3.empty()));
  for (int v = 0; v < s.lanes; v += n) {
    const auto t = hn::Load(d, s.t + v);
    const auto t_end = hn::Load(d, s.t_end + v);
    const auto span = LD::sub(t_end, t);
    const auto h = first_step_size<LD>(LD::abs(hn::Load(d, s.h_try + v)), hn::Load(d, d1 + v), hn::Load(d, d2 + v),
                                       span, hn::Set(d, settings.max_step), exponent,
                                       first_step_growth(source.error_order, source.stages));
    hn::Store(LD::copysign(LD::max(h, smallest_step<LD>(t, t_end)), span), d, s.h + v);
  }
}

template <class T>
void start(TileState<T>& s, const StepSettings<T>& settings) {
  using D = hn::ScalableTag<T>;
  const D d;
  evaluate_stage(s, settings, s.t_stage, s.y.data(), 0);
  alignas(64) T checks[kTileLanes];
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d))) {
    auto sum = hn::Zero(d);
    for (std::size_t at = static_cast<std::size_t>(v); at < s.components * kTileLanes; at += kTileLanes) {
      sum = add_finite_check<HwyLane<D>>(sum, hn::Load(d, s.y.data() + at));
      sum = add_finite_check<HwyLane<D>>(sum, hn::Load(d, s.stage(0) + at));
    }
    hn::Store(sum, d, checks + v);
  }
  const DoubleTag dd;
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(dd))) {
    hn::Store(widen(checks + v), dd, s.error_squared + v);
    const auto span = LD::sub(hn::Load(dd, s.t_end + v), hn::Load(dd, s.t + v));
    if (!settings.fixed) hn::Store(LD::copysign(hn::Set(dd, settings.initial_step), span), dd, s.h + v);
  }
  if (!settings.fixed && settings.initial_step == 0) first_steps(s, settings);
}

// Sum of squares of the scaled errors h sum_j e_j k_j over components, [lane].
template <class T>
HWY_INLINE void error_sums(TileState<T>& s, const StageSum<T>& estimate, const StepSettings<T>& settings,
                           const T* HWY_RESTRICT h, T* HWY_RESTRICT out) {
  const std::size_t size = s.components * kTileLanes;
  each_group<T>(s.lanes, [&](auto group, int v) HWY_ATTR {
    using G = decltype(group);
    const auto step = G::load(h + v), rtol = G::set(settings.rtol);
    auto sum = G::zero();
    for (std::size_t c = 0; c < s.components; ++c) {
      const std::size_t at = c * kTileLanes + static_cast<std::size_t>(v);
      const auto error = weigh<G>(s.k.data() + at, size, estimate);
      const auto scale =
          error_scale<G>(G::load(s.y.data() + at), G::load(s.y1.data() + at), rtol, G::set(settings.atol[c]));
      sum = add_square<G>(sum, G::mul(step, error), scale);
    }
    G::store(sum, out + v);
  });
}

template <class T>
HWY_INLINE void finite_checks(TileState<T>& s, T* HWY_RESTRICT out) {
  each_group<T>(s.lanes, [&](auto group, int v) HWY_ATTR {
    using G = decltype(group);
    auto check = G::zero();
    for (std::size_t c = 0; c < s.components; ++c)
      check = add_finite_check<G>(check, G::load(s.y1.data() + c * kTileLanes + v));
    G::store(check, out + v);
  });
}

// The factors of every lane's 1/gamma - h J at (t, y), and f_t there.
template <class T>
LinearTile<T> linearise(TileState<T>& s, const StepSettings<T>& settings, const T* HWY_RESTRICT h) {
  const LinearTile<T> linear(settings.jacobian->layout(), s.workspace + settings.linear_tile_at);
  for (int lane = 0; lane < s.lanes; ++lane) {
    s.t_stage[lane] =
        settings.has_stops ? ode::detail::step_end(s.stops[lane], s.t[lane], s.h_try[lane] < 0).behind : s.t[lane];
  }
  settings.jacobian->evaluate({s.t_stage, s.y.data(), s.parameters.data(), nullptr, s.lanes}, linear.matrix,
                              linear.by_time, s.workspace);
  const hn::ScalableTag<T> d;
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d))) {
    const LinearLanes<T> lanes(linear, v);
    lanes.shift(settings.tableau->inverse_gamma, hn::Load(d, h + v));
    lanes.factor();
  }
  return linear;
}

// k_i from the right-hand side at the stage.
template <class T>
void solve_stage(TileState<T>& s, const StepSettings<T>& settings, const T* HWY_RESTRICT h, const LinearTile<T>& linear,
                 std::size_t i) {
  using L = HwyLane<hn::ScalableTag<T>>;
  const hn::ScalableTag<T> d;
  const auto& terms = settings.tableau->couplings[i].terms;
  const T time_weight = settings.tableau->time_weights[i];
  const std::size_t row = s.components * kTileLanes;
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d))) {
    const auto by_time = hn::Mul(hn::Set(d, time_weight), hn::Load(d, h + v));
    for (std::size_t at = static_cast<std::size_t>(v); at < row; at += kTileLanes) {
      const T* const k = s.k.data() + at;
      auto sum = hn::Load(d, k + i * row);
      for (const auto& term : terms) sum = L::fma(hn::Set(d, term.weight), hn::Load(d, k + term.stage * row), sum);
      if (time_weight != 0) sum = L::fma(by_time, hn::Load(d, linear.by_time + at), sum);
      hn::Store(sum, d, s.stage(i) + at);
    }
    LinearLanes<T>(linear, v).solve(s.stage(i));
  }
}

template <class T>
LaneMask lanes_with_a_middle(const TileState<T>& s) {
  const DoubleTag d;
  LaneMask lanes = 0;
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d)))
    lanes |=
        mask_bits(d, has_a_middle<LD>(hn::Load(d, s.h_try + v), hn::Load(d, s.t + v), hn::Load(d, s.t_end + v)), v);
  return lanes;
}

// Sums of squares, as error_sums() has them, of the error that the interpolant has in the middle of the step
// (tableau.h); the larger ones stay in `out`. Nothing reads linear.by_time any more.
template <class T>
void middle_sums(TileState<T>& s, const StepSettings<T>& settings, const T* HWY_RESTRICT h, const LinearTile<T>& linear,
                 T* HWY_RESTRICT out) {
  using D = hn::ScalableTag<T>;
  using L = HwyLane<D>;
  const D d;
  const auto& terms = settings.tableau->middle_slope.terms;
  const std::size_t row = s.components * kTileLanes;
  T* const defect = linear.by_time;
  combine(s, settings.tableau->middle, h, s.scratch.data());
  stage_times(s.t, s.h_try, 0.5, s.t_stage, s.lanes);
  settings.rhs->evaluate({s.t_stage, s.scratch.data(), s.parameters.data(), defect, s.lanes}, s.workspace);
  const auto rtol = hn::Set(d, settings.rtol);
  const LaneMask counted = lanes_with_a_middle(s);
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d))) {
    for (std::size_t at = static_cast<std::size_t>(v); at < row; at += kTileLanes) {
      const T* const k = s.k.data() + at;
      auto slope = hn::Mul(hn::Set(d, terms[0].weight), hn::Load(d, k + terms[0].stage * row));
      for (std::size_t i = 1; i < terms.size(); ++i)
        slope = L::fma(hn::Set(d, terms[i].weight), hn::Load(d, k + terms[i].stage * row), slope);
      hn::Store(hn::Mul(hn::Load(d, h + v), hn::Sub(hn::Load(d, defect + at), slope)), d, defect + at);
    }
    LinearLanes<T>(linear, v).solve(defect);
    auto sum = hn::Zero(d);
    for (std::size_t c = 0; c < s.components; ++c) {
      const std::size_t at = c * kTileLanes + static_cast<std::size_t>(v);
      const auto scale = error_scale<L>(hn::Load(d, s.y.data() + at), hn::Load(d, s.y1.data() + at), rtol,
                                        hn::Set(d, settings.atol[c]));
      sum = add_square<L>(sum, hn::Load(d, defect + at), scale);
    }
    sum = hn::IfThenElseZero(lanes_of(d, counted, v), sum);
    hn::Store(larger_error<L>(hn::Load(d, out + v), sum), d, out + v);
  }
}

template <class T>
void attempt(TileState<T>& s, const StepSettings<T>& settings) {
  const ode::Tableau& tableau = *settings.tableau->source;
  alignas(64) T h_memory[kTileLanes];
  const T* h = narrow(s.h_try, h_memory, s.lanes);
  const auto stages = static_cast<std::size_t>(tableau.stages);
  std::optional<LinearTile<T>> linear;
  std::size_t first = 1;
  if (settings.jacobian != nullptr) {
    linear = linearise(s, settings, h);
    std::copy_n(s.stage(0), s.components * kTileLanes, s.stage(1));
    solve_stage(s, settings, h, *linear, first++);
  } else if (PackedAttempt<T>::suits(s)) {
    return PackedAttempt<T>(s, settings, h[0]).run();
  }
  for (std::size_t i = first; i < stages; ++i) {
    T* argument = i + 1 == stages ? s.y1.data() : s.scratch.data();
    combine(s, settings.tableau->rows[i], h, argument);
    evaluate_stage(s, settings, time_of_stage(s, settings, i), argument, i);
    if (linear && i + 1 < stages) solve_stage(s, settings, h, *linear, i);
  }

  alignas(64) T sums[kTileLanes] = {}, sums3[kTileLanes] = {}, checks[kTileLanes];
  finite_checks(s, checks);
  if (!settings.fixed) {
    error_sums(s, settings.tableau->error, settings, h, sums);
    if (linear) middle_sums(s, settings, h, *linear, sums);
    if (!tableau.error3.empty()) error_sums(s, settings.tableau->error3, settings, h, sums3);
  }
  if (tableau.error3.empty()) {
    finish_error<T, false>(s, sums, sums3, checks);
  } else {
    finish_error<T, true>(s, sums, sums3, checks);
  }
}

template <class T>
void decide(TileState<T>& s, const StepSettings<T>& settings) {
  if (!settings.fixed) return decide_tile(s, settings, [](int, hn::Mask<DoubleTag>) {});
  const DoubleTag d;
  StepMasks masks;
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d))) {
    const auto accept = LD::eq(hn::Load(d, s.error_squared + v), hn::Zero(d));
    masks.add(v, accept, LD::negate(accept),
              save_reached(hn::Load(d, s.t_new + v), hn::Load(d, s.next_save + v), hn::Load(d, s.h_try + v)));
  }
  masks.store(s);
}

template <class T>
void complete_interpolant(TileState<T>& s, const StepSettings<T>& settings) {
  const ode::Tableau& tableau = *settings.tableau->source;
  alignas(64) T h_memory[kTileLanes];
  const T* h = narrow(s.h_try, h_memory, s.lanes);
  for (int i = tableau.stages; i < tableau.stages + tableau.interpolant_stages; ++i) {
    const auto stage = static_cast<std::size_t>(i);
    combine(s, settings.tableau->rows[stage], h, s.scratch.data());
    stage_times(s.t, s.h_try, tableau.c[stage], s.t_stage, s.lanes);
    const bool at_end = settings.has_stops && tableau.c[stage] == 1;
    evaluate_stage(s, settings, at_end ? s.t_last : s.t_stage, s.scratch.data(), stage);
  }
}

template <class T>
void renew(TileState<T>& s, const StepSettings<T>& settings, LaneMask renewed) {
  settings.rhs->evaluate({s.t_stage, s.y.data(), s.parameters.data(), s.scratch.data(), s.lanes}, s.workspace);
  const hn::ScalableTag<T> d;
  T* const k1 = s.stage(0);
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d))) {
    const auto lanes = lanes_of(d, renewed, v);
    for (std::size_t at = static_cast<std::size_t>(v); at < s.components * kTileLanes; at += kTileLanes)
      hn::BlendedStore(hn::Load(d, s.scratch.data() + at), lanes, d, k1 + at);
  }
}

// Of kRegisters registers of float64 from lane v on, and those of the state that stand beside them.
template <int kRegisters, class T>
HWY_INLINE void interpolate_registers(TileState<T>& s, const StepSettings<T>& settings, const T* HWY_RESTRICT h,
                                      int v) {
  using G = LaneGroup<DoubleTag, kRegisters>;
  using F = Float32Lane<G>;
  constexpr bool kIsDouble = sizeof(T) == 8;
  using S = std::conditional_t<kIsDouble, G, typename F::L>;
  constexpr std::size_t kMostStages = 24;
  const ode::Tableau& tableau = *settings.tableau->source;
  const auto& stages = settings.tableau->interpolant_stages;
  const int degree = tableau.interpolant_degree;
  const std::size_t row = s.components * kTileLanes;

  const auto theta = G::load(s.theta + v);
  const auto at_end = G::eq(theta, G::set(1.0));
  typename S::M end;
  typename S::V weights[kMostStages];
  if constexpr (kIsDouble) {
    end = at_end;
  } else {
    end = F::mask(at_end);
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const double* p = &tableau.interpolant[stages[i] * static_cast<std::size_t>(degree)];
    const auto weight = interpolant_weight<G>(p, degree, theta);
    if constexpr (kIsDouble) {
      weights[i] = weight;
    } else {
      weights[i] = F::down(weight);
    }
  }
  for (std::size_t c = 0; c < s.components; ++c) {
    const std::size_t at = c * kTileLanes + static_cast<std::size_t>(v);
    const T* k = s.k.data() + at;
    auto sum = S::mul(weights[0], S::load(k + stages[0] * row));
    for (std::size_t i = 1; i < stages.size(); ++i) sum = S::fma(weights[i], S::load(k + stages[i] * row), sum);
    const auto inside = S::fma(S::load(h + v), sum, S::load(s.y.data() + at));
    S::store(S::select(end, S::load(s.y1.data() + at), inside), s.scratch.data() + at);
  }
}

template <class T>
void interpolate(TileState<T>& s, const StepSettings<T>& settings) {
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(DoubleTag()));
  alignas(64) T h_memory[kTileLanes];
  const T* h = narrow(s.h_try, h_memory, s.lanes);
  int v = 0;
  for (; s.lanes - v > kLanes; v += kGroupLanes) interpolate_registers<kGroupRegisters>(s, settings, h, v);
  if (v < s.lanes) interpolate_registers<1>(s, settings, h, v);
}

template <class T>
void estimate_middle(TileState<T>& s, const StepSettings<T>& settings) {
  using G = LaneGroup<hn::ScalableTag<T>, 1>;
  stage_times(s.t, s.h_try, 0.5, s.t_stage, s.lanes);
  alignas(64) T h_memory[kTileLanes];
  const T* h = narrow(s.h_try, h_memory, s.lanes);
  const T* k0 = s.stage(0);
  const T* k1 = s.stage(static_cast<std::size_t>(settings.tableau->source->stages) - 1);
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(hn::ScalableTag<T>()))) {
    const auto eighth = G::mul(G::set(T(0.125)), G::load(h + v));
    for (std::size_t at = static_cast<std::size_t>(v); at < s.components * kTileLanes; at += kTileLanes) {
      const auto middle = middle_state<G>(G::load(s.y.data() + at), G::load(s.y1.data() + at), G::load(k0 + at),
                                          G::load(k1 + at), eighth);
      G::store(middle, s.scratch.data() + at);
    }
  }
}

template <class T>
void advance(TileState<T>& s, const StepSettings<T>& settings, LaneMask moved) {
  const hn::ScalableTag<T> d;
  const std::size_t rows = s.components;
  T* k1 = s.stage(0);
  const T* ks = s.stage(static_cast<std::size_t>(settings.tableau->source->stages) - 1);
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d))) {
    const auto move = lanes_of(d, moved, v);
    for (std::size_t c = 0; c < rows; ++c) {
      const std::size_t at = c * kTileLanes + static_cast<std::size_t>(v);
      hn::Store(hn::IfThenElse(move, hn::Load(d, s.y1.data() + at), hn::Load(d, s.y.data() + at)), d, s.y.data() + at);
      hn::Store(hn::IfThenElse(move, hn::Load(d, ks + at), hn::Load(d, k1 + at)), d, k1 + at);
    }
  }
  const DoubleTag dd;
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(dd))) {
    const auto move = lanes_of(dd, moved, v);
    hn::Store(hn::IfThenElse(move, hn::Load(dd, s.t_new + v), hn::Load(dd, s.t + v)), dd, s.t + v);
    const auto index = hn::Load(dd, s.step_index + v);
    hn::Store(hn::IfThenElse(move, hn::Add(index, hn::Set(dd, 1.0)), index), dd, s.step_index + v);
  }
}

template <class T>
const ode::cpu::TileKernels<T>* table() {
  static constexpr ode::cpu::TileKernels<T> kTable = {
      start<T>,       propose<T>,         attempt<T>, decide<T>, complete_interpolant<T>,
      interpolate<T>, estimate_middle<T>, advance<T>, renew<T>};
  return &kTable;
}

}  // namespace

const ode::cpu::TileKernels<float>* tile_kernels_f32() { return table<float>(); }
const ode::cpu::TileKernels<double>* tile_kernels_f64() { return table<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "lockstep/kernels/lane/dispatch.h"

namespace lockstep {

template <>
const ode::cpu::TileKernels<float>& ode::cpu::tile_kernels<float>(CpuTarget target) {
  return *LOCKSTEP_CHOOSE(target, tile_kernels_f32)();
}
template <>
const ode::cpu::TileKernels<double>& ode::cpu::tile_kernels<double>(CpuTarget target) {
  return *LOCKSTEP_CHOOSE(target, tile_kernels_f64)();
}

}  // namespace lockstep
#endif

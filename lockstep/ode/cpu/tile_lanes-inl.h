// Small vector pieces that the kernels on a tile share. Include like hwy_lane-inl.h.
#if defined(LOCKSTEP_ODE_CPU_TILE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_ODE_CPU_TILE_LANES_INL_H_
#undef LOCKSTEP_ODE_CPU_TILE_LANES_INL_H_
#else
#define LOCKSTEP_ODE_CPU_TILE_LANES_INL_H_
#endif

#include "lockstep/ode/cpu/lane_numerics-inl.h"
#include "lockstep/ode/cpu/tile_state.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

using ode::cpu::LaneMask;
using ode::cpu::StepSettings;
using ode::cpu::TileState;

using DoubleTag = hn::ScalableTag<double>;
using LD = HwyLane<DoubleTag>;

// Registers of float64 taken together where each number passes through a long chain of dependent operations, as in step
// control; their float32 parts fill whole registers.
#if HWY_TARGET == HWY_SCALAR
inline constexpr int kGroupRegisters = 1;
#else
inline constexpr int kGroupRegisters = 4;
#endif
using DoubleGroup = LaneGroup<DoubleTag, kGroupRegisters>;
inline constexpr int kGroupLanes = kGroupRegisters * static_cast<int>(hn::MaxLanes(DoubleTag()));

// Masks as bits of a LaneMask from lane `first` on, and back.
template <class D>
HWY_INLINE LaneMask mask_bits(D d, hn::Mask<D> mask, int first) {
  return static_cast<LaneMask>(mask_bits(d, mask)) << first;
}
template <class D>
HWY_INLINE hn::Mask<D> lanes_of(D d, LaneMask bits, int first) {
  return lanes_of(d, bits >> first);
}
HWY_INLINE LaneMask active(int lanes) { return lanes == 32 ? ~LaneMask{0} : (LaneMask{1} << lanes) - 1; }

// float64 lanes as numbers of the state; by whole registers, as they are read back.
template <class T>
HWY_INLINE const T* narrow(const double* in, T* out, int lanes) {
  if constexpr (sizeof(T) == 8) {
    (void)out, (void)lanes;
    return in;
  } else {
    using F = Float32Lane<DoubleGroup>;
    for (int v = 0; v < lanes; v += kGroupLanes) F::L::store(F::down(DoubleGroup::load(in + v)), out + v);
    return out;
  }
}
template <class T>
HWY_INLINE hn::Vec<DoubleTag> widen(const T* in) {
  if constexpr (sizeof(T) == 8) {
    return hn::Load(DoubleTag(), in);
  } else {
    return hn::PromoteTo(DoubleTag(), hn::Load(hn::Rebind<float, DoubleTag>(), in));
  }
}

// error_squared from sums of squares over components [lane]; NaN where a check is.
template <class T, bool has_error3>
HWY_INLINE void finish_error(TileState<T>& s, const T* sums, const T* sums3, const T* checks) {
  const DoubleTag d;
  const auto over_n = hn::Set(d, 1.0 / static_cast<double>(s.components));
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d))) {
    auto square = widen(sums + v);
    if constexpr (has_error3) square = combine_errors<LD>(square, widen(sums3 + v));
    hn::Store(LD::fma(square, over_n, widen(checks + v)), d, s.error_squared + v);
  }
}

// Of fixed steps to t_new, which most lanes share.
template <class T>
void find_jumps(TileState<T>& s) {
  for (int lane = 0; lane < s.lanes; ++lane) {
    const bool same = lane > 0 && s.stops[lane].time == s.stops[lane - 1].time && s.t_new[lane] == s.t_new[lane - 1] &&
                      (s.h_try[lane] < 0) == (s.h_try[lane - 1] < 0);
    const auto [before, behind] = same ? ode::detail::StepEnd{s.t_last[lane - 1], s.t_behind[lane - 1]}
                                       : ode::detail::step_end(s.stops[lane], s.t_new[lane], s.h_try[lane] < 0);
    s.t_last[lane] = before;
    s.t_behind[lane] = behind;
  }
}

// The next step of each lane: h_try, t_new and last.
template <class T>
void propose(TileState<T>& s, const StepSettings<T>& settings) {
  const DoubleTag d;
  s.last = 0;
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d))) {
    const auto t_end = hn::Load(d, s.t_end + v);
    const auto h = hn::Load(d, s.h + v);
    const auto step = settings.fixed
                          ? propose_fixed_step<LD>(hn::Load(d, s.t_start + v), t_end, h, hn::Load(d, s.last_dt + v),
                                                   hn::Load(d, s.step_index + v), hn::Load(d, s.step_count + v))
                          : propose_adaptive_step<LD>(settings.has_stops, hn::Load(d, s.t + v), t_end, h,
                                                      hn::Set(d, settings.max_step));
    if (settings.heads_for_stops())
      hn::Store(LD::select(step.last, hn::Load(d, s.t_before + v), step.t_new), d, s.t_last + v);
    hn::Store(step.h, d, s.h_try + v);
    hn::Store(step.t_new, d, s.t_new + v);
    s.last |= mask_bits(d, step.last, v);
  }
  if (settings.fixed && settings.has_stops) find_jumps(s);
}

// What an attempt came to, gathered over the registers of a tile.
struct StepMasks {
  LaneMask accepted = 0, too_small = 0, save_due = 0;

  HWY_INLINE void add(int v, hn::Mask<DoubleTag> accept, hn::Mask<DoubleTag> small, hn::Mask<DoubleTag> saves) {
    const DoubleTag d;
    accepted |= mask_bits(d, accept, v);
    too_small |= mask_bits(d, small, v);
    save_due |= mask_bits(d, saves, v);
  }
  template <class T>
  HWY_INLINE void store(TileState<T>& s) const {
    const LaneMask wanted = active(s.lanes);
    s.accepted = accepted & wanted;
    s.after_rejection = ~accepted & wanted;
    s.stuck = too_small & ~accepted & wanted;
    s.save_due = save_due & accepted & wanted;
  }
};

HWY_INLINE hn::Mask<DoubleTag> save_reached(hn::Vec<DoubleTag> t_new, hn::Vec<DoubleTag> next_save,
                                            hn::Vec<DoubleTag> h) {
  return LD::le(LD::zero(), LD::mul(LD::sub(t_new, next_save), h));
}

// Accepts or rejects the lanes of a group of registers from v on and stores their next step. Returns the accepted ones.
template <int kRegisters, class T>
HWY_INLINE typename LaneGroup<DoubleTag, kRegisters>::M decide_group(TileState<T>& s, const StepSettings<T>& settings,
                                                                     int v, StepMasks& masks) {
  using G = LaneGroup<DoubleTag, kRegisters>;
  using F = Float32Lane<G>;
  const typename F::D32 d32;
  typename F::L::M after_rejection;
  for (int i = 0; i < F::kRegisters; ++i)
    after_rejection.each[i] = lanes_of(d32, s.after_rejection, v + i * static_cast<int>(hn::Lanes(d32)));
  const auto h_try = G::load(s.h_try + v), log_error = G::load(s.log_error + v);
  const auto step =
      decide_step<G>(G::load(s.error_squared + v), h_try, log_error, after_rejection, settings.beta1, settings.beta2);
  G::store(step.h_next, s.h + v);
  G::store(G::select(step.accept, step.log_error, log_error), s.log_error + v);
  const auto too_small = G::le(G::abs(step.h_next), smallest_step<G>(G::load(s.t + v), G::load(s.t_end + v)));
  for (int i = 0; i < kRegisters; ++i) {
    const DoubleTag d;
    const int at = v + i * static_cast<int>(hn::Lanes(d));
    masks.add(at, step.accept.each[i], too_small.each[i],
              save_reached(hn::Load(d, s.t_new + at), hn::Load(d, s.next_save + at), h_try.each[i]));
  }
  return step.accept;
}

// decide_group() over the tile, and then advance(v, accepted lanes) for each of its registers.
template <class T, class Advance>
HWY_INLINE void decide_tile(TileState<T>& s, const StepSettings<T>& settings, const Advance& advance) {
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(DoubleTag()));
  StepMasks masks;
  int v = 0;
  for (; s.lanes - v > kLanes; v += kGroupLanes) {
    const auto accept = decide_group<kGroupRegisters>(s, settings, v, masks);
    for (int g = 0; g < kGroupRegisters; ++g) advance(v + g * kLanes, accept.each[g]);
  }
  if (v < s.lanes) advance(v, decide_group<1>(s, settings, v, masks).each[0]);
  masks.store(s);
}

// decide_tile(), and the accepted lanes move to y1 and the last stage. `components` is a number, or a constant of a
// type of its own (std::integral_constant), for which the loop is unrolled.
template <class T, class Components>
HWY_INLINE void decide_and_advance(TileState<T>& s, const StepSettings<T>& settings, Components components,
                                   const T* last_stage) {
  const DoubleTag d;
  T* const y = s.y.data();
  T* const k = s.k.data();
  const T* const y1 = s.y1.data();
  decide_tile(
      s, settings, [&](int v, hn::Mask<DoubleTag> accept) __attribute__((always_inline)) {
        for (int c = 0; c < static_cast<int>(components); ++c) {
          const int at = c * kTileLanes + v;
          hn::BlendedStore(hn::Load(d, y1 + at), accept, d, y + at);
          hn::BlendedStore(hn::Load(d, last_stage + at), accept, d, k + at);
        }
        hn::BlendedStore(hn::Load(d, s.t_new + v), accept, d, s.t + v);
      });
}

// What `count` fixed steps make of the times.
template <class T>
HWY_INLINE void advance_times(TileState<T>& s, int count) {
  for (int lane = 0; lane < s.lanes; ++lane) {
    s.step_index[lane] += count;
    s.t[lane] = __builtin_fma(s.step_index[lane], s.h[lane], s.t_start[lane]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target

// What surrounds generated steps, once for each instruction set.
#include "lockstep/ode/cpu/generated_step.h"

#include "lockstep/kernels/lane/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/ode/cpu/generated_kernels.cpp"
#include <hwy/foreach_target.h>

#include "lockstep/ode/cpu/packed_attempt-inl.h"
#include "lockstep/ode/cpu/tile_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace generated_kernels {

using ode::cpu::GeneratedStep;

inline constexpr std::size_t kMostStages = 24;

// The tile's registers that hold trajectories.
template <class T>
HWY_INLINE std::size_t registers_of(const TileState<T>& s) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<T>());
  return (static_cast<std::size_t>(s.lanes) + lanes - 1) / lanes;
}

// Times of the stages: [stage][lane].
template <class T>
void stage_times(const TileState<T>& s, const StepSettings<T>& settings, T* HWY_RESTRICT out) {
  const ode::Tableau& tableau = *settings.tableau->source;
  const double* const t_last = settings.has_stops ? s.t_last : s.t_new;
  const DoubleTag d;
  alignas(64) double row[kTileLanes] = {};
  for (int i = 1; i < tableau.stages; ++i) {
    const double stage = tableau.c[static_cast<std::size_t>(i)];
    const bool at_end = i + 1 == tableau.stages || (settings.has_stops && stage == 1);
    for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d))) {
      hn::Store(
          at_end ? hn::Load(d, t_last + v) : LD::fma(hn::Set(d, stage), hn::Load(d, s.h_try + v), hn::Load(d, s.t + v)),
          d, row + v);
    }
    for (int lane = 0; lane < kTileLanes; ++lane) out[i * kTileLanes + lane] = static_cast<T>(row[lane]);
  }
}

// Runs StepSettings::generated from s.h_try on; errors as GeneratedBase says.
template <class T>
void run_attempt(TileState<T>& s, const StepSettings<T>& settings, T* errors) {
  const GeneratedStep<T>& step = *settings.generated;
  alignas(64) T h[kTileLanes];
  alignas(64) T times[kMostStages * kTileLanes];
  if (step.reads_time) stage_times(s, settings, times);
  // The code reads what `const` lets it only read.
  const std::array<T*, LaneProgram::kMostBases> bases = {
      s.y.data(), s.y1.data(), s.k.data(), s.parameters.data(), const_cast<T*>(narrow(s.h_try, h, s.lanes)),
      errors,     times};
  step.attempt.run(bases, registers_of(s), hn::Lanes(hn::ScalableTag<T>()));
}

template <class T>
PackedAttempt<T> packed(TileState<T>& s, const StepSettings<T>& settings, const double* h) {
  alignas(64) T h_memory[kTileLanes];
  return PackedAttempt<T>(s, settings, narrow(h, h_memory, s.lanes)[0]);
}

template <class T>
void attempt(TileState<T>& s, const StepSettings<T>& settings) {
  if (settings.generated->one_lane.code != nullptr) return packed(s, settings, s.h_try).run();
  if constexpr (sizeof(T) == 8) {
    run_attempt(s, settings, s.error_squared);
  } else {
    alignas(64) T errors[3 * kTileLanes];
    run_attempt(s, settings, errors);
    const T *const sums3 = errors + kTileLanes, *const checks = sums3 + kTileLanes;
    if (settings.tableau->source->error3.empty()) {
      finish_error<T, false>(s, errors, sums3, checks);
    } else {
      finish_error<T, true>(s, errors, sums3, checks);
    }
  }
}

void whole_step(TileState<double>& s, const StepSettings<double>& settings) {
  propose(s, settings);
  attempt(s, settings);
  const auto last = static_cast<std::size_t>(settings.tableau->source->stages) - 1;
  decide_and_advance(s, settings, s.components, s.stage(last));
}

// On copies of the state and its stage, for the case that a state is not finite.
template <class T>
bool run_fixed(TileState<T>& s, const StepSettings<T>& settings, int count) {
  const GeneratedStep<T>& step = *settings.generated;
  if (step.one_lane.code != nullptr) {
    if (step.reads_time || !packed(s, settings, s.h).run_fixed(count)) return false;
    advance_times(s, count);
    return true;
  }
  if (step.fixed.empty()) return false;
  using D = hn::ScalableTag<T>;
  const D d;
  const std::size_t numbers = s.components * kTileLanes, lanes = hn::Lanes(d);
  T *const y = s.y1.data(), *const k = s.scratch.data();
  const auto copy = [&](const T* HWY_RESTRICT from, T* HWY_RESTRICT to) {
    for (std::size_t i = 0; i < numbers; i += lanes) hn::Store(hn::Load(d, from + i), d, to + i);
  };
  copy(s.y.data(), y);
  copy(s.k.data(), k);
  alignas(64) T h[kTileLanes];
  const std::array<T*, LaneProgram::kMostBases> bases = {
      y, y, k, s.parameters.data(), const_cast<T*>(narrow(s.h, h, s.lanes)), nullptr, nullptr};
  step.fixed.run(bases, registers_of(s), lanes, static_cast<std::size_t>(count));
  for (std::size_t v = 0; v < static_cast<std::size_t>(s.lanes); v += lanes) {
    // The new state is the old one plus something: a component that was once not finite is not finite at the end.
    auto check = hn::Zero(d);
    for (std::size_t at = v; at < numbers; at += kTileLanes) {
      check = add_finite_check<HwyLane<D>>(check, hn::Load(d, y + at));
    }
    const auto ignored = hn::Not(hn::FirstN(d, static_cast<std::size_t>(s.lanes) - v));
    if (!hn::AllTrue(d, hn::Or(ignored, hn::Eq(check, hn::Zero(d))))) return false;
  }
  copy(y, s.y.data());
  copy(k, s.k.data());
  advance_times(s, count);
  return true;
}

}  // namespace generated_kernels

const ode::cpu::InlinedKernels<float>* generated_kernels_f32() {
  static constexpr ode::cpu::InlinedKernels<float> kTable = {generated_kernels::attempt<float>, nullptr,
                                                             generated_kernels::run_fixed<float>};
  return &kTable;
}
const ode::cpu::InlinedKernels<double>* generated_kernels_f64() {
  static constexpr ode::cpu::InlinedKernels<double> kTable = {
      generated_kernels::attempt<double>, generated_kernels::whole_step, generated_kernels::run_fixed<double>};
  return &kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "lockstep/kernels/lane/dispatch.h"

namespace lockstep {

template <>
const ode::cpu::InlinedKernels<float>& ode::cpu::generated_kernels<float>(CpuTarget target) {
  return *LOCKSTEP_CHOOSE(target, generated_kernels_f32)();
}
template <>
const ode::cpu::InlinedKernels<double>& ode::cpu::generated_kernels<double>(CpuTarget target) {
  return *LOCKSTEP_CHOOSE(target, generated_kernels_f64)();
}

}  // namespace lockstep
#endif

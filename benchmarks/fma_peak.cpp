#include "benchmarks/fma_peak.h"

#include <algorithm>
#include <chrono>

#include "lockstep/kernels/lane/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "benchmarks/fma_peak.cpp"
#include <hwy/foreach_target.h>
//
#include "lockstep/kernels/lane/dispatch.h"
#include "lockstep/kernels/lane/hwy_lane-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

// Twelve chains: more than the latency times the number of units of any processor in sight.
template <class T>
double run_chains(int steps) {
  const hn::ScalableTag<T> d;
  using L = HwyLane<decltype(d)>;
  constexpr int kChains = 12;
  typename L::V chain[kChains];
  for (int i = 0; i < kChains; ++i) chain[i] = L::set(T(i));
  const auto factor = L::set(T(0.5)), term = L::set(T(1));
  for (int step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chain[i] = L::fma(chain[i], factor, term);
  }
  auto sum = chain[0];
  for (int i = 1; i < kChains; ++i) sum = L::add(sum, chain[i]);
  volatile T sink = hn::GetLane(sum);
  (void)sink;
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * steps;
}

double run_chains_f32(int steps) { return run_chains<float>(steps); }
double run_chains_f64(int steps) { return run_chains<double>(steps); }

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::benchmarks {

double fma_peak(Precision precision, CpuTarget target) {
  const auto run =
      precision == Precision::f32 ? LOCKSTEP_CHOOSE(target, run_chains_f32) : LOCKSTEP_CHOOSE(target, run_chains_f64);
  double best = 0;
  for (int i = 0; i < 50; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const double operations = run(20000);
    best = std::max(best, operations / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best * 1e-9;
}

}  // namespace lockstep::benchmarks
#endif

// The step of one system by one method, unrolled: see inlined.h. Include like hwy_lane-inl.h.
#if defined(LOCKSTEP_ODE_CPU_INLINED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_ODE_CPU_INLINED_INL_H_
#undef LOCKSTEP_ODE_CPU_INLINED_INL_H_
#else
#define LOCKSTEP_ODE_CPU_INLINED_INL_H_
#endif

#include <algorithm>
#include <utility>

#include "lockstep/ode/cpu/inlined.h"
#include "lockstep/ode/cpu/lane_numerics-inl.h"
#include "lockstep/ode/cpu/tile_lanes-inl.h"

// Stages are unrolled by lambdas; left to itself the compiler calls the larger ones, their registers through memory.
#define LOCKSTEP_ALWAYS_INLINE __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

template <class F, int... i>
HWY_INLINE void static_for(std::integer_sequence<int, i...>, const F& f) {
  (f(std::integral_constant<int, i>()), ...);
}

// Calls f(integral_constant 0 .. count - 1).
template <int count, class F>
HWY_INLINE void static_for(const F& f) {
  static_for(std::make_integer_sequence<int, count>(), f);
}

// One register of trajectories on their way through a step.
template <class System, class Method, class T>
struct InlinedStep {
  using D = hn::ScalableTag<T>;
  using L = HwyLane<D>;
  using V = typename L::V;
  static constexpr auto kMethod = Method::coefficients();
  static constexpr int kStages = decltype(kMethod)::kStages;
  static constexpr int n = System::kComponents;
  static constexpr int kParameters = System::kParameters;

  // Weights of a method with few of them stay in registers, where y1's sum over stages can grow with every stage, so
  // that the stages need none. Those of the others are read one number at a time: the compiler would read whole
  // registers of copies, and loads of that size are what such a step has too many of.
  static constexpr bool kFewWeights = kStages <= 5;
  struct Table {
    T rows[kStages][kStages], error[kStages], error3[kStages];
  };
  static constexpr Table make_table() {
    Table table{};
    for (int j = 0; j < kStages; ++j) {
      for (int i = j + 1; i < kStages; ++i) table.rows[i][j] = static_cast<T>(kMethod.a[i][j]);
      if constexpr (Method::kErrorOrder > 0) table.error[j] = static_cast<T>(kMethod.error[j]);
      if constexpr (Method::kHasError3) table.error3[j] = static_cast<T>(kMethod.error3[j]);
    }
    return table;
  }
  static constexpr Table kTable = make_table();

  V y[n], y1[n], k[kStages][n], last_row[n], p[kParameters == 0 ? 1 : kParameters], h;
  const Table* table = &kTable;

  // GCC compiles an implicit one for the file's instruction set, and cannot inline NEON's constructors there.
  HWY_INLINE InlinedStep() {
    if constexpr (!kFewWeights) asm("" : "+r"(table));  // hides what the numbers are
  }

  HWY_INLINE void load(const TileState<T>& s, int v) {
    const D d;
    for (int c = 0; c < n; ++c) {
      y[c] = hn::Load(d, s.y.data() + c * kTileLanes + v);
      k[0][c] = hn::Load(d, s.k.data() + c * kTileLanes + v);
    }
    for (int i = 0; i < kParameters; ++i) p[i] = hn::Load(d, s.parameters.data() + i * kTileLanes + v);
  }

  template <class Weights, int j>
  HWY_INLINE V weight() const {
    if constexpr (kFewWeights) {
      return L::set(static_cast<T>(Weights::at(j)));
    } else {
      return L::set(Weights::of(*table)[j]);
    }
  }

  // Adds stage j to the sum of every component; the first stage of a sum begins it.
  template <class Weights, int j>
  HWY_INLINE void add_stage(V (&sum)[n]) const {
    if constexpr (Weights::at(j) != 0) {
      const V w = weight<Weights, j>();
      static_for<n>([&](auto c) LOCKSTEP_ALWAYS_INLINE {
        if constexpr (first_nonzero<Weights>() == j) {
          sum[c] = L::mul(w, k[j][c]);
        } else {
          sum[c] = L::fma(w, k[j][c], sum[c]);
        }
      });
    }
  }
  // sum[c] = sum_j weight(j) k_j of every component over the nonzero weights of stages 0 .. count - 1, ascending.
  // Components inside: they are independent of one another, and a weight can stay in a register for all of them.
  template <int count, class Weights>
  HWY_INLINE void weighted(V (&sum)[n]) const {
    static_for<count>([&](auto j) LOCKSTEP_ALWAYS_INLINE { add_stage<Weights, decltype(j)::value>(sum); });
  }
  template <class Weights>
  static constexpr int first_nonzero() {
    int j = 0;
    while (Weights::at(j) == 0) ++j;
    return j;
  }
  template <int i>
  struct Row {
    static constexpr double at(int j) { return Method::coefficients().a[i][j]; }
    static HWY_INLINE const T* of(const Table& table) { return table.rows[i]; }
  };
  struct Error {
    static constexpr double at(int j) { return Method::coefficients().error[j]; }
    static HWY_INLINE const T* of(const Table& table) { return table.error; }
  };
  struct Error3 {
    static constexpr double at(int j) { return Method::coefficients().error3[j]; }
    static HWY_INLINE const T* of(const Table& table) { return table.error3; }
  };

  // Stage i of 1 .. s - 1, counted from 0: k[i], and y1 at the last. The systems listed in inlined.cpp do not depend on
  // time (another would not compile).
  template <int i>
  HWY_INLINE void stage() {
    constexpr int last = kStages - 1;
    V argument[n];
    if constexpr (kFewWeights && i == last) {
      add_stage<Row<last>, i - 1>(last_row);
      static_for<n>([&](auto c) LOCKSTEP_ALWAYS_INLINE { argument[c] = last_row[c]; });
    } else {
      weighted<i, Row<i>>(argument);
    }
    static_for<n>([&](auto c) LOCKSTEP_ALWAYS_INLINE { argument[c] = L::fma(h, argument[c], y[c]); });
    System::template evaluate<L>(argument, p, k[i]);
    // After what the next stage waits for: older instructions go first.
    if constexpr (kFewWeights && i != last) add_stage<Row<last>, i - 1>(last_row);
    if constexpr (i == last) {
      static_for<n>([&](auto c) LOCKSTEP_ALWAYS_INLINE { y1[c] = argument[c]; });
    }
  }
  // Stages first .. end - 1.
  template <int first = 1, int end = kStages>
  HWY_INLINE void run() {
    static_for<end - first>([&](auto i) LOCKSTEP_ALWAYS_INLINE { stage<first + decltype(i)::value>(); });
  }

  template <class Estimate>
  HWY_INLINE V error_sum(V rtol, const T* atol) const {
    V error[n];
    weighted<kStages, Estimate>(error);
    V sum = L::zero();
    static_for<n>([&](auto c) LOCKSTEP_ALWAYS_INLINE {
      sum = add_square<L>(sum, L::mul(h, error[c]), error_scale<L>(y[c], y1[c], rtol, L::set(atol[c])));
    });
    return sum;
  }
  HWY_INLINE V finite_check() const {
    V sum = L::zero();
    static_for<n>([&](auto c) LOCKSTEP_ALWAYS_INLINE { sum = add_finite_check<L>(sum, y1[c]); });
    return sum;
  }
};

template <class System, class Method, class T>
void attempt_inlined(TileState<T>& s, const StepSettings<T>& settings) {
  using Step = InlinedStep<System, Method, T>;
  const typename Step::D d;
  constexpr int n = Step::n;
  alignas(64) T h_memory[kTileLanes];
  const T* h = narrow(s.h_try, h_memory, s.lanes);
  alignas(64) T sums[kTileLanes] = {}, sums3[kTileLanes] = {}, checks[kTileLanes];
  for (int v = 0; v < s.lanes; v += static_cast<int>(hn::Lanes(d))) {
    Step step;
    step.load(s, v);
    step.h = hn::Load(d, h + v);
    step.run();
    for (int c = 0; c < n; ++c) {
      hn::Store(step.y1[c], d, s.y1.data() + c * kTileLanes + v);
      if (!settings.keep_stages)
        hn::Store(step.k[Step::kStages - 1][c], d, s.k.data() + ((Step::kStages - 1) * n + c) * kTileLanes + v);
    }
    if (settings.keep_stages) {
      for (int i = 1; i < Step::kStages; ++i) {
        for (int c = 0; c < n; ++c) hn::Store(step.k[i][c], d, s.k.data() + (i * n + c) * kTileLanes + v);
      }
    }
    hn::Store(step.finite_check(), d, checks + v);
    if constexpr (Method::kErrorOrder > 0) {
      if (!settings.fixed) {
        const auto rtol = hn::Set(d, settings.rtol);
        hn::Store(step.template error_sum<typename Step::Error>(rtol, settings.atol), d, sums + v);
        if constexpr (Method::kHasError3)
          hn::Store(step.template error_sum<typename Step::Error3>(rtol, settings.atol), d, sums3 + v);
      }
    }
  }
  finish_error<T, Method::kHasError3>(s, sums, sums3, checks);
}

// Attempts the steps of kTogether registers of a tile, the first stages of all in turns: a sum of few terms waits
// longer for its newest stage than it computes.
template <class System, class Method, class T, int kTogether>
HWY_INLINE void attempt_registers(TileState<T>& s, const StepSettings<T>& settings, int v) {
  using Step = InlinedStep<System, Method, T>;
  static_assert(sizeof(T) == 8, "state and time share registers");
  const DoubleTag d;
  constexpr int n = Step::n, kStages = Step::kStages;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(DoubleTag()));
  // Stages, the given first one included: all where they go through memory anyway (Zen 4: 0.86 to 0.90 of the time).
  constexpr int kInTurns = HWY_TARGET == HWY_AVX2 ? kStages : 3;
  const auto rtol = hn::Set(d, settings.rtol);
  Step steps[kTogether];
  static_for<kTogether>([&](auto g) LOCKSTEP_ALWAYS_INLINE {
    const int at = v + g * kLanes;
    const auto proposed = propose_step<LD>(hn::Load(d, s.t + at), hn::Load(d, s.t_end + at), hn::Load(d, s.h + at),
                                           hn::Set(d, settings.max_step));
    s.last |= mask_bits(d, proposed.last, at);
    hn::Store(proposed.h, d, s.h_try + at);
    hn::Store(proposed.t_new, d, s.t_new + at);
    steps[g].load(s, at);
    steps[g].h = proposed.h;
  });
  static_for<kInTurns - 1>([&](auto i) LOCKSTEP_ALWAYS_INLINE {
    static_for<kTogether>([&](auto g) LOCKSTEP_ALWAYS_INLINE { steps[g].template stage<decltype(i)::value + 1>(); });
  });
  T* const last_stage = s.k.data() + (kStages - 1) * n * kTileLanes;
  static_for<kTogether>([&](auto g) LOCKSTEP_ALWAYS_INLINE {
    const int at = v + g * kLanes;
    Step& step = steps[g];
    step.template run<kInTurns, kStages>();
    for (int c = 0; c < n; ++c) {
      hn::Store(step.y1[c], d, s.y1.data() + c * kTileLanes + at);
      hn::Store(step.k[kStages - 1][c], d, last_stage + c * kTileLanes + at);
    }
    auto square = step.template error_sum<typename Step::Error>(rtol, settings.atol);
    if constexpr (Method::kHasError3) {
      square = combine_errors<LD>(square, step.template error_sum<typename Step::Error3>(rtol, settings.atol));
    }
    hn::Store(LD::fma(square, hn::Set(d, 1.0 / n), step.finite_check()), d, s.error_squared + at);
  });
}

// The same for every method: compiled once.
template <int n, class T>
HWY_NOINLINE void decide_and_advance_all(TileState<T>& s, const StepSettings<T>& settings, const T* last_stage) {
  decide_and_advance(s, settings, std::integral_constant<int, n>(), last_stage);
}

// Two passes: step control is one long chain of dependent operations, and a pass of its own lets the registers of a
// tile overlap there.
template <class System, class Method, class T>
void whole_step_inlined(TileState<T>& s, const StepSettings<T>& settings) {
  using Step = InlinedStep<System, Method, T>;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(DoubleTag()));
  s.last = 0;
  int v = 0;
  for (; s.lanes - v > kLanes; v += 2 * kLanes) attempt_registers<System, Method, T, 2>(s, settings, v);
  if (v < s.lanes) attempt_registers<System, Method, T, 1>(s, settings, v);
  decide_and_advance_all<Step::n>(s, settings, s.k.data() + (Step::kStages - 1) * Step::n * kTileLanes);
}

// `count` fixed steps of kTogether registers from lane v on; false where a state is not finite. Stages of the registers
// take turns, or their whole steps: on AVX2, whose sixteen registers hold neither, what is faster there.
template <class System, class Method, class T, int kTogether>
HWY_INLINE bool run_fixed_registers(const TileState<T>& s, const T* h, int count, int v, T* y_end, T* k_end) {
  using Step = InlinedStep<System, Method, T>;
  using L = typename Step::L;
  const typename Step::D d;
  constexpr int n = Step::n;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(typename Step::D()));
  constexpr bool kStagesInTurns = (HWY_TARGET == HWY_AVX2) != Step::kFewWeights;
  constexpr int kPart = kStagesInTurns ? 1 : Step::kStages - 1;  // stages
  Step steps[kTogether];
  static_for<kTogether>([&](auto g) LOCKSTEP_ALWAYS_INLINE {
    steps[g].load(s, v + g * kLanes);
    steps[g].h = hn::Load(d, h + v + g * kLanes);
  });
  for (int i = 0; i < count; ++i) {
    static_for<(Step::kStages - 1) / kPart>([&](auto part) LOCKSTEP_ALWAYS_INLINE {
      constexpr int first = 1 + kPart * decltype(part)::value;
      static_for<kTogether>([&](auto g) LOCKSTEP_ALWAYS_INLINE { steps[g].template run<first, first + kPart>(); });
    });
    static_for<kTogether>([&](auto g) LOCKSTEP_ALWAYS_INLINE {
      static_for<n>([&](auto c) LOCKSTEP_ALWAYS_INLINE {
        steps[g].y[c] = steps[g].y1[c];
        steps[g].k[0][c] = steps[g].k[Step::kStages - 1][c];
      });
    });
  }
  for (int g = 0; g < kTogether; ++g) {
    // Lanes beyond the active ones may hold anything.
    const int wanted = s.lanes - v - g * kLanes;
    const auto ignored = hn::Not(hn::FirstN(d, static_cast<std::size_t>(wanted < 0 ? 0 : wanted)));
    // The new state is the old one plus something: a component that was once not finite is not finite at the end.
    typename Step::V check = L::zero();
    static_for<n>([&](auto c) LOCKSTEP_ALWAYS_INLINE { check = add_finite_check<L>(check, steps[g].y[c]); });
    if (!hn::AllTrue(d, hn::Or(ignored, hn::Eq(check, L::zero())))) return false;
    for (int c = 0; c < n; ++c) {
      hn::Store(steps[g].y[c], d, y_end + c * kTileLanes + v + g * kLanes);
      hn::Store(steps[g].k[0][c], d, k_end + c * kTileLanes + v + g * kLanes);
    }
  }
  return true;
}

template <class System, class Method, class T>
bool run_fixed_inlined(TileState<T>& s, const StepSettings<T>& settings, int count) {
  using Step = InlinedStep<System, Method, T>;
  const typename Step::D d;
  constexpr int n = Step::n;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(typename Step::D()));
  // Registers that hide each other's latency. On AVX2 (Zen 4) RK4 takes 0.77 of the time of two at once with four,
  // Tsit5 0.87 to 0.91.
  constexpr int kMost = std::min(HWY_TARGET == HWY_AVX2 || Step::kFewWeights ? 4 : 2, kTileLanes / kLanes);
  constexpr int kLeast = std::min(2, kMost);
  (void)settings;
  alignas(64) T h_memory[kTileLanes];
  const T* h = narrow(s.h, h_memory, s.lanes);
  alignas(64) T y_end[n * kTileLanes], k_end[n * kTileLanes];
  int v = 0;
  if constexpr (kMost > kLeast) {
    for (; s.lanes - v > kLeast * kLanes; v += kMost * kLanes) {
      if (!run_fixed_registers<System, Method, T, kMost>(s, h, count, v, y_end, k_end)) return false;
    }
  }
  for (; v < s.lanes; v += kLeast * kLanes) {
    if (!run_fixed_registers<System, Method, T, kLeast>(s, h, count, v, y_end, k_end)) return false;
  }
  for (int c = 0; c < n; ++c) {
    for (v = 0; v < s.lanes; v += kLanes) {
      hn::Store(hn::Load(d, y_end + c * kTileLanes + v), d, s.y.data() + c * kTileLanes + v);
      hn::Store(hn::Load(d, k_end + c * kTileLanes + v), d, s.k.data() + c * kTileLanes + v);
    }
  }
  advance_times(s, count);
  return true;
}

template <class System, class Method, class T>
const ode::cpu::InlinedKernels<T>* inlined_table() {
  void (*whole_step)(TileState<T>&, const StepSettings<T>&) = nullptr;
  if constexpr (sizeof(T) == 8 && Method::kErrorOrder > 0) whole_step = whole_step_inlined<System, Method, T>;
  static const ode::cpu::InlinedKernels<T> kTable = {attempt_inlined<System, Method, T>, whole_step,
                                                     run_fixed_inlined<System, Method, T>};
  return &kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#undef LOCKSTEP_ALWAYS_INLINE

#endif  // include guard a target

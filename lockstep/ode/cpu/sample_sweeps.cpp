#include "lockstep/ode/cpu/adjoint_sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/kernels/lane/targets.h"
#include "lockstep/ode/detail/fixed_steps.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/ode/cpu/sample_sweeps.cpp"
#include <hwy/foreach_target.h>

#include "lockstep/ode/cpu/lane_numerics-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

using ode::AcceptedStep;
using ode::RecordedEvaluation;
using ode::Status;
using ode::cpu::SampleWork;
using ode::cpu::StageSum;

// Registers over components; single numbers in the same arithmetic.
template <class T>
using Row = hn::ScalableTag<T>;
template <class T>
using RowLane = HwyLane<Row<T>>;
using One = hn::CappedTag<double, 1>;
using L1 = HwyLane<One>;
template <class T>
using LT1 = HwyLane<hn::CappedTag<T, 1>>;

HWY_INLINE double one(hn::Vec<One> x) { return hn::GetLane(x); }
HWY_INLINE hn::Vec<One> one(double x) { return L1::set(x); }
template <class T>
HWY_INLINE T fma_one(T a, T b, T c) {
  using L = LT1<T>;
  return hn::GetLane(L::fma(L::set(a), L::set(b), L::set(c)));
}

// sum_j w_j k_j of the register at v.
template <class T>
HWY_INLINE hn::Vec<Row<T>> weighted(const SampleWork<T>& s, const StageSum<T>& sum, std::size_t v) {
  const Row<T> d;
  const T* k = s.k.data() + v;
  auto total = hn::Mul(hn::Set(d, sum.terms[0].weight), hn::LoadU(d, k + sum.terms[0].stage * s.width));
  for (std::size_t i = 1; i < sum.terms.size(); ++i) {
    total = RowLane<T>::fma(hn::Set(d, sum.terms[i].weight), hn::LoadU(d, k + sum.terms[i].stage * s.width), total);
  }
  return total;
}

template <class T>
HWY_INLINE void combine(const SampleWork<T>& s, const StageSum<T>& sum, double h, T* out) {
  const Row<T> d;
  for (std::size_t v = 0; v < s.width; v += hn::Lanes(d)) {
    hn::StoreU(RowLane<T>::fma(hn::Set(d, static_cast<T>(h)), weighted(s, sum, v), hn::LoadU(d, s.y.data() + v)), d,
               out + v);
  }
}

// Stage i of the step being tried, its argument recorded.
template <class T>
HWY_INLINE void stage(SampleWork<T>& s, std::size_t i, double t, double h) {
  T* const argument = s.argument(s.steps.size(), i);
  combine(s, s.tableau.rows[i], h, argument);
  s.rhs->evaluate(t, argument, s.parameters.data(), s.k.data() + i * s.width, s.recorded(s.steps.size(), i),
                  s.workspace.data());
}

template <class T>
HWY_INLINE double error_sum(SampleWork<T>& s, const StageSum<T>& estimate, double h) {
  using L = RowLane<T>;
  const Row<T> d;
  for (std::size_t v = 0; v < s.width; v += hn::Lanes(d)) {
    const auto scale = error_scale<L>(hn::LoadU(d, s.y.data() + v), hn::LoadU(d, s.y1.data() + v), hn::Set(d, s.rtol),
                                      hn::LoadU(d, s.atol.data() + v));
    const auto error = hn::Mul(hn::Set(d, static_cast<T>(h)), weighted(s, estimate, v));
    hn::StoreU(L::div(error, scale), d, s.errors.data() + v);
  }
  T sum = 0;
  for (std::size_t c = 0; c < s.components; ++c) sum = fma_one(s.errors[c], s.errors[c], sum);
  return static_cast<double>(sum);
}

// Stages, y1 and the square of the error norm; NaN where y1 is not finite.
template <class T>
HWY_INLINE double attempt(SampleWork<T>& s, double t, double h, double t_new) {
  const ode::Tableau& tableau = *s.tableau.source;
  for (std::size_t i = 1; i + 1 < s.stages; ++i) stage(s, i, one(L1::fma(one(tableau.c[i]), one(h), one(t))), h);
  stage(s, s.stages - 1, t_new, h);
  std::copy_n(s.argument(s.steps.size(), s.stages - 1), s.width, s.y1.data());
  T check = 0;
  for (std::size_t c = 0; c < s.components; ++c) check = fma_one(s.y1[c], T(0), check);
  double square = 0;
  if (!s.fixed) {
    square = error_sum(s, s.tableau.error, h);
    if (!tableau.error3.empty()) square = one(combine_errors<L1>(one(square), one(error_sum(s, s.tableau.error3, h))));
  }
  const double over_n = 1.0 / static_cast<double>(s.components);
  return one(L1::fma(one(square), one(over_n), one(static_cast<double>(check))));
}

// The first step's size: the explicit Euler trial of Hairer, Norsett & Wanner I, II.4.
template <class T>
double first_step(SampleWork<T>& s) {
  const double span = s.t_end - s.t_start;
  if (s.initial_step != 0) return std::copysign(s.initial_step, span);
  const double over_n = 1.0 / static_cast<double>(s.components);
  auto d0 = L1::zero(), d1 = L1::zero(), d2 = L1::zero();
  const auto scale = [&](std::size_t c) {
    return L1::fma(one(s.rtol_f64), one(std::fabs(static_cast<double>(s.y[c]))), one(s.atol_f64[c]));
  };
  for (std::size_t c = 0; c < s.components; ++c) {
    d0 = add_square<L1>(d0, one(static_cast<double>(s.y[c])), scale(c));
    d1 = add_square<L1>(d1, one(static_cast<double>(s.k[c])), scale(c));
  }
  d0 = L1::mul(d0, one(over_n));
  d1 = L1::mul(d1, one(over_n));
  const double h0 = std::copysign(one(trial_step_size<L1>(d0, d1, one(span))), span);
  for (std::size_t c = 0; c < s.components; ++c) s.y1[c] = fma_one(static_cast<T>(h0), s.k[c], s.y[c]);
  T* const f1 = s.k.data() + s.width;
  s.rhs->evaluate(s.t_start + h0, s.y1.data(), s.parameters.data(), f1, nullptr, s.workspace.data());
  for (std::size_t c = 0; c < s.components; ++c) {
    d2 = add_square<L1>(d2, one(static_cast<double>(f1[c]) - static_cast<double>(s.k[c])), scale(c));
  }
  d2 = L1::mul(d2, one(over_n));
  const auto& source = *s.tableau.source;
  const float exponent = 1.0f / static_cast<float>(error_power(source.error_order, !source.error3.empty()));
  const auto h = first_step_size<L1>(one(std::fabs(h0)), d1, d2, one(span), one(s.max_step), exponent,
                                     first_step_growth(source.error_order, source.stages));
  return std::copysign(one(L1::max(h, smallest_step<L1>(one(s.t_start), one(s.t_end)))), span);
}

// Interpolant weights of save points [first, end) from their thetas, registers over save points.
template <class T>
HWY_INLINE void save_weights(SampleWork<T>& s, std::size_t first, std::size_t end) {
  const hn::ScalableTag<double> d;
  using L = HwyLane<hn::ScalableTag<double>>;
  const ode::Tableau& tableau = *s.tableau.source;
  for (std::size_t i = 0; i < s.tableau.interpolant_stages.size(); ++i) {
    const double* p =
        &tableau.interpolant[s.tableau.interpolant_stages[i] * static_cast<std::size_t>(tableau.interpolant_degree)];
    T* const out = s.weights.data() + i * s.weights_stride;
    for (std::size_t v = first; v < end; v += hn::Lanes(d)) {
      const auto weight = interpolant_weight<L>(p, tableau.interpolant_degree, hn::LoadU(d, s.theta.data() + v));
      if constexpr (sizeof(T) == 8) {
        hn::StoreU(weight, d, out + v);
      } else {
        const hn::Rebind<float, decltype(d)> d32;
        hn::StoreU(hn::DemoteTo(d32, weight), d32, out + v);
      }
    }
  }
}

// Saved states of the accepted step. Rows are written whole and in order: what lies behind the components is the next
// row's.
template <class T>
HWY_INLINE void save(SampleWork<T>& s, typename SampleWork<T>::Step& step) {
  const Row<T> d;
  step.first_save = s.saved;
  step.interpolated = false;
  while (s.saved < s.save_points && (step.t_new - s.save_times[s.saved]) * step.h >= 0) {
    const double theta = one(step_fraction<L1>(one(s.save_times[s.saved]), one(step.t), one(step.t_new), one(step.h)));
    s.theta[s.saved] = theta;
    step.interpolated |= theta != 1;
    ++s.saved;
  }
  step.end_save = s.saved;
  if (step.interpolated) {
    const ode::Tableau& tableau = *s.tableau.source;
    for (std::size_t i = s.stages; i < s.total; ++i) {
      stage(s, i, one(L1::fma(one(tableau.c[i]), one(step.h), one(step.t))), step.h);
      ++s.outcome.evaluations;
    }
    save_weights(s, step.first_save, step.end_save);
  }
  const auto& stages = s.tableau.interpolant_stages;
  for (std::size_t at = step.first_save; at < step.end_save; ++at) {
    T* const out = s.states.data() + at * s.components;
    for (std::size_t v = 0; v < s.width; v += hn::Lanes(d)) {
      auto state = hn::LoadU(d, s.y1.data() + v);
      if (s.theta[at] != 1) {
        const T* k = s.k.data() + v;
        const T* weights = s.weights.data() + at;
        auto sum = hn::Mul(hn::Set(d, weights[0]), hn::LoadU(d, k + stages[0] * s.width));
        for (std::size_t i = 1; i < stages.size(); ++i) {
          sum = RowLane<T>::fma(hn::Set(d, weights[i * s.weights_stride]), hn::LoadU(d, k + stages[i] * s.width), sum);
        }
        state = RowLane<T>::fma(hn::Set(d, static_cast<T>(step.h)), sum, hn::LoadU(d, s.y.data() + v));
      }
      hn::StoreU(state, d, out + v);
    }
  }
}

template <class T>
HWY_INLINE void accept(SampleWork<T>& s, double t, double h, double t_new) {
  typename SampleWork<T>::Step step{t, t_new, h, 0, 0, false};
  save(s, step);
  s.steps.push_back(step);
  std::swap(s.y, s.y1);
  std::copy_n(s.k.data() + (s.stages - 1) * s.width, s.width, s.k.data());
  ++s.outcome.accepted;
  s.outcome.end_time = t_new;
}

// Returns false when there was no room for the record.
template <class T>
bool run(SampleWork<T>& s) {
  double t = s.t_start;
  double h = 0, log_error = kFirstLogError;
  bool after_rejection = false;
  ode::detail::FixedSteps steps{};
  if (s.fixed) {
    steps = ode::detail::fixed_steps(s.t_start, s.t_end, s.dt);
  } else {
    h = first_step(s);
  }
  for (std::int64_t attempts = 0;; ++attempts) {
    if (attempts >= s.max_steps) {
      s.outcome.status = Status::too_many_steps;
      return true;
    }
    if (!s.make_room()) return false;
    double h_try, t_new;
    bool last;
    if (s.fixed) {
      const auto step = propose_fixed_step<L1>(one(s.t_start), one(s.t_end), one(steps.dt), one(steps.last_dt),
                                               one(static_cast<double>(attempts)), one(steps.count));
      h_try = one(step.h), t_new = one(step.t_new), last = L1::any(step.last);
    } else {
      const auto step = propose_step<L1>(one(t), one(s.t_end), one(h), one(s.max_step));
      h_try = one(step.h), t_new = one(step.t_new), last = L1::any(step.last);
    }
    const double error = attempt(s, t, h_try, t_new);
    bool accepted = error == 0;
    if (!s.fixed) {
      using F1 = Float32Lane<L1>::L;
      const auto before = after_rejection ? F1::eq(F1::zero(), F1::zero()) : F1::lt(F1::zero(), F1::zero());
      const auto decision = decide_step<L1>(one(error), one(h_try), one(log_error), before, s.beta1, s.beta2);
      accepted = L1::any(decision.accept);
      h = one(decision.h_next);
      if (accepted) log_error = one(decision.log_error);
      after_rejection = !accepted;
    }
    if (accepted) {
      accept(s, t, h_try, t_new);
      t = t_new;
      if (last) {
        s.outcome.status = Status::success;
        return true;
      }
      continue;
    }
    ++s.outcome.rejected;
    const bool finite = error <= std::numeric_limits<double>::max();
    if (s.fixed || std::fabs(h) <= one(smallest_step<L1>(one(t), one(s.t_end)))) {
      s.outcome.status = finite && !s.fixed ? Status::step_too_small : Status::not_finite;
      return true;
    }
  }
}

template <class T>
bool forward(SampleWork<T>& s) {
  s.steps.clear();
  s.saved = 0;
  s.outcome = {};
  s.outcome.end_time = s.t_start;
  s.rhs->evaluate(s.t_start, s.y.data(), s.parameters.data(), s.k.data(), s.start_record.data(), s.workspace.data());
  while (s.saved < s.save_points && s.save_times[s.saved] == s.t_start) {
    std::copy_n(s.y.data(), s.width, s.states.data() + s.saved++ * s.components);
  }
  s.saved_at_start = s.saved;
  T check = 0;
  for (std::size_t c = 0; c < s.components; ++c) check = fma_one(s.k[c], T(0), fma_one(s.y[c], T(0), check));
  s.outcome.evaluations = 1;
  if (check != 0) {
    s.outcome.status = Status::not_finite;
  } else if (s.t_start == s.t_end) {
    s.outcome.status = Status::success;
  } else if (!run(s)) {
    return false;
  }
  // As the engine counts: two evaluations before the first step where its size was chosen.
  s.outcome.evaluations += (s.outcome.accepted + s.outcome.rejected) * static_cast<std::int32_t>(s.stages - 1) +
                           (s.fixed || s.initial_step != 0 ? 0 : 1);
  for (std::size_t i = s.saved * s.components; i < s.save_points * s.components; ++i) {
    s.states[i] = std::numeric_limits<T>::quiet_NaN();
  }
  return true;
}

template <class T>
HWY_INLINE void reverse_evaluation(SampleWork<T>& s, const std::byte* record, const T* out_bar) {
  std::byte* const cotangents = s.cotangents.data() + s.pending.size() * s.rhs->cotangent_bytes();
  s.rhs->reverse(record, out_bar, s.input_bar.data(), cotangents, s.workspace.data());
  s.pending.push_back({record, cotangents});
  for (std::size_t i = 0; i < s.parameter_bar.size(); ++i) s.parameter_bar[i] += s.input_bar[s.components + i];
  if (s.pending.size() == s.pending.capacity()) {
    s.rhs->accumulate(s.pending, s.sum.data());
    s.pending.clear();
  }
}

template <class T>
HWY_INLINE void reverse_step(SampleWork<T>& s, std::size_t index, const T* states_bar) {
  using L = RowLane<T>;
  const Row<T> d;
  const auto step = s.steps[index];
  const auto h = hn::Set(d, static_cast<T>(step.h));
  const auto& stages = s.tableau.interpolant_stages;
  std::fill_n(s.k_bar.data(), s.total * s.width, T(0));
  std::copy_n(s.k_first_bar.data(), s.width, s.k_bar.data() + (s.stages - 1) * s.width);
  for (std::size_t v = 0; v < s.width; v += hn::Lanes(d)) {
    auto y1_bar = hn::LoadU(d, s.y_bar.data() + v);
    auto y_bar = hn::Zero(d);
    for (std::size_t at = step.end_save; at-- > step.first_save;) {
      const auto saved = hn::LoadU(d, states_bar + at * s.components + v);
      if (s.theta[at] == 1) {
        y1_bar = hn::Add(y1_bar, saved);
        continue;
      }
      y_bar = hn::Add(y_bar, saved);
      const auto scaled = hn::Mul(h, saved);
      for (std::size_t i = 0; i < stages.size(); ++i) {
        T* const k = s.k_bar.data() + stages[i] * s.width + v;
        hn::StoreU(L::fma(hn::Set(d, s.weights[i * s.weights_stride + at]), scaled, hn::LoadU(d, k)), d, k);
      }
    }
    hn::StoreU(y_bar, d, s.y_bar.data() + v);
    hn::StoreU(y1_bar, d, s.argument_bar.data() + v);
  }
  for (std::size_t i = (step.interpolated ? s.total : s.stages) - 1; i > 0; --i) {
    reverse_evaluation(s, s.recorded(index, i), s.k_bar.data() + i * s.width);
    const auto& row = s.tableau.rows[i];
    for (std::size_t v = 0; v < s.width; v += hn::Lanes(d)) {
      auto argument = hn::LoadU(d, s.input_bar.data() + v);
      if (i + 1 == s.stages) argument = hn::Add(argument, hn::LoadU(d, s.argument_bar.data() + v));
      hn::StoreU(hn::Add(hn::LoadU(d, s.y_bar.data() + v), argument), d, s.y_bar.data() + v);
      const auto scaled = hn::Mul(h, argument);
      for (const auto& term : row.terms) {
        T* const k = s.k_bar.data() + term.stage * s.width + v;
        hn::StoreU(L::fma(hn::Set(d, term.weight), scaled, hn::LoadU(d, k)), d, k);
      }
    }
  }
  std::copy_n(s.k_bar.data(), s.width, s.k_first_bar.data());
}

template <class T>
void backward(SampleWork<T>& s, const T* states_bar) {
  std::fill_n(s.y_bar.data(), s.width, T(0));
  std::fill_n(s.k_first_bar.data(), s.width, T(0));
  std::fill_n(s.parameter_bar.data(), s.parameter_bar.size(), T(0));
  std::fill_n(s.sum.data(), s.sum.size(), T(0));
  s.pending.clear();
  for (std::size_t step = s.steps.size(); step-- > 0;) reverse_step(s, step, states_bar);
  for (std::size_t at = 0; at < s.saved_at_start; ++at) {
    for (std::size_t c = 0; c < s.components; ++c) s.y_bar[c] += states_bar[at * s.components + c];
  }
  if (!s.steps.empty()) {
    reverse_evaluation(s, s.start_record.data(), s.k_first_bar.data());
    for (std::size_t c = 0; c < s.components; ++c) s.y_bar[c] += s.input_bar[c];
  }
  if (!s.pending.empty()) s.rhs->accumulate(s.pending, s.sum.data());
}

}  // namespace

bool sample_forward_f32(SampleWork<float>& s) { return forward(s); }
bool sample_forward_f64(SampleWork<double>& s) { return forward(s); }
void sample_backward_f32(SampleWork<float>& s, const float* bar) { backward(s, bar); }
void sample_backward_f64(SampleWork<double>& s, const double* bar) { backward(s, bar); }

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "lockstep/kernels/lane/dispatch.h"

namespace lockstep {

template <>
ode::cpu::SampleSweeps<float> ode::cpu::sample_sweeps<float>(CpuTarget target) {
  return {LOCKSTEP_CHOOSE(target, sample_forward_f32), LOCKSTEP_CHOOSE(target, sample_backward_f32)};
}
template <>
ode::cpu::SampleSweeps<double> ode::cpu::sample_sweeps<double>(CpuTarget target) {
  return {LOCKSTEP_CHOOSE(target, sample_forward_f64), LOCKSTEP_CHOOSE(target, sample_backward_f64)};
}

}  // namespace lockstep
#endif  // HWY_ONCE

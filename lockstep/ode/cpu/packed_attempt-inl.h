// Steps of a trajectory that is alone in its tile. Include like hwy_lane-inl.h.
#if defined(LOCKSTEP_ODE_CPU_PACKED_ATTEMPT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_ODE_CPU_PACKED_ATTEMPT_INL_H_
#undef LOCKSTEP_ODE_CPU_PACKED_ATTEMPT_INL_H_
#else
#define LOCKSTEP_ODE_CPU_PACKED_ATTEMPT_INL_H_
#endif

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/ode/cpu/generated_step.h"
#include "lockstep/ode/cpu/tile_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

using ode::cpu::StageSum;

// sum_j w_j k_j, stages ascending, of the registers at k. A stage has `size` numbers.
template <class G, class T>
HWY_INLINE typename G::V weigh(const T* k, std::size_t size, const StageSum<T>& sum) {
  const auto* const terms = sum.terms.data();
  const std::size_t count = sum.terms.size();
  auto acc = G::mul(G::set(terms[0].weight), G::load(k + terms[0].stage * size));
  for (std::size_t i = 1; i < count; ++i)
    acc = G::fma(G::set(terms[i].weight), G::load(k + terms[i].stage * size), acc);
  return acc;
}

HWY_INLINE void stage_times(const double* t, const double* h, double c, double* out, int lanes) {
  const DoubleTag d;
  for (int v = 0; v < lanes; v += static_cast<int>(hn::Lanes(d))) {
    hn::Store(LD::fma(hn::Set(d, c), hn::Load(d, h + v), hn::Load(d, t + v)), d, out + v);
  }
}

// The times, [lane], at which stage i of the proposed step is evaluated; in s.t_stage where it needs a place.
template <class T>
HWY_INLINE const double* time_of_stage(TileState<T>& s, const StepSettings<T>& settings, std::size_t i) {
  const ode::Tableau& tableau = *settings.tableau->source;
  if (i + 1 == static_cast<std::size_t>(tableau.stages) || (settings.has_stops && tableau.c[i] == 1))
    return settings.has_stops ? s.t_last : s.t_new;
  stage_times(s.t, s.h_try, tableau.c[i], s.t_stage, s.lanes);
  return s.t_stage;
}

// The attempt of one lane on a copy of its rows without the places beside them that hold nothing. A register then has
// several components side by side, which do not depend on one another within a stage, what is left fits a nearer
// cache, and rows a power of two apart would all want the same few lines of one.
template <class T>
class PackedAttempt {
 public:
  static bool suits(const TileState<T>& s) { return s.lanes == 1 && s.components >= ode::cpu::kFewestPacked; }

  PackedAttempt(TileState<T>& s, const StepSettings<T>& settings, T h)
      : s_(s),
        settings_(settings),
        h_(h),
        stages_(static_cast<std::size_t>(settings.tableau->source->stages)),
        size_(whole_registers(s.components)) {
    const std::size_t parameters = s.parameters.size() / kTileLanes, parameter_size = whole_registers(parameters);
    constexpr std::size_t kBehind = 16 / sizeof(T);  // what code reads beyond its rows
    const std::size_t numbers = (stages_ + 5) * size_ + parameter_size + kLanes + kBehind;
    if (s.packed.size() < numbers) s.packed = AlignedBuffer<T>(numbers);
    T* left = s.packed.data();
    const auto take = [&left](std::size_t count) { return std::exchange(left, left + count); };
    y_ = take(size_);
    argument_ = take(size_);
    errors_ = take(size_);
    errors3_ = take(size_);
    atol_ = take(size_);
    k_ = take(stages_ * size_);
    parameters_ = take(parameter_size);
    time_ = take(kLanes);
    pack(s.y.data(), s.components, y_);
    pack(s.stage(0), s.components, k_);
    if (!settings.fixed) std::copy_n(settings.atol, s.components, atol_);
    if (settings.generated == nullptr || settings.generated->one_lane.code == nullptr) return;
    const ode::cpu::OneLaneCode& one_lane = settings.generated->one_lane;
    code_ = one_lane.code.get();
    pack(s.parameters.data(), parameters, parameters_);
    for (std::size_t i = 0; i < one_lane.sources.size(); ++i) {
      using Source = ode::detail::GraphSource;
      const Source source = one_lane.sources[i];
      bases_[kFirstInput + i] = source == Source::state        ? argument_
                                : source == Source::parameters ? parameters_
                                                               : time_;
    }
  }

  // TileKernels::attempt().
  void run() {
    for (std::size_t i = 1; i < stages_; ++i) {
      combine(i);
      const double* const t = time_of_stage(s_, settings_, i);
      if (code_ == nullptr) {
        evaluate_tile(i, t);
        continue;
      }
      time_[0] = static_cast<T>(t[0]);
      evaluate(i);
      if (settings_.keep_stages || i + 1 == stages_) unpack(k_ + i * size_, s_.stage(i));
    }
    if (code_ != nullptr) unpack(argument_, s_.y1.data());
    finish();
  }

  // `count` fixed steps by code that reads no time, from s.y and s.k on; nothing is changed, and false returned, where
  // a state is not finite.
  bool run_fixed(int count) {
    for (int step = 0; step < count; ++step) {
      for (std::size_t i = 1; i < stages_; ++i) {
        combine(i);
        evaluate(i);
      }
      std::swap(y_, argument_);
      take_argument();
      std::copy_n(k_ + (stages_ - 1) * size_, size_, k_);
    }
    // The new state is the old one plus something: a component that was once not finite is not finite at the end.
    T check = 0;
    for (std::size_t c = 0; c < s_.components; ++c) check += y_[c] * T(0);
    if (check != 0) return false;
    unpack(y_, s_.y.data());
    unpack(k_, s_.stage(0));
    return true;
  }

 private:
  using D = hn::ScalableTag<T>;
  using L = HwyLane<D>;
  static constexpr std::size_t kLanes = hn::MaxLanes(D());
  static constexpr std::size_t kOutput = 1, kFirstInput = 2;  // ArithmeticTile's

  static std::size_t whole_registers(std::size_t numbers) { return (numbers + kLanes - 1) / kLanes * kLanes; }

  static void pack(const T* HWY_RESTRICT from, std::size_t rows, T* HWY_RESTRICT to) {
    for (std::size_t row = 0; row < rows; ++row) to[row] = from[row * kTileLanes];
  }
  void unpack(const T* HWY_RESTRICT from, T* HWY_RESTRICT to) const {
    for (std::size_t c = 0; c < s_.components; ++c) to[c * kTileLanes] = from[c];
  }

  // body(lane group, index of its first number) over a row.
  template <class Body>
  HWY_INLINE void each_part(const Body& body) const {
    constexpr std::size_t kRegisters = 8, kWhole = kRegisters * kLanes;
    std::size_t at = 0;
    for (; at + kWhole <= size_; at += kWhole) body(LaneGroup<D, kRegisters>(), at);
    for (; at < size_; at += kLanes) body(LaneGroup<D, 1>(), at);
  }

  // argument_ of stage i.
  void combine(std::size_t i) {
    const StageSum<T>& sum = settings_.tableau->rows[i];
    each_part([&](auto group, std::size_t at) HWY_ATTR {
      using G = decltype(group);
      G::store(G::fma(G::set(h_), weigh<G>(k_ + at, size_, sum), G::load(y_ + at)), argument_ + at);
    });
  }

  void take_argument() {
    for (std::size_t i = 0; i < settings_.generated->one_lane.sources.size(); ++i) {
      if (settings_.generated->one_lane.sources[i] == ode::detail::GraphSource::state)
        bases_[kFirstInput + i] = argument_;
    }
  }
  void evaluate(std::size_t i) {
    bases_[kOutput] = k_ + i * size_;
    code_->run(bases_.data(), 1);
  }
  void evaluate_tile(std::size_t i, const double* t) {
    T* const in = i + 1 == stages_ ? s_.y1.data() : s_.scratch.data();
    const D d;
    // Whole registers: what is read back wider than it was written waits until that has left the core.
    for (std::size_t c = 0; c < s_.components; ++c) hn::Store(hn::Set(d, argument_[c]), d, in + c * kTileLanes);
    settings_.rhs->evaluate({t, in, s_.parameters.data(), s_.stage(i), s_.lanes}, s_.workspace);
    pack(s_.stage(i), s_.components, k_ + i * size_);
  }

  // Each component's error by its tolerance, where argument_ is the new state.
  void scale_errors(const StageSum<T>& estimate, T* HWY_RESTRICT out) const {
    each_part([&](auto group, std::size_t at) HWY_ATTR {
      using G = decltype(group);
      const auto error = G::mul(G::set(h_), weigh<G>(k_ + at, size_, estimate));
      const auto scale =
          error_scale<G>(G::load(y_ + at), G::load(argument_ + at), G::set(settings_.rtol), G::load(atol_ + at));
      G::store(G::div(error, scale), out + at);
    });
  }
  // Sums over components, one after another as the general kernels have them.
  void finish() {
    const auto& tableau = *settings_.tableau;
    const bool has_error3 = !tableau.source->error3.empty();
    T sum = 0, sum3 = 0, check = 0;
    if (!settings_.fixed) scale_errors(tableau.error, errors_);
    if (!settings_.fixed && has_error3) scale_errors(tableau.error3, errors3_);
    for (std::size_t c = 0; c < s_.components; ++c) check += argument_[c] * T(0);
    for (std::size_t c = 0; !settings_.fixed && c < s_.components; ++c) {
      sum = std::fma(errors_[c], errors_[c], sum);
      if (has_error3) sum3 = std::fma(errors3_[c], errors3_[c], sum3);
    }
    alignas(64) T sums[kTileLanes] = {sum}, sums3[kTileLanes] = {sum3}, checks[kTileLanes] = {check};
    if (has_error3) {
      finish_error<T, true>(s_, sums, sums3, checks);
    } else {
      finish_error<T, false>(s_, sums, sums3, checks);
    }
  }

  TileState<T>& s_;
  const StepSettings<T>& settings_;
  T h_;
  std::size_t stages_;
  std::size_t size_;                               // numbers of a row, of whole registers
  T *y_, *argument_, *errors_, *errors3_, *atol_;  // [component]
  T* k_;                                           // [stage][component]
  T* parameters_;                                  // [parameter]
  T* time_;
  const LaneCode* code_ = nullptr;  // null: the right-hand side evaluates tiles
  std::array<T*, LaneProgram::kMostBases> bases_ = {};
};

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target

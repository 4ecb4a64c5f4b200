// One trajectory on its way through its whole span, as one thread advances it: state, stages and step control in
// registers, save points written as they are passed. The steps are those of every engine (docs/numerics.md).
#pragma once

#include "lockstep/ode/cuda/ensemble.h"
#include "lockstep/ode/cuda/linear_system.h"
#include "lockstep/ode/cuda/scheme.h"
#include "lockstep/ode/detail/fixed_steps.h"
#include "lockstep/ode/detail/turn_search.h"
#include "lockstep/ode/numerics.h"

namespace lockstep::ode::cuda {

// Derivatives that bring an event of their own: event_value(t, u, p).
template <class Derivative>
inline constexpr bool kHasEvent = requires {
  &Derivative::event_value;
};

// Where a thread keeps its trajectory: in registers, or in its own memory where the compiler cannot.
template <class T, class Scheme, class Derivative>
struct ThreadMemory {
  static constexpr int kMost = Derivative::kMostComponents;
  using Row = T*;
  using ConstRow = const T*;
  struct Scratch {  // one more vector, for as long as a function needs it
    LOCKSTEP_HOST_DEVICE explicit Scratch(const ThreadMemory&) {}
    LOCKSTEP_HOST_DEVICE Row row() { return of; }
    T of[kMost];
  };

  T y_[kMost], y1_[kMost], k_[Scheme::kAllStages][kMost];
};

// The rest of a trajectory: what a thread must know to go on with it.
template <class T>
struct Progress {
  std::int64_t index_ = 0;
  double t_ = 0, t_end_ = 0, h_ = 0, log_error_ = 0, next_save_ = 0;
  double t_start_ = 0, last_dt_ = 0, step_count_ = 0;  // of fixed steps
  double trial_d1_ = 0;
  scalar::StepProposal<ScalarLane<double>> proposed_{};
  T event_value_ = 0;
  std::int32_t saved_ = 0, accepted_ = 0, rejected_ = 0, evaluations_ = 0;
  bool after_rejection_ = false, interpolant_ready_ = true;
};

// What a linearly implicit step knows besides: the square that error_squared() is at least.
template <bool implicit>
struct MiddleError {};
template <>
struct MiddleError<true> {
  double middle_ = 0;
};

// The most that step() takes at once. Threads of a warp wait for each other there, and one whose trajectory has ended
// is to take another soon.
inline constexpr int kPlainSteps = 64;

// Scheme is a CompiledScheme or TableScheme. A Derivative has kMostComponents, kMostParameters (0: parameters stay
// where they are, up to kMostGathered of them are gathered where they lie apart), components(), and
// evaluate(t, u, p, du); for a linearly implicit method the type Matrix, a MatrixShape of its Jacobian, and
// jacobian(t, u, p, by_state, by_time), which sets every entry.
//
//   while (there is an index) { if (begin(index)) while (step()) {} }
//
// One object may take trajectory after trajectory; nothing of one reaches the next. Memory holds its vectors.
template <class T, class Scheme, class Derivative, class Memory = ThreadMemory<T, Scheme, Derivative>>
class Trajectory : protected Memory, protected Progress<T>, protected MiddleError<Scheme::kImplicit> {
 protected:
  using L = ScalarLane<T>;
  using D = ScalarLane<double>;
  using Memory::k_;
  using Memory::y1_;
  using Memory::y_;
  using Progress<T>::index_;
  using Progress<T>::t_;
  using Progress<T>::t_end_;
  using Progress<T>::h_;
  using Progress<T>::log_error_;
  using Progress<T>::next_save_;
  using Progress<T>::t_start_;
  using Progress<T>::last_dt_;
  using Progress<T>::step_count_;
  using Progress<T>::trial_d1_;
  using Progress<T>::proposed_;
  using Progress<T>::event_value_;
  using Progress<T>::saved_;
  using Progress<T>::accepted_;
  using Progress<T>::rejected_;
  using Progress<T>::evaluations_;
  using Progress<T>::after_rejection_;
  using Progress<T>::interpolant_ready_;

 public:
  LOCKSTEP_HOST_DEVICE Trajectory(const Ensemble<T>& ensemble, const StepRules<T>& rules, const EventRule<T>& event,
                                  const Scheme& scheme, const Derivative& derivative)
      : ensemble_(ensemble), rules_(rules), event_(event), scheme_(scheme), derivative_(derivative) {}
  LOCKSTEP_HOST_DEVICE Trajectory(const Ensemble<T>& ensemble, const StepRules<T>& rules, const EventRule<T>& event,
                                  const Scheme& scheme, const Derivative& derivative, const Memory& memory)
      : Memory(memory), ensemble_(ensemble), rules_(rules), event_(event), scheme_(scheme), derivative_(derivative) {}

  // Between evaluations: all that is not in Memory. A trajectory is gone on with where its Memory is.
  LOCKSTEP_HOST_DEVICE const Progress<T>& progress() const { return *this; }
  LOCKSTEP_HOST_DEVICE void restore(const Progress<T>& progress) {
    static_cast<Progress<T>&>(*this) = progress;
    parameters_ = ensemble_.parameters + index_ * ensemble_.parameter_stride;
  }

  // Takes up a trajectory. False when it has ended at once: its record is written.
  LOCKSTEP_HOST_DEVICE bool begin(std::int64_t index) {
    load(index);
    evaluate(start_time(), y_, k_[0]);
    if (!start()) return false;
    if constexpr (Scheme::kAdaptive) {
      if (needs_trial()) {
        prepare_trial();
        evaluate(trial_time(), y1_, k_[1]);
        finish_trial();
      }
    }
    return true;
  }

  // Attempts a step, of fixed ones up to kPlainSteps more before it. False when that ended the trajectory.
  LOCKSTEP_HOST_DEVICE bool step() {
    if constexpr (!Scheme::kAdaptive) take_plain_steps();
    propose();
    run_stages(has_stops(), static_cast<T>(proposed_.h));
    const Verdict verdict = judge();
    if (verdict == Verdict::ended || !conclude(verdict == Verdict::accepted)) return false;
    if (verdict == Verdict::accepted && behind_jump()) {
      evaluate(start_time(), y_, k_[0]);
      finish_renewal();
    }
    return true;
  }

  // What begin() and step() consist of, for a caller that evaluates elsewhere (block_trajectory.h): load, evaluate at
  // state() into stage(0), start; where needs_trial, prepare_trial, evaluate at stage_state() into stage(1),
  // finish_trial; then for each step propose, for each stage prepare_stage, evaluate, then judge, where
  // needs_interpolant its stages likewise, conclude; where behind_jump, evaluate at state() into stage(0),
  // finish_renewal.
  enum class Verdict { ended, rejected, accepted };

  LOCKSTEP_HOST_DEVICE void load(std::int64_t index) {
    const int n = derivative_.components();
    index_ = index;
    t_ = ensemble_.start_times[index * ensemble_.start_stride];
    t_end_ = ensemble_.end_times[index * ensemble_.end_stride];
    accepted_ = rejected_ = 0;
    evaluations_ = 1;
    saved_ = 0;
    after_rejection_ = false;
    log_error_ = scalar::kFirstLogError;
    const T* const row = ensemble_.parameters + index * ensemble_.parameter_stride;
    if constexpr (Derivative::kMostParameters > 0) {
      for (int i = 0; i < Derivative::kMostParameters; ++i) own_parameters_[i] = row[i * ensemble_.parameter_component];
    } else {
      parameters_ = row;
      if constexpr (Derivative::kMostGathered > 0) {
        if (ensemble_.parameter_component != 1) {
          for (int i = 0; i < ensemble_.gathered_parameters; ++i)
            own_parameters_[i] = row[i * ensemble_.parameter_component];
          parameters_ = own_parameters_;
        }
      }
    }
    const T* const initial = ensemble_.initial_states + index * ensemble_.initial_strides.trajectory;
    for (int c = 0; c < n; ++c) y_[c] = initial[c * ensemble_.initial_strides.component];
    read_next_save();
    while (saved_ < ensemble_.save_points && next_save_ == t_) store(y_);
    if (t_ != t_end_) give_impulses();
  }

  // False when the trajectory has ended at once.
  LOCKSTEP_HOST_DEVICE bool start() {
    const int n = derivative_.components();
    if (has_event()) event_value_ = event_function(kHasEvent<Derivative> ? start_time() : t_, y_);

    T check = 0;
    for (int c = 0; c < n; ++c) check = scalar::add_finite_check<L>(check, k_[0][c]);
    for (int c = 0; c < n; ++c) check = scalar::add_finite_check<L>(check, y_[c]);
    if (check != 0) return end(Status::not_finite);
    if (t_ == t_end_) return end(Status::success);
    if (rules_.fixed) {
      t_start_ = t_;
      const auto steps = detail::fixed_steps(t_, t_end_, rules_.dt);
      h_ = steps.dt;
      last_dt_ = steps.last_dt;
      step_count_ = steps.count;
    } else {
      h_ = D::copysign(rules_.initial_step, D::sub(t_end_, t_));
    }
    return true;
  }

  LOCKSTEP_HOST_DEVICE bool needs_trial() const { return !rules_.fixed && !(rules_.initial_step > 0); }

  LOCKSTEP_HOST_DEVICE void propose() {
    proposed_ = rules_.fixed
                    ? scalar::propose_fixed_step<D>(t_start_, t_end_, h_, last_dt_, double(accepted_), step_count_)
                    : scalar::propose_adaptive_step<D>(has_stops(), t_, limit(), h_, rules_.max_step);
    interpolant_ready_ = scheme_.interpolant_stages() == 0;
  }

  // The argument of stage i > 0 into stage_state().
  template <class Index>
  LOCKSTEP_HOST_DEVICE void prepare_stage(Index i) {
    prepare_stage(i, static_cast<T>(proposed_.h));
  }
  template <class Index>
  LOCKSTEP_HOST_DEVICE void prepare_stage(Index i, T h_state) {
    const int n = derivative_.components();
    for (int c = 0; c < n; ++c) y1_[c] = L::fma(h_state, scheme_.stage_sum(i, k_, c), y_[c]);
  }
  template <class Index>
  LOCKSTEP_HOST_DEVICE double stage_time(Index i) const {
    return stage_time(i, has_stops());
  }
  template <class Index>
  LOCKSTEP_HOST_DEVICE double stage_time(Index i, bool has_stops) const {
    if (has_stops && (int(i) == scheme_.stages() - 1 || scheme_.stage_time(i) == 1))
      return detail::last_stage_time(stops(), t_, proposed_.t_new, proposed_.last);
    return int(i) == scheme_.stages() - 1 ? proposed_.t_new : D::fma(scheme_.stage_time(i), proposed_.h, t_);
  }

  // Once all stages are evaluated.
  LOCKSTEP_HOST_DEVICE Verdict judge() {
    const int n = derivative_.components();
    evaluations_ += evaluations_of_step();
    T check = 0;
    for (int c = 0; c < n; ++c) check = scalar::add_finite_check<L>(check, y1_[c]);

    bool accept = true;
    if (rules_.fixed) {
      accept = check == 0;
      if (!accept) {
        ++rejected_;
        end(Status::not_finite);
        return Verdict::ended;
      }
    } else if constexpr (Scheme::kAdaptive) {
      const double error = error_squared(proposed_.h, check);
      const auto decision =
          scalar::decide_step<D>(error, proposed_.h, log_error_, after_rejection_, rules_.beta1, rules_.beta2);
      accept = decision.accept;
      h_ = decision.h_next;
      after_rejection_ = !accept;
      if (!accept) {
        ++rejected_;
        if (D::abs(h_) <= scalar::smallest_step<D>(t_, limit())) {
          end(error <= 0x1.fffffffffffffp1023 ? Status::step_too_small : Status::not_finite);
          return Verdict::ended;
        }
      } else {
        log_error_ = decision.log_error;
      }
    }
    return accept ? Verdict::accepted : Verdict::rejected;
  }

  // After judge(): what an accepted step passes, and what ends here. False when the trajectory has ended.
  LOCKSTEP_HOST_DEVICE bool conclude(bool accept) {
    if (accept) {
      if (finish_step(proposed_.h, proposed_.t_new)) return end(Status::terminated);
      if (rules_.fixed ? proposed_.last : t_ == t_end_) return end(Status::success);
    }
    if (std::int64_t(accepted_) + rejected_ >= rules_.max_steps) return end(Status::too_many_steps);
    if (accept && behind_jump()) give_impulses();
    return true;
  }

  // Ends the trajectory where it stands.
  LOCKSTEP_HOST_DEVICE bool end(Status status) {
    const int n = derivative_.components();
    for (; saved_ < ensemble_.save_points; ++saved_) {
      T* const out = saved_state();
      for (int c = 0; c < n; ++c) out[c * ensemble_.state_strides.component] = math::Format<T>::kNaN;
    }
    T* const out = ensemble_.end_states + index_ * ensemble_.end_strides.trajectory;
    for (int c = 0; c < n; ++c) out[c * ensemble_.end_strides.component] = y_[c];
    if (ensemble_.records == nullptr) return false;
    TrajectoryRecord& record = ensemble_.records[index_];
    record.status = status;
    record.accepted = accepted_;
    record.rejected = rejected_;
    record.evaluations = evaluations_;
    record.end_time = t_;
    return false;
  }

  // The first step, by Hairer, Norsett & Wanner I, II.4, "Starting Step Size" (see numerics-inl.h): before and after
  // the evaluation at the end of an explicit Euler step.
  LOCKSTEP_HOST_DEVICE void prepare_trial() {
    const int n = derivative_.components();
    const double span = D::sub(t_end_, t_);
    const double over_n = D::div(1.0, double(n));
    double d0 = 0, d1 = 0;
    for (int c = 0; c < n; ++c) {
      d0 = scalar::add_square<D>(d0, double(y_[c]), start_scale(c));
      d1 = scalar::add_square<D>(d1, double(k_[0][c]), start_scale(c));
    }
    d0 = D::mul(d0, over_n);
    trial_d1_ = D::mul(d1, over_n);
    h_ = D::copysign(scalar::trial_step_size<D>(d0, trial_d1_, span), span);
    for (int c = 0; c < n; ++c) y1_[c] = L::fma(static_cast<T>(h_), k_[0][c], y_[c]);
  }
  LOCKSTEP_HOST_DEVICE double trial_time() const { return D::add(t_, h_); }
  LOCKSTEP_HOST_DEVICE void finish_trial() {
    const int n = derivative_.components();
    const double span = D::sub(t_end_, t_);
    ++evaluations_;
    double d2 = 0;
    for (int c = 0; c < n; ++c) {
      d2 = scalar::add_square<D>(d2, D::sub(double(k_[1][c]), double(k_[0][c])), start_scale(c));
    }
    d2 = D::mul(d2, D::div(1.0, double(n)));
    const float exponent =
        ScalarLane<float>::div(1.0f, float(scalar::error_power(scheme_.error_order(), scheme_.has_error3())));
    const double h = scalar::first_step_size<D>(D::abs(h_), trial_d1_, d2, span, rules_.max_step, exponent,
                                                scalar::first_step_growth(scheme_.error_order(), scheme_.stages()));
    h_ = D::copysign(D::max(h, scalar::smallest_step<D>(t_, t_end_)), span);
  }

  // Whether an accepted step has something to interpolate and the interpolant wants stages of its own.
  LOCKSTEP_HOST_DEVICE bool needs_interpolant() const {
    if (interpolant_ready_) return false;
    if (has_event()) {
      const T value = event_function(event_end_time(), y1_);
      typename Memory::Scratch scratch(*this);
      if (crosses(event_value_, value) || turn(value, scratch.row()).open()) return true;
    }
    return saved_ < ensemble_.save_points && (proposed_.t_new - next_save_) * proposed_.h >= 0 &&
           scalar::step_fraction<D>(next_save_, t_, proposed_.t_new, proposed_.h) != 1;
  }
  // The argument's component c of one of them.
  template <class Index>
  LOCKSTEP_HOST_DEVICE T interpolant_argument(Index i, int c) const {
    return L::fma(static_cast<T>(proposed_.h), scheme_.stage_sum(i, k_, c), y_[c]);
  }
  LOCKSTEP_HOST_DEVICE void finish_interpolant() {
    evaluations_ += scheme_.interpolant_stages();
    interpolant_ready_ = true;
  }

  // The time of the evaluation at state(), and whether the state that an accepted step led to wants one.
  LOCKSTEP_HOST_DEVICE double start_time() const { return has_stops() ? here().behind : t_; }
  LOCKSTEP_HOST_DEVICE bool behind_jump() const {
    return has_stops() && (rules_.fixed || proposed_.last) && here().before != here().behind;
  }
  LOCKSTEP_HOST_DEVICE void finish_renewal() { ++evaluations_; }

  LOCKSTEP_HOST_DEVICE typename Memory::ConstRow state() const { return y_; }
  LOCKSTEP_HOST_DEVICE typename Memory::ConstRow stage_state() const { return y1_; }
  LOCKSTEP_HOST_DEVICE typename Memory::Row stage(int i) { return k_[i]; }
  LOCKSTEP_HOST_DEVICE const T* parameters() const { return parameters_; }

 protected:
  LOCKSTEP_HOST_DEVICE bool has_stops() const { return ensemble_.stops.count > 0; }
  LOCKSTEP_HOST_DEVICE detail::StopTimes stops() const {
    const detail::StopTimes& all = ensemble_.stops;
    const std::int64_t* const first = ensemble_.first_stop + index_ * ensemble_.stop_stride;
    return {all.time + *first, all.low + *first, all.high + *first, static_cast<std::int32_t>(first[1] - *first),
            all.fixed};
  }
  LOCKSTEP_HOST_DEVICE detail::StepEnd here() const { return detail::step_end(stops(), t_, t_end_ < t_); }
  LOCKSTEP_HOST_DEVICE double limit() const { return has_stops() ? detail::limit_at(stops(), t_, t_end_).t : t_end_; }

  // What happens to the state where it stands, and whether anything does. No event looks at it here: without resets a
  // solve has one of the two (program.cpp).
  LOCKSTEP_HOST_DEVICE bool give_impulses() {
    if (!has_stops() || ensemble_.stops.changes == nullptr) return false;
    detail::StopTimes own = stops();
    own.first_change = ensemble_.stops.first_change + ensemble_.first_stop[index_ * ensemble_.stop_stride];
    own.changes = ensemble_.stops.changes;
    bool any = false;
    detail::for_changes(own, t_, [&](const detail::StateChange& change) {
      any = true;
      // No index that the compiler does not know: it would push the state out of registers.
      for (int c = 0; c < derivative_.components(); ++c) {
        if (c == change.component) y_[c] = detail::changed(T(y_[c]), change);
      }
    });
    return any;
  }

  // The trajectory's parameters side by side.
  LOCKSTEP_HOST_DEVICE const T* numbers() const {
    if constexpr (Derivative::kMostParameters > 0) {
      return own_parameters_;
    } else {
      return parameters_;
    }
  }
  template <class U, class Du>
  LOCKSTEP_HOST_DEVICE void evaluate(double t, U&& u, Du&& du) const {
    derivative_.evaluate(t, u, numbers(), du);
  }

  LOCKSTEP_HOST_DEVICE void run_stages(bool has_stops, T h_state) {
    if constexpr (Scheme::kImplicit) {
      run_implicit_stages(has_stops, h_state);
    } else {
      scheme_.for_stages([&](auto i) {
        prepare_stage(i, h_state);
        evaluate(stage_time(i, has_stops), y1_, k_[i]);
      });
    }
  }
  // Stages 1 to s - 2 solve the step's linear equations (tableau.h), the last one is evaluated.
  LOCKSTEP_HOST_DEVICE void run_implicit_stages(bool has_stops, T h_state) {
    LinearSystem<T, typename Derivative::Matrix> system;
    T by_time[Derivative::kMostComponents];
    const int n = derivative_.components();
    derivative_.jacobian(start_time(), y_, numbers(), system.entries(), by_time);
    for (int c = 0; c < n; ++c) by_time[c] = system.finite_or(by_time[c], T(0));
    system.factor(Scheme::template inverse_gamma<T>(), h_state);
    scheme_.for_stages([&](auto i) { run_implicit_stage(i, system, has_stops, h_state, by_time); });
    if (!rules_.fixed) this->middle_ = middle_squared(system, h_state);
  }
  template <int i, class System>
  LOCKSTEP_HOST_DEVICE void run_implicit_stage(Constant<i> which, const System& system, bool has_stops, T h_state,
                                               const T* by_time) {
    const int n = derivative_.components();
    if constexpr (i == 1) {
      for (int c = 0; c < n; ++c) k_[i][c] = k_[0][c];
    } else {
      prepare_stage(which, h_state);
      evaluate(stage_time(which, has_stops), y1_, k_[i]);
    }
    if constexpr (i + 1 < Scheme::kStages) {
      for (int c = 0; c < n; ++c) k_[i][c] = scheme_.coupled(which, k_, c, k_[i][c], h_state, by_time[c]);
      system.solve(k_[i]);
    }
  }
  // The sum of squares, as error_squared() has it, of the error that the interpolant has in the middle of the step: of
  // the solution of W x = h (f - u').
  template <class System>
  LOCKSTEP_HOST_DEVICE double middle_squared(const System& system, T h_state) {
    constexpr double kMiddle = 0.5;
    const int n = derivative_.components();
    const auto weights = scheme_.template interpolant_weights<T>(kMiddle);
    const auto slopes = scheme_.template interpolant_slopes<T>(kMiddle);
    T u[Derivative::kMostComponents], x[Derivative::kMostComponents];
    for (int c = 0; c < n; ++c) u[c] = L::fma(h_state, scheme_.interpolant_sum(weights, k_, c), y_[c]);
    evaluate(middle_time(), u, x);
    if (!scalar::has_a_middle<D>(proposed_.h, t_, limit())) return 0;
    for (int c = 0; c < n; ++c) x[c] = L::mul(h_state, L::sub(x[c], scheme_.interpolant_sum(slopes, k_, c)));
    system.solve(x);
    T sum = 0;
    for (int c = 0; c < n; ++c) sum = scalar::add_square<L>(sum, x[c], error_scale(c));
    return static_cast<double>(sum);
  }
  LOCKSTEP_HOST_DEVICE int evaluations_of_step() const {
    if constexpr (Scheme::kImplicit) return scheme_.stages() - (rules_.fixed ? 2 : 1);
    return scheme_.stages() - 1;
  }

  // Fixed steps that reach no save point and no end, where nothing else is asked of a step either: their loop is
  // less than a third of what a step takes otherwise. Whether a state is finite is asked of the last alone, since where
  // y is not, y + h s is not either; then half as many are taken, and none that would end the trajectory.
  LOCKSTEP_HOST_DEVICE void take_plain_steps() {
    if (has_stops() || has_event() || !is_plain(accepted_ + 1)) return;
    double most = D::min(double(accepted_) + kPlainSteps, step_count_ - 1);
    if (saved_ < ensemble_.save_points) most = D::min(most, D::div(D::sub(next_save_, t_start_), h_) - 1);
    std::int32_t last = static_cast<std::int32_t>(most);
    if (last >= rules_.max_steps) last = static_cast<std::int32_t>(rules_.max_steps) - 1;
    const std::int32_t first = accepted_;
    if (last <= first || !is_plain(last)) return;
    const int n = derivative_.components();
    const T h_state = static_cast<T>(h_);
    T y[Derivative::kMostComponents], k[Derivative::kMostComponents];
    for (int c = 0; c < n; ++c) y[c] = y_[c];
    for (int c = 0; c < n; ++c) k[c] = k_[0][c];
    proposed_.h = h_;
    for (; last > first; last = first + (last - first) / 2) {
      do {
        t_ = fixed_time(accepted_);
        proposed_.t_new = fixed_time(accepted_ + 1);
        run_stages(false, h_state);
        move_on();
      } while (++accepted_ < last);
      T check = 0;
      for (int c = 0; c < n; ++c) check = scalar::add_finite_check<L>(check, y_[c]);
      if (check == 0) break;
      accepted_ = first;
      for (int c = 0; c < n; ++c) y_[c] = y[c];
      for (int c = 0; c < n; ++c) k_[0][c] = k[c];
    }
    evaluations_ += (accepted_ - first) * (scheme_.stages() - 1);
    t_ = fixed_time(accepted_);
  }
  LOCKSTEP_HOST_DEVICE double fixed_time(std::int32_t steps) const { return D::fma(double(steps), h_, t_start_); }
  // Whether so many fixed steps end before the next save point; then fewer do as well, however times are rounded.
  LOCKSTEP_HOST_DEVICE bool is_plain(std::int32_t steps) const {
    return saved_ >= ensemble_.save_points || (fixed_time(steps) - next_save_) * h_ < 0;
  }
  // The state and derivative at a step's end are those at the next one's start.
  LOCKSTEP_HOST_DEVICE void move_on() {
    const int n = derivative_.components();
    for (int c = 0; c < n; ++c) y_[c] = y1_[c];
    for (int c = 0; c < n; ++c) k_[0][c] = k_[scheme_.stages() - 1][c];
  }

  // Mean square of the scaled error over components; NaN where `check` is.
  LOCKSTEP_HOST_DEVICE double error_squared(double h, T check) const {
    const int n = derivative_.components();
    const T h_state = static_cast<T>(h);
    T sum = 0, sum3 = 0;
    for (int c = 0; c < n; ++c) {
      const T scale = error_scale(c);
      sum = scalar::add_square<L>(sum, L::mul(h_state, scheme_.error_sum(k_, c)), scale);
      if (scheme_.has_error3()) {
        sum3 = scalar::add_square<L>(sum3, L::mul(h_state, scheme_.error3_sum(k_, c)), scale);
      }
    }
    double square = static_cast<double>(sum);
    if constexpr (Scheme::kImplicit) square = scalar::larger_error<D>(square, this->middle_);
    if (scheme_.has_error3()) square = scalar::combine_errors<D>(square, static_cast<double>(sum3));
    return D::fma(square, D::div(1.0, double(n)), static_cast<double>(check));
  }

  LOCKSTEP_HOST_DEVICE T error_scale(int c) const {
    return scalar::error_scale<L>(y_[c], y1_[c], rules_.rtol, rules_.atol[c]);
  }

  // The state at theta of the step from y to y1, into `out`.
  template <class Out>
  LOCKSTEP_HOST_DEVICE void interpolate(double h, double theta, Out&& out) {
    const int n = derivative_.components();
    if (theta == 1) {
      for (int c = 0; c < n; ++c) out[c] = y1_[c];
      return;
    }
    const T h_state = static_cast<T>(h);
    if (!interpolant_ready_) {
      scheme_.for_interpolant_stages([&](auto i) {
        for (int c = 0; c < n; ++c) out[c] = interpolant_argument(i, c);
        evaluate(stage_time(i), out, k_[i]);
      });
      finish_interpolant();
    }
    const auto weights = scheme_.template interpolant_weights<T>(theta);
    for (int c = 0; c < n; ++c) out[c] = L::fma(h_state, scheme_.interpolant_sum(weights, k_, c), y_[c]);
  }

  // After an accepted step: event, save points, advance. True when the event ended the trajectory.
  LOCKSTEP_HOST_DEVICE bool finish_step(double h, double t_new) {
    ++accepted_;
    typename Memory::Scratch scratch(*this);
    const auto between = scratch.row();
    bool ended = false;
    if (has_event()) {
      T value = event_function(event_end_time(), y1_);
      if (crosses(event_value_, value) ||
          detail::TurnSearch<T>::comes_near(event_value_, event_in_middle(between), value)) {
        return finish_step_with_event(value);
      }
      ended = leaps_to_event(value);
      event_value_ = value;
    }
    pass(h, t_new, t_new, 1, between);
    return ended;
  }
  // The same where the event, which has `value` at the end, may be met within. Where the compiler keeps trajectories in
  // registers what that needs would push them out: it works on a copy in memory. (Of a derivative that points to shared
  // memory a copy would hide where that is.)
  LOCKSTEP_HOST_DEVICE bool finish_step_with_event(T value) {
    if constexpr (!Scheme::kCompiled || !__is_empty(Derivative)) {
      return search_event(value);
    } else {
      Trajectory other(*this);
      const bool ended = other.search_event_apart(value);
      static_cast<Memory&>(*this) = other;
      static_cast<Progress<T>&>(*this) = other;
      return ended;
    }
  }
  LOCKSTEP_HOST_DEVICE_CALL bool search_event_apart(T value) { return search_event(value); }
  LOCKSTEP_HOST_DEVICE bool search_event(T value) {
    const double h = proposed_.h, t_new = proposed_.t_new;
    typename Memory::Scratch scratch(*this);
    const auto between = scratch.row();
    double t_stop = t_new, low = 0, theta = 1;
    bool ended = find_crossing(h, value, between, low, theta);
    if (ended) {
      bisect_event(h, between, low, theta);
      if (theta != 1) t_stop = D::fma(theta, h, t_);
    } else {
      ended = leaps_to_event(value);
    }
    event_value_ = value;
    pass(h, t_new, t_stop, theta, between);
    return ended;
  }
  // Narrows the places between which the event crosses; `high` is on the far side.
  template <class Row>
  LOCKSTEP_HOST_DEVICE void bisect_event(double h, const Row& between, double& low, double& high) {
    for (int i = 0; i < scalar::kEventBisections; ++i) {
      const double middle = 0.5 * (low + high);
      (crosses(event_value_, event_within(h, middle, between)) ? high : low) = middle;
    }
  }
  // Save points up to t_stop, which is at theta of the step; the state goes there.
  template <class Row>
  LOCKSTEP_HOST_DEVICE void pass(double h, double t_new, double t_stop, double theta, const Row& between) {
    const int n = derivative_.components();
    while (saved_ < ensemble_.save_points && (t_stop - next_save_) * h >= 0) {
      interpolate(h, scalar::step_fraction<D>(next_save_, t_, t_new, h), between);
      store(between);
    }
    if (theta != 1) {
      interpolate(h, theta, between);
      for (int c = 0; c < n; ++c) y_[c] = between[c];
    } else {
      for (int c = 0; c < n; ++c) y_[c] = y1_[c];
    }
    t_ = t_stop;
    for (int c = 0; c < n; ++c) k_[0][c] = k_[scheme_.stages() - 1][c];
  }
  template <class Row>
  LOCKSTEP_HOST_DEVICE T event_within(double h, double theta, const Row& between) {
    interpolate(h, theta, between);
    return event_function(D::fma(theta, h, t_), between);
  }
  // The event in the middle of the step proposed, about; `between` is used for the state there.
  template <class Row>
  LOCKSTEP_HOST_DEVICE T event_in_middle(const Row& between) const {
    estimate_middle(between);
    return event_function(middle_time(), between);
  }
  template <class Row>
  LOCKSTEP_HOST_DEVICE void estimate_middle(const Row& between) const {
    const T eighth = L::mul(T(0.125), static_cast<T>(proposed_.h));
    for (int c = 0; c < derivative_.components(); ++c)
      between[c] = scalar::middle_state<L>(y_[c], y1_[c], k_[0][c], k_[scheme_.stages() - 1][c], eighth);
  }
  LOCKSTEP_HOST_DEVICE double middle_time() const { return D::fma(0.5, proposed_.h, t_); }
  // Where it may turn in that step, at whose end it has `value`.
  template <class Row>
  LOCKSTEP_HOST_DEVICE detail::TurnSearch<T> turn(T value, const Row& between) const {
    return {event_value_, event_in_middle(between), value, strikes()};
  }
  // Whether the event is met in the step, where it has `value` at the end: between `low`, to which event_value_ then
  // belongs, and `high`.
  template <class Row>
  LOCKSTEP_HOST_DEVICE bool find_crossing(double h, T value, const Row& between, double& low, double& high) {
    if (crosses(event_value_, value)) return true;
    detail::TurnSearch<T> search = turn(value, between);
    while (search.open()) {
      search.see(event_within(h, search.theta(), between), strikes());
    }
    if (!search.found()) return false;
    low = search.low();
    event_value_ = search.at_low();
    high = search.high();
    return true;
  }

  // When functions of the time are evaluated of the state that the step proposed ends with: the near side of a jump
  // there. Events over the state alone do without.
  LOCKSTEP_HOST_DEVICE double end_time() const {
    return has_stops() ? detail::last_stage_time(stops(), t_, proposed_.t_new, proposed_.last) : proposed_.t_new;
  }
  LOCKSTEP_HOST_DEVICE double event_end_time() const { return kHasEvent<Derivative> ? end_time() : proposed_.t_new; }
  // And where the trajectory goes on behind a jump at the step's end: its far side; elsewhere end_time().
  LOCKSTEP_HOST_DEVICE double leapt_time() const {
    const double end = end_time();
    if (!has_stops() || !(rules_.fixed || proposed_.last) || proposed_.t_new == t_end_) return end;
    const detail::StepEnd sides = detail::step_end(stops(), proposed_.t_new, t_end_ < t_);
    return sides.before == sides.behind ? end : sides.behind;
  }
  // Whether the event, which has `value` at the step's end, is met in leaping there with the time; its value behind it.
  LOCKSTEP_HOST_DEVICE bool leaps_to_event(T& value) const {
    if constexpr (kHasEvent<Derivative>) {
      const double leapt = leapt_time();
      if (leapt == end_time()) return false;
      const T before = value;
      value = event_function(leapt, y1_);
      return crosses(before, value);
    }
    return false;
  }

  LOCKSTEP_HOST_DEVICE bool has_event() const {
    return kHasEvent<Derivative> || event_.component >= 0 || event_.bounded > 0;
  }
  template <class U>
  LOCKSTEP_HOST_DEVICE T event_function(double t, const U& u) const {
    if constexpr (kHasEvent<Derivative>) {
      return compiled_event(t, typename Memory::ConstRow(u));
    } else {
      (void)t;
      T value = event_.component >= 0 ? T(0) : T(1);
      // No index that the compiler does not know: it would push the state out of registers.
      for (int c = 0; c < derivative_.components(); ++c) {
        if (c == event_.component) value = L::sub(u[c], event_.value);
        if (c < event_.bounded && !(u[c] >= event_.minimum[c] && u[c] <= event_.maximum[c])) value = T(-1);
      }
      return value;
    }
  }
  // An event of the derivative's own reads numbers that lie side by side.
  LOCKSTEP_HOST_DEVICE T compiled_event(double t, const T* u) const { return derivative_.event_value(t, u, numbers()); }
  template <class Row>
  LOCKSTEP_HOST_DEVICE T compiled_event(double t, const Row& u) const {
    T row[Derivative::kMostComponents];
    int c = 0;
    do row[c] = u[c];  // a state has a component
    while (++c < derivative_.components());
    return compiled_event(t, static_cast<const T*>(row));
  }
  struct Strikes {
    LOCKSTEP_HOST_DEVICE bool operator()(T before, T after) const {
      return (rising && before < 0 && after >= 0) || (falling && before > 0 && after <= 0);
    }
    bool rising, falling;
  };
  LOCKSTEP_HOST_DEVICE Strikes strikes() const { return {event_.rising, event_.falling}; }
  LOCKSTEP_HOST_DEVICE bool crosses(T before, T after) const { return strikes()(before, after); }

  template <class U>
  LOCKSTEP_HOST_DEVICE void store(const U& u) {
    const int n = derivative_.components();
    T* const out = saved_state();
    for (int c = 0; c < n; ++c) out[c * ensemble_.state_strides.component] = u[c];
    ++saved_;
    read_next_save();
  }
  LOCKSTEP_HOST_DEVICE T* saved_state() const {
    return ensemble_.states + index_ * ensemble_.state_strides.trajectory + saved_ * ensemble_.state_strides.time;
  }
  LOCKSTEP_HOST_DEVICE void read_next_save() {
    if (saved_ < ensemble_.save_points) next_save_ = ensemble_.save_times[index_ * ensemble_.save_stride + saved_];
  }

  LOCKSTEP_HOST_DEVICE double start_scale(int c) const {
    return D::fma(rules_.rtol_f64, D::abs(double(y_[c])), rules_.atol_f64[c]);
  }

  const Ensemble<T>& ensemble_;
  const StepRules<T>& rules_;
  const EventRule<T>& event_;
  const Scheme& scheme_;
  const Derivative& derivative_;

  T own_parameters_[Derivative::kMostParameters + Derivative::kMostGathered + 1];
  const T* parameters_ = nullptr;
};

}  // namespace lockstep::ode::cuda

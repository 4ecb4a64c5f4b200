// One trajectory on its way through its whole span, as one thread advances it: state, stages and step control in
// registers, save points written as they are passed. The steps are those of every engine (docs/numerics.md).
#pragma once

#include "lockstep/ode/cuda/ensemble.h"
#include "lockstep/ode/detail/fixed_steps.h"
#include "lockstep/ode/numerics.h"

namespace lockstep::ode::cuda {

// Scheme is a CompiledScheme or TableScheme. A Derivative has kMostComponents, kMostParameters (0: parameters stay
// where they are), components(), and evaluate(t, u, p, du).
//
//   while (there is an index) { if (begin(index)) while (step()) {} }
//
// One object may take trajectory after trajectory; nothing of one reaches the next.
template <class T, class Scheme, class Derivative>
class Trajectory {
  using L = ScalarLane<T>;
  using D = ScalarLane<double>;
  static constexpr int kMost = Derivative::kMostComponents;

 public:
  LOCKSTEP_HOST_DEVICE Trajectory(const Ensemble<T>& ensemble, const StepRules<T>& rules, const Threshold<T>& event,
                                  const Scheme& scheme, const Derivative& derivative)
      : ensemble_(ensemble), rules_(rules), event_(event), scheme_(scheme), derivative_(derivative) {}

  // Takes up a trajectory. False when it has ended at once: its record is written.
  LOCKSTEP_HOST_DEVICE bool begin(std::int64_t index) {
    const int n = derivative_.components();
    index_ = index;
    t_ = ensemble_.start_times[index * ensemble_.start_stride];
    t_end_ = ensemble_.end_times[index * ensemble_.end_stride];
    accepted_ = rejected_ = 0;
    evaluations_ = 1;
    saved_ = 0;
    after_rejection_ = false;
    log_error_ = -13.287712379549449;  // log2 1e-4, as if the step before had had that error
    const T* const row = ensemble_.parameters + index * ensemble_.parameter_stride;
    if constexpr (Derivative::kMostParameters > 0) {
      for (int i = 0; i < Derivative::kMostParameters; ++i) own_parameters_[i] = row[i];
    } else {
      parameters_ = row;
    }
    for (int c = 0; c < n; ++c) y_[c] = ensemble_.initial_states[index * n + c];
    evaluate(t_, y_, k_[0]);
    if (event_.component >= 0) event_value_ = event_function(y_);
    read_next_save();
    while (saved_ < ensemble_.save_points && next_save_ == t_) store(y_);

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
    } else if constexpr (Scheme::kAdaptive) {
      h_ = first_step();
    }
    return true;
  }

  // Attempts a step. False when that ended the trajectory.
  LOCKSTEP_HOST_DEVICE bool step() {
    const int n = derivative_.components();
    const auto proposed =
        rules_.fixed ? scalar::propose_fixed_step<D>(t_start_, t_end_, h_, last_dt_, double(accepted_), step_count_)
                     : scalar::propose_step<D>(t_, t_end_, h_, rules_.max_step);
    run_stages(proposed.h, proposed.t_new);
    T check = 0;
    for (int c = 0; c < n; ++c) check = scalar::add_finite_check<L>(check, y1_[c]);

    bool accept = true;
    if (rules_.fixed) {
      accept = check == 0;
      if (!accept) {
        ++rejected_;
        return end(Status::not_finite);
      }
    } else if constexpr (Scheme::kAdaptive) {
      const double error = error_squared(proposed.h, check);
      const auto decision =
          scalar::decide_step<D>(error, proposed.h, log_error_, after_rejection_, rules_.beta1, rules_.beta2);
      accept = decision.accept;
      h_ = decision.h_next;
      after_rejection_ = !accept;
      if (!accept) {
        ++rejected_;
        if (D::abs(h_) <= scalar::smallest_step<D>(t_, t_end_)) {
          return end(error <= 0x1.fffffffffffffp1023 ? Status::step_too_small : Status::not_finite);
        }
      } else {
        log_error_ = decision.log_error;
      }
    }
    if (accept) {
      if (finish_step(proposed.h, proposed.t_new)) return end(Status::terminated);
      if (proposed.last) return end(Status::success);
    }
    if (std::int64_t(accepted_) + rejected_ >= rules_.max_steps) return end(Status::too_many_steps);
    return true;
  }

  // Ends the trajectory where it stands.
  LOCKSTEP_HOST_DEVICE bool end(Status status) {
    const int n = derivative_.components();
    for (; saved_ < ensemble_.save_points; ++saved_) {
      T* const out = ensemble_.states + (index_ * ensemble_.save_points + saved_) * n;
      for (int c = 0; c < n; ++c) out[c] = math::Format<T>::kNaN;
    }
    for (int c = 0; c < n; ++c) ensemble_.end_states[index_ * n + c] = y_[c];
    TrajectoryRecord& record = ensemble_.records[index_];
    record.status = status;
    record.accepted = accepted_;
    record.rejected = rejected_;
    record.evaluations = evaluations_;
    record.end_time = t_;
    return false;
  }

 private:
  LOCKSTEP_HOST_DEVICE void evaluate(double t, const T* u, T* du) const {
    if constexpr (Derivative::kMostParameters > 0) {
      derivative_.evaluate(t, u, own_parameters_, du);
    } else {
      derivative_.evaluate(t, u, parameters_, du);
    }
  }

  LOCKSTEP_HOST_DEVICE void run_stages(double h, double t_new) {
    const int n = derivative_.components();
    const T h_state = static_cast<T>(h);
    scheme_.for_stages([&](auto i) {
      for (int c = 0; c < n; ++c) y1_[c] = L::fma(h_state, scheme_.stage_sum(i, k_, c), y_[c]);
      const bool last = int(i) == scheme_.stages() - 1;
      evaluate(last ? t_new : D::fma(scheme_.stage_time(i), h, t_), y1_, k_[i]);
    });
    evaluations_ += scheme_.stages() - 1;
    interpolant_ready_ = scheme_.interpolant_stages() == 0;
  }

  // Mean square of the scaled error over components; NaN where `check` is.
  LOCKSTEP_HOST_DEVICE double error_squared(double h, T check) const {
    const int n = derivative_.components();
    const T h_state = static_cast<T>(h);
    T sum = 0, sum3 = 0;
    for (int c = 0; c < n; ++c) {
      const T scale = scalar::error_scale<L>(y_[c], y1_[c], rules_.rtol, rules_.atol);
      sum = scalar::add_square<L>(sum, L::mul(h_state, scheme_.error_sum(k_, c)), scale);
      if (scheme_.has_error3()) {
        sum3 = scalar::add_square<L>(sum3, L::mul(h_state, scheme_.error3_sum(k_, c)), scale);
      }
    }
    double square = static_cast<double>(sum);
    if (scheme_.has_error3()) square = scalar::combine_errors<D>(square, static_cast<double>(sum3));
    return D::fma(square, D::div(1.0, double(n)), static_cast<double>(check));
  }

  // The state at theta of the step from y to y1, into `out`.
  LOCKSTEP_HOST_DEVICE void interpolate(double h, double theta, T* out) {
    const int n = derivative_.components();
    if (theta == 1) {
      for (int c = 0; c < n; ++c) out[c] = y1_[c];
      return;
    }
    const T h_state = static_cast<T>(h);
    if (!interpolant_ready_) {
      scheme_.for_interpolant_stages([&](auto i) {
        for (int c = 0; c < n; ++c) out[c] = L::fma(h_state, scheme_.stage_sum(i, k_, c), y_[c]);
        evaluate(D::fma(scheme_.stage_time(i), h, t_), out, k_[i]);
      });
      evaluations_ += scheme_.interpolant_stages();
      interpolant_ready_ = true;
    }
    const auto weights = scheme_.template interpolant_weights<T>(theta);
    for (int c = 0; c < n; ++c) out[c] = L::fma(h_state, scheme_.interpolant_sum(weights, k_, c), y_[c]);
  }

  // After an accepted step: event, save points, advance. True when the event ended the trajectory.
  LOCKSTEP_HOST_DEVICE bool finish_step(double h, double t_new) {
    const int n = derivative_.components();
    ++accepted_;
    double t_stop = t_new, theta = 1;
    bool crossed = false;
    T between[kMost];
    if (event_.component >= 0) {
      const T value = event_function(y1_);
      crossed = crosses(event_value_, value);
      if (crossed) {
        double low = 0;
        for (int i = 0; i < scalar::kEventBisections; ++i) {
          const double middle = 0.5 * (low + theta);
          interpolate(h, middle, between);
          if (crosses(event_value_, event_function(between))) {
            theta = middle;
          } else {
            low = middle;
          }
        }
        if (theta != 1) t_stop = D::fma(theta, h, t_);
      }
      event_value_ = value;
    }
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
    return crossed;
  }

  LOCKSTEP_HOST_DEVICE T event_function(const T* u) const {
    T value = 0;
    // No index that the compiler does not know: it would push the state out of registers.
    for (int c = 0; c < derivative_.components(); ++c) {
      if (c == event_.component) value = L::sub(u[c], event_.value);
    }
    return value;
  }
  LOCKSTEP_HOST_DEVICE bool crosses(T before, T after) const {
    return (event_.rising && before < 0 && after >= 0) || (event_.falling && before > 0 && after <= 0);
  }

  LOCKSTEP_HOST_DEVICE void store(const T* u) {
    const int n = derivative_.components();
    T* const out = ensemble_.states + (index_ * ensemble_.save_points + saved_) * n;
    for (int c = 0; c < n; ++c) out[c] = u[c];
    ++saved_;
    read_next_save();
  }
  LOCKSTEP_HOST_DEVICE void read_next_save() {
    if (saved_ < ensemble_.save_points) next_save_ = ensemble_.save_times[index_ * ensemble_.save_stride + saved_];
  }

  // Hairer, Norsett & Wanner I, II.4, "Starting Step Size": see numerics-inl.h.
  LOCKSTEP_HOST_DEVICE double first_step() {
    const int n = derivative_.components();
    const double span = D::sub(t_end_, t_);
    if (rules_.initial_step > 0) return D::copysign(rules_.initial_step, span);
    const double over_n = D::div(1.0, double(n));
    double d0 = 0, d1 = 0, d2 = 0;
    for (int c = 0; c < n; ++c) {
      d0 = scalar::add_square<D>(d0, double(y_[c]), start_scale(c));
      d1 = scalar::add_square<D>(d1, double(k_[0][c]), start_scale(c));
    }
    d0 = D::mul(d0, over_n);
    d1 = D::mul(d1, over_n);
    const double h0 = scalar::trial_step_size<D>(d0, d1, span);
    const double signed_h0 = D::copysign(h0, span);
    for (int c = 0; c < n; ++c) y1_[c] = L::fma(static_cast<T>(signed_h0), k_[0][c], y_[c]);
    evaluate(D::add(t_, signed_h0), y1_, k_[1]);
    ++evaluations_;
    for (int c = 0; c < n; ++c) {
      d2 = scalar::add_square<D>(d2, D::sub(double(k_[1][c]), double(k_[0][c])), start_scale(c));
    }
    d2 = D::mul(d2, over_n);
    const float exponent = ScalarLane<float>::div(1.0f, float(scheme_.error_order() + 1));
    const double h = scalar::first_step_size<D>(h0, d1, d2, span, rules_.max_step, exponent);
    return D::copysign(D::max(h, scalar::smallest_step<D>(t_, t_end_)), span);
  }
  LOCKSTEP_HOST_DEVICE double start_scale(int c) const {
    return D::fma(rules_.rtol_f64, D::abs(double(y_[c])), rules_.atol_f64);
  }

  const Ensemble<T>& ensemble_;
  const StepRules<T>& rules_;
  const Threshold<T>& event_;
  const Scheme& scheme_;
  const Derivative& derivative_;

  std::int64_t index_ = 0;
  T y_[kMost], y1_[kMost], k_[Scheme::kAllStages][kMost];
  T own_parameters_[Derivative::kMostParameters > 0 ? Derivative::kMostParameters : 1];
  const T* parameters_ = nullptr;
  double t_ = 0, t_end_ = 0, h_ = 0, log_error_ = 0, next_save_ = 0;
  double t_start_ = 0, last_dt_ = 0, step_count_ = 0;  // of fixed steps
  T event_value_ = 0;
  std::int32_t saved_ = 0, accepted_ = 0, rejected_ = 0, evaluations_ = 0;
  bool after_rejection_ = false, interpolant_ready_ = true;
};

}  // namespace lockstep::ode::cuda

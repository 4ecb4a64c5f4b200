#include "lockstep/ode/reference.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <vector>

#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/detail/fixed_steps.h"
#include "lockstep/ode/detail/stops.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/numerics.h"

namespace lockstep::ode {
namespace {

using D = ScalarLane<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A state function of one trajectory: lane 0 of a tile.
template <class T>
class OneLane {
 public:
  OneLane(const StateFunction& function, const double* parameters)
      : function_(lower<T>(function, CpuTarget::scalar)),
        in_(function.components() * kTileLanes),
        out_(function.outputs() * kTileLanes),
        parameters_(function.parameters() * kTileLanes),
        workspace_(function_->workspace_bytes()) {
    for (std::size_t i = 0; i < function.parameters(); ++i) parameters_[i * kTileLanes] = static_cast<T>(parameters[i]);
  }
  std::vector<T> operator()(double t, const std::vector<T>& u) {
    for (std::size_t c = 0; c < u.size(); ++c) in_[c * kTileLanes] = u[c];
    time_[0] = t;
    function_->evaluate({time_.data(), in_.data(), parameters_.data(), out_.data(), 1}, workspace_.data());
    std::vector<T> out(out_.size() / kTileLanes);
    for (std::size_t c = 0; c < out.size(); ++c) out[c] = out_[c * kTileLanes];
    return out;
  }

 private:
  std::shared_ptr<const TileFunction<T>> function_;
  AlignedBuffer<T> in_, out_, parameters_;
  AlignedBuffer<std::byte> workspace_;
  AlignedBuffer<double> time_{kTileLanes};
};

template <class T>
class Trajectory {
 public:
  // `block`: of this trajectory, saved states [time][component].
  Trajectory(const Problem& problem, const Options& options, const detail::Stops& stops, std::size_t index,
             const SolutionBlock& block)
      : problem_(problem),
        options_(options),
        stops_(stops.times(index)),
        has_stops_(!stops.empty()),
        tableau_(method(options.method)),
        rhs_(*problem.rhs, problem.parameters_of(index)),
        t_(problem.start_time(index)),
        t_start_(t_),
        t_end_(problem.end_time(index)),
        save_times_(problem.save_times_of(index)),
        max_step_(options.max_step.value_or(kInfinity)),
        state_(static_cast<T*>(block.state)),
        end_state_(static_cast<T*>(block.end_state)),
        record_(*block.records) {
    const std::size_t n = problem.rhs->components();
    for (std::size_t c = 0; c < n; ++c) y_.push_back(static_cast<T>(problem.initial_states[index * n + c]));
    if (problem.event) event_.emplace(*problem.event->function, problem.parameters_of(index));
  }

  // By fixed steps or adaptive ones of its own.
  void run() {
    if (!start()) return end(Status::not_finite);
    if (t_ == t_end_) return end(Status::success);
    end(options_.control == StepControl::fixed ? run_fixed() : run_adaptive());
  }

  // The pieces of it, for steps that others share. start() is false where a number is not finite.
  bool start() {
    k_.assign(static_cast<std::size_t>(tableau_.stages + tableau_.interpolant_stages), {});
    save_before(t_, y_);
    if (t_ != t_end_) give_impulses();
    k_[0] = evaluate(here().behind, y_);
    if (event_) g_ = (*event_)(t_, y_)[0];
    return finite(k_[0]) && finite(y_);
  }
  double first_step();
  // The mean square of its scaled error. Stages at the step's end are evaluated at t_last.
  double attempt(double h, double t_last) {
    run_stages(h, t_last);
    return error_squared(h);
  }
  // True where an event ends it.
  bool accept(const scalar::StepProposal<ScalarLane<double>>& step) {
    return finish_step(step.h, step.t_new) || (step.last && begin_anew());
  }
  void reject() { ++rejected_; }
  void end(Status status) {
    for (std::size_t i = saved_; i < problem_.save_points(); ++i) {
      for (std::size_t c = 0; c < y_.size(); ++c) state_[i * y_.size() + c] = std::numeric_limits<T>::quiet_NaN();
    }
    std::copy(y_.begin(), y_.end(), end_state_);
    record_ = {status, accepted_, rejected_, evaluations_, t_};
  }

 private:
  detail::StepEnd here() const { return detail::step_end(stops_, t_, t_end_ < t_start_); }
  // Behind a jump, on the way on. True where an impulse there is an event that ends the trajectory.
  bool begin_anew() {
    if (t_ == t_end_ || accepted_ + rejected_ >= options_.max_steps) return false;
    if (here().before == here().behind) return false;
    if (give_impulses() && event_) {
      const T g = (*event_)(t_, y_)[0];
      if (crosses(g_, g)) return true;
      g_ = g;
    }
    k_[0] = evaluate(here().behind, y_);
    return false;
  }
  bool give_impulses() {
    bool any = false;
    detail::for_changes(stops_, t_, [&](const detail::StateChange& change) {
      T& u = y_[static_cast<std::size_t>(change.component)];
      u = std::fma(static_cast<T>(change.factor), u, static_cast<T>(change.change));
      any = true;
    });
    return any;
  }

  std::vector<T> evaluate(double t, const std::vector<T>& u) {
    ++evaluations_;
    return rhs_(t, u);
  }

  static bool finite(const std::vector<T>& u) {
    T sum = 0;
    for (const T x : u) sum = scalar::add_finite_check<ScalarLane<T>>(sum, x);
    return sum == 0;
  }

  // One term of a sum over stages.
  struct Term {
    std::size_t stage;
    T weight;
  };
  static std::vector<Term> terms(std::span<const double> weights) {
    std::vector<Term> result;
    for (std::size_t j = 0; j < weights.size(); ++j) {
      if (weights[j] != 0) result.push_back({j, static_cast<T>(weights[j])});
    }
    return result;
  }
  std::vector<Term> row(int i) const {
    const auto width = static_cast<std::size_t>(tableau_.stages + tableau_.interpolant_stages);
    return terms(tableau_.a.subspan(static_cast<std::size_t>(i) * width, static_cast<std::size_t>(i)));
  }

  // sum_j w_j k_j of one component, stages ascending.
  T weighted_sum(const std::vector<Term>& terms, std::size_t c) const {
    T sum = terms[0].weight * k_[terms[0].stage][c];
    for (std::size_t i = 1; i < terms.size(); ++i) sum = std::fma(terms[i].weight, k_[terms[i].stage][c], sum);
    return sum;
  }
  std::vector<T> combine(double h, const std::vector<Term>& terms) const {
    std::vector<T> result = y_;
    for (std::size_t c = 0; c < y_.size(); ++c) {
      result[c] = std::fma(static_cast<T>(h), weighted_sum(terms, c), y_[c]);
    }
    return result;
  }

  double stage_time(int i, double h) const {
    const double c = tableau_.c[static_cast<std::size_t>(i)];
    const bool at_end = i == tableau_.stages - 1 || (has_stops_ && c == 1);
    return at_end ? t_last_ : std::fma(c, h, t_);
  }
  void run_stages(double h, double t_last) {
    t_last_ = t_last;
    const int s = tableau_.stages;
    for (int i = 1; i < s; ++i) {
      y1_ = combine(h, row(i));
      k_[static_cast<std::size_t>(i)] = evaluate(stage_time(i, h), y1_);
    }
    interpolant_ready_ = tableau_.interpolant_stages == 0;
  }

  // Mean square of the scaled error over components.
  double error_squared(double h) const {
    const auto sum_of = [&](std::span<const double> weights) {
      T sum = 0;
      const auto estimate = terms(weights);
      for (std::size_t c = 0; c < y_.size(); ++c) {
        const T error = weighted_sum(estimate, c);
        const T scale = scalar::error_scale<ScalarLane<T>>(y_[c], y1_[c], static_cast<T>(options_.rtol),
                                                           static_cast<T>(options_.atol_of(c)));
        sum = scalar::add_square<ScalarLane<T>>(sum, static_cast<T>(h) * error, scale);
      }
      return static_cast<double>(sum);
    };
    T check = 0;
    for (const T x : y1_) check = scalar::add_finite_check<ScalarLane<T>>(check, x);
    const double over_n = 1.0 / static_cast<double>(y_.size());
    double square = sum_of(tableau_.error);
    if (!tableau_.error3.empty()) square = scalar::combine_errors<D>(square, sum_of(tableau_.error3));
    return std::fma(square, over_n, static_cast<double>(check));
  }

  std::vector<T> interpolate(double h, double theta) {
    if (theta == 1) return y1_;
    const int total = tableau_.stages + tableau_.interpolant_stages;
    if (!interpolant_ready_) {
      for (int i = tableau_.stages; i < total; ++i) {
        const auto y = combine(h, row(i));
        k_[static_cast<std::size_t>(i)] = evaluate(stage_time(i, h), y);
      }
      interpolant_ready_ = true;
    }
    std::vector<Term> weights;
    const int degree = tableau_.interpolant_degree;
    for (int j = 0; j < total; ++j) {
      const double* p = &tableau_.interpolant[static_cast<std::size_t>(j * degree)];
      if (std::all_of(p, p + degree, [](double x) { return x == 0; })) continue;
      weights.push_back({static_cast<std::size_t>(j), static_cast<T>(scalar::interpolant_weight<D>(p, degree, theta))});
    }
    return combine(h, weights);
  }

  // Save points at exactly t, from y; used at the start.
  void save_before(double t, const std::vector<T>& y) {
    while (saved_ < problem_.save_points() && save_times_[saved_] == t) store(y);
  }
  void store(const std::vector<T>& y) {
    std::copy(y.begin(), y.end(), state_ + saved_ * y.size());
    ++saved_;
  }
  void save_step(double h, double t_new, double t_stop) {
    while (saved_ < problem_.save_points() && (t_stop - save_times_[saved_]) * (t_end_ - t_start_) >= 0) {
      store(interpolate(h, scalar::step_fraction<D>(save_times_[saved_], t_, t_new, h)));
    }
  }

  // After an accepted step: save points, event, advance. True when the event ended the trajectory.
  bool finish_step(double h, double t_new) {
    ++accepted_;
    double t_stop = t_new;
    double theta = 1;
    bool crossed = false;
    if (event_) {
      const T g1 = (*event_)(t_new, y1_)[0];
      crossed = crosses(g_, g1);
      if (crossed) {
        double low = 0;
        for (int i = 0; i < scalar::kEventBisections; ++i) {
          const double middle = 0.5 * (low + theta);
          const T g = (*event_)(std::fma(middle, h, t_), interpolate(h, middle))[0];
          (crosses(g_, g) ? theta : low) = middle;
        }
        if (theta != 1) t_stop = std::fma(theta, h, t_);
      }
      g_ = g1;
    }
    save_step(h, t_new, t_stop);
    y_ = interpolate(h, theta);
    t_ = t_stop;
    std::swap(k_[0], k_[static_cast<std::size_t>(tableau_.stages) - 1]);
    return crossed;
  }

  bool crosses(T before, T after) const {
    const auto direction = problem_.event->direction;
    const bool rises = before < 0 && after >= 0;
    const bool falls = before > 0 && after <= 0;
    return (rises && direction != TerminalEvent::Direction::falling) ||
           (falls && direction != TerminalEvent::Direction::rising);
  }

  Status run_fixed() {
    const auto steps = detail::fixed_steps(t_start_, t_end_, options_.dt);
    for (double index = 0; index < steps.count; ++index) {
      if (accepted_ >= options_.max_steps) return Status::too_many_steps;
      const auto step = scalar::propose_fixed_step<D>(t_start_, t_end_, steps.dt, steps.last_dt, index, steps.count);
      run_stages(step.h, detail::step_end(stops_, step.t_new, t_end_ < t_start_).before);
      if (!finite(y1_)) {
        ++rejected_;
        return Status::not_finite;
      }
      if (finish_step(step.h, step.t_new) || begin_anew()) return Status::terminated;
    }
    return Status::success;
  }

  Status run_adaptive() {
    const int power = scalar::error_power(tableau_.error_order, !tableau_.error3.empty());
    const auto [beta1, beta2] = scalar::control_exponents(power);
    double h = first_step();
    double log_error = scalar::kFirstLogError;
    bool after_rejection = false;
    while (true) {
      if (accepted_ + rejected_ >= options_.max_steps) return Status::too_many_steps;
      const auto [limit, before] = detail::limit_at(stops_, t_, t_end_);
      const auto step = scalar::propose_adaptive_step<D>(has_stops_, t_, limit, h, max_step_);
      run_stages(step.h, step.last ? before : step.t_new);
      const double error = error_squared(step.h);
      const auto decision = scalar::decide_step<D>(error, step.h, log_error, after_rejection, beta1, beta2);
      h = decision.h_next;
      after_rejection = !decision.accept;
      if (decision.accept) {
        log_error = decision.log_error;
        if (finish_step(step.h, step.t_new)) return Status::terminated;
        if (t_ == t_end_) return Status::success;
        // A short step may end beside a stop that it did not head for.
        if (step.last && begin_anew()) return Status::terminated;
      } else {
        ++rejected_;
        if (std::fabs(h) <= scalar::smallest_step<D>(t_, limit)) {
          return error <= std::numeric_limits<double>::max() ? Status::step_too_small : Status::not_finite;
        }
      }
    }
  }

  const Problem& problem_;
  const Options& options_;
  detail::StopTimes stops_;
  bool has_stops_;
  const Tableau& tableau_;
  OneLane<T> rhs_;
  std::optional<OneLane<T>> event_;
  double t_, t_start_, t_end_, t_last_ = 0;
  const double* save_times_;
  double max_step_;
  std::vector<T> y_, y1_;
  std::vector<std::vector<T>> k_;
  T g_ = 0;
  bool interpolant_ready_ = true;
  T* state_;
  T* end_state_;
  TrajectoryRecord& record_;
  std::size_t saved_ = 0;
  std::int32_t accepted_ = 0, rejected_ = 0, evaluations_ = 0;
};

template <class T>
double Trajectory<T>::first_step() {
  const double span = t_end_ - t_start_;
  if (options_.initial_step) return std::copysign(*options_.initial_step, span);
  double d0 = 0, d1 = 0, d2 = 0;
  const double over_n = 1.0 / static_cast<double>(y_.size());
  std::vector<double> scale;
  for (std::size_t c = 0; c < y_.size(); ++c) {
    scale.push_back(std::fma(options_.rtol, std::fabs(static_cast<double>(y_[c])), options_.atol_of(c)));
    d0 = scalar::add_square<D>(d0, y_[c], scale[c]);
    d1 = scalar::add_square<D>(d1, k_[0][c], scale[c]);
  }
  d0 *= over_n;
  d1 *= over_n;
  const double h0 = scalar::trial_step_size<D>(d0, d1, span);
  const double signed_h0 = std::copysign(h0, span);
  std::vector<T> trial = y_;
  for (std::size_t c = 0; c < y_.size(); ++c) trial[c] = std::fma(static_cast<T>(signed_h0), k_[0][c], y_[c]);
  const auto f1 = evaluate(t_ + signed_h0, trial);
  for (std::size_t c = 0; c < y_.size(); ++c) {
    d2 = scalar::add_square<D>(d2, static_cast<double>(f1[c]) - static_cast<double>(k_[0][c]), scale[c]);
  }
  d2 *= over_n;
  const float exponent = 1.0f / static_cast<float>(scalar::error_power(tableau_.error_order, !tableau_.error3.empty()));
  const double h = scalar::first_step_size<D>(h0, d1, d2, span, max_step_, exponent);
  return std::copysign(std::max(h, scalar::smallest_step<D>(t_, t_end_)), span);
}

// One step for all: the smallest of their first ones, then controlled by the largest error of any.
template <class T>
void run_in_common_steps(std::deque<Trajectory<T>>& trajectories, const Problem& problem, const Options& options,
                         const detail::StopTimes& stops) {
  constexpr int kMostFailures = 10;
  double t = problem.start_time(0), h = kInfinity;
  const double t_end = problem.end_time(0);
  std::vector<Trajectory<T>*> open;
  for (Trajectory<T>& trajectory : trajectories) {
    const bool is_finite = trajectory.start();
    const double first = std::fabs(trajectory.first_step());
    if (!is_finite) {
      trajectory.end(Status::not_finite);
      continue;
    }
    open.push_back(&trajectory);
    h = std::min(h, first);
  }
  const auto end_all = [&](Status status) {
    for (Trajectory<T>* trajectory : open) trajectory->end(status);
  };
  if (t == t_end) return end_all(Status::success);
  h = std::copysign(h, t_end - t);
  const Tableau& tableau = method(options.method);
  const auto [beta1, beta2] =
      scalar::control_exponents(scalar::error_power(tableau.error_order, !tableau.error3.empty()));
  double log_error = scalar::kFirstLogError;
  bool after_rejection = false;
  int failures_in_a_row = 0;
  const auto is_number = [](double error) { return error <= std::numeric_limits<double>::max(); };
  for (std::int64_t attempts = 0; !open.empty(); ++attempts) {
    if (attempts >= options.max_steps) return end_all(Status::too_many_steps);
    const auto [limit, before] = detail::limit_at(stops, t, t_end);
    const auto step =
        scalar::propose_adaptive_step<D>(stops.count > 0, t, limit, h, options.max_step.value_or(kInfinity));
    std::vector<double> errors;
    double largest = 0;
    for (Trajectory<T>* trajectory : open) {
      errors.push_back(trajectory->attempt(step.h, step.last ? before : step.t_new));
      largest = is_number(errors.back()) ? std::max(largest, errors.back()) : kInfinity;
    }
    const auto decision = scalar::decide_step<D>(largest, step.h, log_error, after_rejection, beta1, beta2);
    h = decision.h_next;
    after_rejection = !decision.accept;
    if (decision.accept) {
      failures_in_a_row = 0;
      log_error = decision.log_error;
      t = step.t_new;
      std::erase_if(open, [&](Trajectory<T>* trajectory) {
        if (!trajectory->accept(step)) return false;
        trajectory->end(Status::terminated);
        return true;
      });
      if (t == t_end) return end_all(Status::success);
      continue;
    }
    for (Trajectory<T>* trajectory : open) trajectory->reject();
    // Left behind: who stays without a number however small the step, and whose own error asks for steps below time's
    // spacing.
    const auto leave_behind = [&](const auto& hopeless) {
      std::vector<Trajectory<T>*> left;
      for (std::size_t i = 0; i < open.size(); ++i) {
        if (hopeless(errors[i])) {
          open[i]->end(is_number(errors[i]) ? Status::step_too_small : Status::not_finite);
        } else {
          left.push_back(open[i]);
        }
      }
      open = left;
    };
    failures_in_a_row = is_number(largest) ? 0 : failures_in_a_row + 1;
    const double smallest = scalar::smallest_shared_step<D>(t, limit);
    if (std::fabs(h) <= smallest) {
      leave_behind([](double own) { return !(own <= 1); });
      failures_in_a_row = 0;
      h = std::copysign(smallest, h);
    } else if (failures_in_a_row == kMostFailures) {
      leave_behind([&](double own) { return !is_number(own); });
      failures_in_a_row = 0;
    }
  }
}

template <class T>
Solution solve_as(const Problem& problem, const Options& options) {
  const std::size_t n = problem.rhs->components();
  Solution solution(options.precision, problem.trajectories(), n, problem.save_times,
                    problem.save_times_per_trajectory);
  const detail::Stops stops(problem, options);
  std::deque<Trajectory<T>> trajectories;
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    trajectories.emplace_back(problem, options, stops, i, solution.block(i, 1));
  }
  if (options.control == StepControl::common) {
    run_in_common_steps(trajectories, problem, options, stops.times(0));
  } else {
    for (Trajectory<T>& trajectory : trajectories) trajectory.run();
  }
  return solution;
}

}  // namespace

Solution solve_reference(const Problem& problem, const Options& options) {
  const StandardArithmetic arithmetic;
  validate(problem, options);
  return options.precision == Precision::f32 ? solve_as<float>(problem, options) : solve_as<double>(problem, options);
}

}  // namespace lockstep::ode

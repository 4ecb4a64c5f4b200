// One trajectory of the reference solve, written to be read beside the papers.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/ode/detail/fixed_steps.h"
#include "lockstep/ode/detail/linear_system.h"
#include "lockstep/ode/detail/reference_function.h"
#include "lockstep/ode/detail/reset_side.h"
#include "lockstep/ode/detail/stops.h"
#include "lockstep/ode/detail/turn_search.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/numerics.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode::detail {

template <class T>
class ReferenceTrajectory {
 public:
  // `block`: of this trajectory, saved states [time][component].
  ReferenceTrajectory(const Problem& problem, const Options& options, const Stops& stops, std::size_t index,
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
        max_step_(options.max_step.value_or(std::numeric_limits<double>::infinity())),
        state_(static_cast<T*>(block.state)),
        end_state_(static_cast<T*>(block.end_state)),
        record_(*block.records),
        events_(block.events) {
    const std::size_t n = problem.rhs->components();
    for (std::size_t c = 0; c < n; ++c) y_.push_back(static_cast<T>(problem.initial_states[index * n + c]));
    if (tableau_.is_linearly_implicit()) jacobian_.emplace(*problem.rhs, problem.parameters_of(index));
    if (problem.event) event_.emplace(*problem.event->function, problem.parameters_of(index));
    for (const Reset& reset : problem.resets) {
      resets_.push_back({.function = {*reset.function, problem.parameters_of(index)},
                         .state = {*reset.state, problem.parameters_of(index)},
                         .direction = reset.direction});
    }
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
    t_seen_ = here().behind;
    k_[0] = evaluate(t_seen_, y_);
    if (event_) g_ = (*event_)(t_seen_, y_)[0];
    for (ResettingFunction& reset : resets_) {
      const T value = reset.function(t_seen_, y_)[0];
      reset.side = ResetSide<T>::at_start(value, ResetSide<T>::stands_at_start(value) ? rounding(reset) : 0);
    }
    return finite(k_[0]) && finite(y_);
  }
  double first_step();
  // The mean square of its scaled error. Stages at the step's end are evaluated at t_last.
  double attempt(double h, double t_last) {
    run_stages(h, t_last);
    return error_squared(h, t_end_);
  }
  // True where an event ends it.
  bool accept(const scalar::StepProposal<ScalarLane<double>>& step) {
    return finish_step(step.h, step.t_new, step.last) == Passed::ended || (step.last && begin_anew());
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
  using D = ScalarLane<double>;
  struct ResettingFunction {
    ReferenceFunction<T> function, state;
    TerminalEvent::Direction direction;
    ResetSide<T> side{};
    bool rests = false;
    ResetSide<T> cut{};  // of a step that is cut short: where it begins on the threshold, or this strikes
    T untold = 0;        // by the search that found it last
    double struck_at = std::numeric_limits<double>::quiet_NaN();
  };

  StepEnd here() const { return step_end(stops_, t_, t_end_ < t_start_); }
  // Behind a jump, on the way on. True where an impulse there is an event that ends the trajectory.
  bool begin_anew() {
    if (t_ == t_end_ || accepted_ + rejected_ >= options_.max_steps) return false;
    if (here().before == here().behind) return false;
    t_seen_ = here().behind;
    if (give_impulses() && settle(resets_.size())) return true;
    k_[0] = evaluate(t_seen_, y_);
    return false;
  }
  // Behind a reset, likewise.
  bool renew() {
    if (accepted_ + rejected_ < options_.max_steps) k_[0] = evaluate(t_, y_);
    return false;
  }
  bool give_impulses() {
    bool any = false;
    for_changes(stops_, t_, [&](const StateChange& change) {
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
    if (jacobian_) run_implicit_stages(h);
    for (int i = jacobian_ ? s - 1 : 1; i < s; ++i) {
      y1_ = combine(h, row(i));
      k_[static_cast<std::size_t>(i)] = evaluate(stage_time(i, h), y1_);
    }
    interpolant_ready_ = tableau_.interpolant_stages == 0;
  }
  // k_2 .. k_{s-1} of tableau.h.
  void run_implicit_stages(double h) {
    const auto s = static_cast<std::size_t>(tableau_.stages);
    auto [by_state, by_time] = (*jacobian_)(here().behind, y_);
    for (T& slope : by_time) slope = std::isfinite(slope) ? slope : 0;
    system_.emplace(by_state, jacobian_->layout(), static_cast<T>(1 / tableau_.gamma), static_cast<T>(h));
    for (std::size_t i = 1; i + 1 < s; ++i) {
      std::vector<T> right = k_[0];
      if (i > 1) right = evaluate(stage_time(static_cast<int>(i), h), combine(h, row(static_cast<int>(i))));
      const T time_weight = static_cast<T>(tableau_.time_weights[i]);
      for (std::size_t c = 0; c < y_.size(); ++c) {
        for (const auto& [stage, weight] : terms(tableau_.coupling.subspan(i * s, i)))
          right[c] = std::fma(weight, k_[stage][c], right[c]);
        if (time_weight != 0) right[c] = std::fma(time_weight * static_cast<T>(h), by_time[c], right[c]);
      }
      system_->solve(right);
      k_[i] = std::move(right);
    }
  }

  T scale_of(std::size_t c) const {
    return scalar::error_scale<ScalarLane<T>>(y_[c], y1_[c], static_cast<T>(options_.rtol),
                                              static_cast<T>(options_.atol_of(c)));
  }
  // Mean square of the scaled error over components, of a step on the way to `limit`.
  double error_squared(double h, double limit) {
    const auto sum_of = [&](std::span<const double> weights) {
      T sum = 0;
      const auto estimate = terms(weights);
      for (std::size_t c = 0; c < y_.size(); ++c) {
        const T error = weighted_sum(estimate, c);
        sum = scalar::add_square<ScalarLane<T>>(sum, static_cast<T>(h) * error, scale_of(c));
      }
      return static_cast<double>(sum);
    };
    T check = 0;
    for (const T x : y1_) check = scalar::add_finite_check<ScalarLane<T>>(check, x);
    const double over_n = 1.0 / static_cast<double>(y_.size());
    double square = sum_of(tableau_.error);
    if (system_) square = scalar::larger_error<D>(square, middle_squared(h, limit));
    if (!tableau_.error3.empty()) square = scalar::combine_errors<D>(square, sum_of(tableau_.error3));
    return std::fma(square, over_n, static_cast<double>(check));
  }

  // The same of the interpolant's error in the middle of the step, as a sum: of the solution of W x = h (f - u').
  double middle_squared(double h, double limit) {
    constexpr double kMiddle = 0.5;
    std::vector<Term> slopes;
    const int degree = tableau_.interpolant_degree;
    for (const auto& [stage, weight] : interpolant_terms(kMiddle)) {
      const double* p = &tableau_.interpolant[stage * static_cast<std::size_t>(degree)];
      slopes.push_back({stage, static_cast<T>(scalar::interpolant_slope<D>(p, degree, kMiddle))});
    }
    std::vector<T> x = evaluate(std::fma(kMiddle, h, t_), combine(h, interpolant_terms(kMiddle)));
    for (std::size_t c = 0; c < y_.size(); ++c) x[c] = static_cast<T>(h) * (x[c] - weighted_sum(slopes, c));
    if (!scalar::has_a_middle<D>(h, t_, limit)) return 0;
    system_->solve(x);
    T sum = 0;
    for (std::size_t c = 0; c < y_.size(); ++c) sum = scalar::add_square<ScalarLane<T>>(sum, x[c], scale_of(c));
    return static_cast<double>(sum);
  }

  std::vector<Term> interpolant_terms(double theta) const {
    std::vector<Term> weights;
    const int degree = tableau_.interpolant_degree;
    for (int j = 0; j < tableau_.stages + tableau_.interpolant_stages; ++j) {
      const double* p = &tableau_.interpolant[static_cast<std::size_t>(j * degree)];
      if (std::all_of(p, p + degree, [](double x) { return x == 0; })) continue;
      weights.push_back({static_cast<std::size_t>(j), static_cast<T>(scalar::interpolant_weight<D>(p, degree, theta))});
    }
    return weights;
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
    return combine(h, interpolant_terms(theta));
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

  // What an accepted step led to: its end, an event, a reset behind which the trajectory stands at t_, or one at t_
  // again.
  enum class Passed { onward, ended, reset, piled_up };

  // After an accepted step: save points, the first of event and resets in it, advance. `lands`: where stops are, at one
  // or the span's end.
  Passed finish_step(double h, double t_new, bool lands) {
    ++accepted_;
    const StepEnd end = step_end(stops_, t_new, t_end_ < t_start_);
    t_leapt_ = lands && t_new != t_end_ && end.before != end.behind ? end.behind : t_last_;
    double theta = 1;
    bool ends = false;
    T g1 = 0;
    if (event_) {
      g1 = (*event_)(t_last_, y1_)[0];
      if (crosses(problem_.event->direction, g_, g1)) {
        ends = true;
        theta = bisect(h, 0, g_, 1);
      } else if (const auto turn = find_turn(*event_, problem_.event->direction, h, g_, g1); turn.found()) {
        ends = true;
        theta = bisect(h, turn.low(), turn.at_low(), turn.high());
      } else if (t_leapt_ != t_last_) {
        const T before_leap = g1;
        g1 = (*event_)(t_leapt_, y1_)[0];
        ends = crosses(problem_.event->direction, before_leap, g1);
      }
    }
    std::size_t first = resets_.size();  // which strikes
    std::vector<ResetSide<T>> at_end;
    for (std::size_t i = 0; i < resets_.size(); ++i) {
      const double own = find_reset(resets_[i], h, at_end);
      if (time_within(own, h, t_new) == t_end_) continue;  // the trajectory ends before it
      if (own < theta || (own == 1 && !ends && first == resets_.size())) {
        theta = own;
        first = i;
        ends = false;
      }
    }
    const bool rests = std::ranges::any_of(resets_, &ResettingFunction::rests);
    if (rests) return Passed::piled_up;
    const double t_stop = time_within(theta, h, t_new);
    const bool changes = first < resets_.size();
    if (changes && t_stop == t_new) theta = 1;
    if (changes && piles_up(resets_[first], t_stop)) return Passed::piled_up;
    if (changes) {
      for (ResettingFunction& reset : resets_)
        if (reset.side.on_threshold() || &reset == &resets_[first]) reset.side = reset.cut;
    } else {
      if (event_) g_ = g1;
      for (std::size_t i = 0; i < resets_.size(); ++i) resets_[i].side = at_end[i];
    }
    save_step(h, t_new, t_stop);
    y_ = interpolate(h, theta);
    t_ = t_stop;
    t_seen_ = theta == 1 ? t_leapt_ : t_;
    std::swap(k_[0], k_[static_cast<std::size_t>(tableau_.stages) - 1]);
    if (ends) return Passed::ended;
    if (!changes) return Passed::onward;
    return settle(first) ? Passed::ended : Passed::reset;
  }

  double time_within(double theta, double h, double t_new) const { return theta == 1 ? t_new : std::fma(theta, h, t_); }

  // Where in the step the event has crossed: 52 bits of what lies between the places, on the far side.
  double bisect(double h, double low, T at_low, double high) {
    for (int i = 0; i < scalar::kEventBisections; ++i) {
      const double middle = 0.5 * (low + high);
      (crosses(problem_.event->direction, at_low, within(*event_, h, middle)) ? high : low) = middle;
    }
    return high;
  }
  T within(ReferenceFunction<T>& function, double h, double theta) {
    return function(std::fma(theta, h, t_), interpolate(h, theta))[0];
  }

  // Whether a function strikes between a step's ends, from the first to the second of which it does not.
  TurnSearch<T> find_turn(ReferenceFunction<T>& function, TerminalEvent::Direction direction, double h, T before,
                          T after) {
    const auto& k1 = k_[static_cast<std::size_t>(tableau_.stages) - 1];
    std::vector<T> middle = y_;
    for (std::size_t c = 0; c < y_.size(); ++c) {
      middle[c] = scalar::middle_state<ScalarLane<T>>(y_[c], y1_[c], k_[0][c], k1[c], T(0.125) * static_cast<T>(h));
    }
    const auto strikes = [&](T from, T to) { return crosses(direction, from, to); };
    TurnSearch<T> turn(before, function(std::fma(0.5, h, t_), middle)[0], after, strikes);
    while (turn.open()) turn.see(within(function, h, turn.theta()), strikes);
    return turn;
  }

  // Where it strikes in the step, beyond 1 where it does not; adds its side at the step's end.
  double find_reset(ResettingFunction& reset, double h, std::vector<ResetSide<T>>& at_end) {
    constexpr double kNowhere = 2;
    const T after = reset.function(t_last_, y1_)[0];
    reset.side.see_end(after);
    const T leapt = t_leapt_ == t_last_ ? after : reset.function(t_leapt_, y1_)[0];
    reset.side.see_end(leapt);
    T before = reset.side.before;
    bool found = crosses(reset.direction, before, after);
    CrossingSearch<T> search;
    if (found) search = {0, before, 1, after};
    if (reset.side.on_threshold()) {
      ThresholdLook<T> look;
      const double begin = here().behind;
      UnresolvedTime<T> behind(begin, h);
      behind.see(reset.function(begin, y_)[0], reset.function(behind.end(), y_)[0]);
      while (look.next() < look.kLooks) {
        const double elapsed = look.theta(look.next()) * h;
        const T value = reset.function(behind.time(elapsed), interpolate(h, look.theta(look.next())))[0];
        look.see(reset.side, reset.direction, behind.value(elapsed, value), after);
      }
      reset.cut = look.side_where_cut(reset.side);
      reset.rests = look.rests();
      found = look.found();
      before = look.side();
      if (found) search = look.search();
      at_end.push_back(look.side_at_end(reset.side, leapt));
    } else {
      reset.cut = reset.side;
      if (!found) {
        const auto turn = find_turn(reset.function, reset.direction, h, before, after);
        found = turn.found();
        if (found) {
          before = reset.cut.before = turn.at_low();
          search = {turn.low(), before, turn.high(), turn.at_high()};
        }
      }
      at_end.push_back(reset.side.off(leapt));
    }
    if (!found) {
      reset.untold = 0;
      return crosses(reset.direction, after, leapt) ? 1 : kNowhere;
    }
    while (!search.done()) {
      const T value = within(reset.function, h, search.theta());
      search.see(value, crosses(reset.direction, before, value));
    }
    reset.untold = search.untold();
    return search.high();
  }

  // Whether a reset that strikes at t follows its last time without time between them.
  bool piles_up(const ResettingFunction& reset, double t) const {
    return detail::piles_up(reset.cut, reset.struck_at, t_, t, scalar::smallest_step<D>(t_, t_end_));
  }

  // What its function may be off by at t_ for roundings.
  T rounding(ResettingFunction& reset) {
    using Rounding = FunctionRounding<T>;
    Rounding result;
    const T here = reset.function(t_seen_, y_)[0];
    result.see(here, reset.function(Rounding::moved_time(t_seen_), y_)[0]);
    for (std::size_t move = 0; move < Rounding::moves(y_.size()); ++move) {
      std::vector<T> moved = y_;
      for (std::size_t c = move; c < y_.size(); c += Rounding::kGroups) moved[c] = Rounding::moved(c, y_[c]);
      result.see(here, reset.function(t_seen_, moved)[0]);
    }
    return result.value();
  }

  // At a time at which the state changes at once: by reset `striking`, or, where that is none, it has by impulses. The
  // resets follow that this strikes. True where it is the event that ends the trajectory.
  bool settle(std::size_t striking) {
    const std::size_t count = resets_.size(), searched = striking;
    std::vector<bool> used(count, false);
    std::vector<T> found(count), left(count);
    T g = 0;
    if (striking < count && event_ && crosses(problem_.event->direction, g_, (*event_)(t_seen_, y_)[0])) return true;
    while (true) {
      if (striking < count) {
        used[striking] = true;
        found[striking] = resets_[striking].function(t_seen_, y_)[0];
        y_ = resets_[striking].state(t_seen_, y_);
        if (events_ != nullptr) events_->push_back({t_, static_cast<std::int32_t>(striking)});
      }
      if (event_) {
        g = (*event_)(t_seen_, y_)[0];
        if (crosses(problem_.event->direction, g_, g)) return true;
      }
      striking = count;
      for (std::size_t i = 0; i < count; ++i) {
        left[i] = resets_[i].function(t_seen_, y_)[0];
        const bool strikes = !used[i] && resets_[i].side.is_struck(resets_[i].direction, left[i]);
        if (strikes && striking == count) striking = i;
      }
      if (striking == count) break;
    }
    g_ = g;
    leave_changed<T>(
        count,
        [&](std::size_t i) {
          ResettingFunction& reset = resets_[i];
          const T untold = i == searched ? reset.untold : 0;
          return ChangedSide<T>{reset.side, reset.direction, used[i], found[i], left[i], untold};
        },
        [&](std::size_t i) { return rounding(resets_[i]); });
    for (std::size_t i = 0; i < count; ++i)
      if (used[i]) resets_[i].struck_at = t_;
    return false;
  }

  Status run_fixed() {
    const auto steps = fixed_steps(t_start_, t_end_, options_.dt);
    for (double index = 0; index < steps.count; ++index) {
      if (accepted_ >= options_.max_steps) return Status::too_many_steps;
      const auto step = scalar::propose_fixed_step<D>(t_start_, t_end_, steps.dt, steps.last_dt, index, steps.count);
      run_stages(step.h, step_end(stops_, step.t_new, t_end_ < t_start_).before);
      if (!finite(y1_)) {
        ++rejected_;
        return Status::not_finite;
      }
      if (finish_step(step.h, step.t_new, true) == Passed::ended || begin_anew()) return Status::terminated;
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
      const auto [limit, before] = limit_at(stops_, t_, t_end_);
      const auto step = scalar::propose_adaptive_step<D>(has_stops_, t_, limit, h, max_step_);
      run_stages(step.h, step.last ? before : step.t_new);
      const double error = error_squared(step.h, limit);
      const auto decision = scalar::decide_step<D>(error, step.h, log_error, after_rejection, beta1, beta2);
      h = decision.h_next;
      after_rejection = !decision.accept;
      if (decision.accept) {
        log_error = decision.log_error;
        const Passed passed = finish_step(step.h, step.t_new, step.last);
        if (passed == Passed::ended) return Status::terminated;
        if (passed == Passed::piled_up) return Status::step_too_small;
        if (t_ == t_end_) return Status::success;
        if (passed == Passed::reset) {
          const bool at_stop = t_ == step.t_new && step.last && here().before != here().behind;
          if (at_stop ? begin_anew() : renew()) return Status::terminated;
          continue;
        }
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
  StopTimes stops_;
  bool has_stops_;
  const Tableau& tableau_;
  ReferenceFunction<T> rhs_;
  std::optional<ReferenceJacobian<T>> jacobian_;
  std::optional<LinearSystem<T>> system_;  // of the step attempted
  std::optional<ReferenceFunction<T>> event_;
  std::vector<ResettingFunction> resets_;
  double t_, t_start_, t_end_, t_last_ = 0;
  double t_leapt_ = 0;  // of functions at the end of a step behind a jump there; t_last_ where there is none
  double t_seen_ = 0;   // at which they are evaluated of the state at t_
  const double* save_times_;
  double max_step_;
  std::vector<T> y_, y1_;
  std::vector<std::vector<T>> k_;
  T g_ = 0;
  bool interpolant_ready_ = true;
  T* state_;
  T* end_state_;
  TrajectoryRecord& record_;
  TrajectoryEvents* events_;  // null: not kept
  std::size_t saved_ = 0;
  std::int32_t accepted_ = 0, rejected_ = 0, evaluations_ = 0;
};

template <class T>
double ReferenceTrajectory<T>::first_step() {
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
  const double h = scalar::first_step_size<D>(h0, d1, d2, span, max_step_, exponent,
                                              scalar::first_step_growth(tableau_.error_order, tableau_.stages));
  return std::copysign(std::max(h, scalar::smallest_step<D>(t_, t_end_)), span);
}

}  // namespace lockstep::ode::detail

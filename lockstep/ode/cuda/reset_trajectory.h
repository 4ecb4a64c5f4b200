// One trajectory whose state changes at events, as one thread advances it: Trajectory, and what an accepted step passes
// beside save points and a terminal event. Written to be read beside ReferenceTrajectory, whose order of things it has.
#pragma once

#include "lockstep/ode/cuda/kernel_body.h"
#include "lockstep/ode/cuda/reset_derivative.h"
#include "lockstep/ode/detail/reset_side.h"

namespace lockstep::ode::cuda {

// Derivatives that bring resets of their own: WithResets.
template <class Derivative>
inline constexpr bool kHasResets = requires {
  typename Derivative::Resets;
};

// What a thread must know of the resets to go on with a trajectory.
template <class T, int count>
struct ResetProgress {
  detail::ResetSide<T> sides_[count];
  double struck_at_[count];  // when each changed the state last; NaN: not yet
};

// Of each trajectory's own adaptive steps, as all solves with resets take. Trajectory says how it is called.
template <class T, class Scheme, class Derivative>
class ResetTrajectory : private Trajectory<T, Scheme, Derivative>,
                        private ResetProgress<T, Derivative::Resets::kCount> {
  static_assert(Scheme::kAdaptive);
  using Base = Trajectory<T, Scheme, Derivative>;
  using Memory = ThreadMemory<T, Scheme, Derivative>;
  using Resets = typename Derivative::Resets;
  using Sides = ResetProgress<T, Resets::kCount>;
  using Base::accepted_;
  using Base::derivative_;
  using Base::event_value_;
  using Base::has_event;
  using Base::k_;
  using Base::numbers;
  using Base::proposed_;
  using Base::t_;
  using Base::t_end_;
  using Base::y1_;
  using Base::y_;
  using Sides::sides_;
  using Sides::struck_at_;
  using typename Base::D;
  using typename Base::Verdict;

 public:
  using Base::Base;

  LOCKSTEP_HOST_DEVICE bool begin(std::int64_t index) {
    if (!Base::begin(index)) return false;
    T here[Derivative::kMostComponents] = {};
    copy(y_, here);
    const double seen = this->start_time();
    for (int i = 0; i < Resets::kCount; ++i) {
      const T value = reset_value(i, seen, here);
      sides_[i] = detail::ResetSide<T>::at_start(
          value, detail::ResetSide<T>::stands_at_start(value) ? rounding(i, seen, value, here) : T(0));
      struck_at_[i] = math::Format<double>::kNaN;
    }
    return true;
  }

  LOCKSTEP_HOST_DEVICE bool step() {
    this->propose();
    this->run_stages(this->has_stops(), static_cast<T>(proposed_.h));
    const Verdict verdict = this->judge();
    if (verdict == Verdict::ended) return false;
    Passed passed = Passed::onward;
    if (verdict == Verdict::accepted) {
      passed = finish_step();
      if (passed == Passed::ended) return this->end(Status::terminated);
      if (passed == Passed::piled_up) return this->end(Status::step_too_small);
      if (t_ == t_end_) return this->end(Status::success);
    }
    if (std::int64_t(accepted_) + this->rejected_ >= this->rules_.max_steps) return this->end(Status::too_many_steps);
    return verdict == Verdict::rejected || begin_anew(passed);
  }

 private:
  static constexpr double kNowhere = 2;  // beyond a step's end, at 1

  // What an accepted step led to: its end, an event, a reset behind which the trajectory stands at t_, or one at t_
  // again.
  enum class Passed { onward, ended, reset, piled_up };

  // One reset through an accepted step.
  struct Way {
    double theta = kNowhere;      // where it strikes
    detail::ResetSide<T> at_end;  // its side where nothing cuts the step short,
    detail::ResetSide<T> cut;     // and where a reset does, for one that began on its threshold or strikes
    T untold = 0;                 // by the search that found it
    bool rests = false;
  };

  // Save points, the first of event and resets in the step just accepted, advance. Most steps meet neither.
  LOCKSTEP_HOST_DEVICE Passed finish_step() {
    ++accepted_;
    typename Memory::Scratch scratch(*this), end_scratch(*this);
    T* const between = scratch.row();
    T* const at_end = end_scratch.row();
    T after[Resets::kCount], event = 0;
    copy(y1_, at_end);
    this->estimate_middle(between);
    const double end = this->end_time();
    bool quiet = this->leapt_time() == end;
    for (int i = 0; i < Resets::kCount; ++i) {
      after[i] = Resets::template value<T>(i, end, at_end, numbers());
      const T before = sides_[i].before, middle = Resets::template value<T>(i, this->middle_time(), between, numbers());
      quiet = quiet && !sides_[i].on_threshold() && !detail::crosses(Resets::direction(i), before, after[i]) &&
              !detail::TurnSearch<T>::comes_near(before, middle, after[i]);
    }
    if (has_event()) {
      event = this->event_function(end, at_end);
      const T middle = this->event_function(this->middle_time(), between);
      quiet = quiet && !this->crosses(event_value_, event) &&
              !detail::TurnSearch<T>::comes_near(event_value_, middle, event);
    }
    if (!quiet) return apart([](ResetTrajectory& self) { return self.search(); });
    event_value_ = event;
    for (int i = 0; i < Resets::kCount; ++i) {
      sides_[i].see_end(after[i]);
      sides_[i] = sides_[i].off(after[i]);
    }
    this->pass(proposed_.h, proposed_.t_new, proposed_.t_new, 1, between);
    return Passed::onward;
  }

  // After a step that goes on: impulses where it ended at a stop, and the derivative anew behind these or a reset.
  // False where the event ends the trajectory. A short step may end beside a stop that it did not head for.
  LOCKSTEP_HOST_DEVICE bool begin_anew(Passed passed) {
    const bool at_stop = t_ == proposed_.t_new && this->behind_jump();
    if (!at_stop && passed != Passed::reset) return true;
    if (at_stop && this->give_impulses() &&
        apart([](ResetTrajectory& self) { return self.settle(Resets::kCount, 0, self.start_time()); })) {
      return this->end(Status::terminated);
    }
    this->evaluate(at_stop ? this->start_time() : t_, y_, k_[0]);
    this->finish_renewal();
    return true;
  }

  // What few steps need, on a copy in memory where it would push the state out of registers: see
  // Trajectory::finish_step_with_event().
  template <class Seldom>
  LOCKSTEP_HOST_DEVICE auto apart(Seldom seldom) {
    if constexpr (!Scheme::kCompiled || !__is_empty(Derivative)) {
      return seldom(*this);
    } else {
      ResetTrajectory other(*this);
      const auto result = seldom(other);
      static_cast<Memory&>(*this) = other;
      static_cast<Progress<T>&>(*this) = other;
      static_cast<Sides&>(*this) = other;
      return result;
    }
  }

  // finish_step() where an event or a reset may be met within.
  LOCKSTEP_HOST_DEVICE_CALL Passed search() {
    const double h = proposed_.h, t_new = proposed_.t_new;
    typename Memory::Scratch scratch(*this);
    T* const between = scratch.row();
    T event_at_end = 0;
    double theta = 1;
    bool ends = has_event() && find_event(between, event_at_end, theta);
    int first = Resets::kCount;  // which strikes
    bool rests = false;
    Way ways[Resets::kCount];
    for (int i = 0; i < Resets::kCount; ++i) {
      ways[i] = find_reset(i, between);
      rests = rests || ways[i].rests;
      const double own = ways[i].theta;
      if (time_within(own) == t_end_) continue;  // the trajectory ends before it
      if (own < theta || (own == 1 && !ends && first == Resets::kCount)) {
        theta = own;
        first = i;
        ends = false;
      }
    }
    if (rests) return Passed::piled_up;
    const double t_stop = time_within(theta);
    const bool changes = first < Resets::kCount;
    if (changes && t_stop == t_new) theta = 1;
    if (changes &&
        detail::piles_up(ways[first].cut, struck_at_[first], t_, t_stop, scalar::smallest_step<D>(t_, t_end_)))
      return Passed::piled_up;
    if (!changes) event_value_ = event_at_end;
    for (int i = 0; i < Resets::kCount; ++i) {
      if (!changes) {
        sides_[i] = ways[i].at_end;
      } else if (sides_[i].on_threshold() || i == first) {
        sides_[i] = ways[i].cut;
      }
    }
    const double seen = theta == 1 ? this->leapt_time() : t_stop;
    this->pass(h, t_new, t_stop, theta, between);
    if (ends) return Passed::ended;
    if (!changes) return Passed::onward;
    return settle(first, ways[first].untold, seen) ? Passed::ended : Passed::reset;
  }

  LOCKSTEP_HOST_DEVICE double time_within(double theta) const {
    return theta == 1 ? proposed_.t_new : D::fma(theta, proposed_.h, t_);
  }

  // Whether the event is met in the step, and where; its value at the end. event_value_ stays that at the start, which
  // a reset before it goes on with.
  LOCKSTEP_HOST_DEVICE bool find_event(T* between, T& at_end, double& theta) {
    const T before = event_value_;
    double low = 0;
    at_end = this->event_function(this->end_time(), y1_);
    const bool found = this->find_crossing(proposed_.h, at_end, between, low, theta);
    if (found) this->bisect_event(proposed_.h, between, low, theta);
    event_value_ = before;
    if (found) return true;
    const double leapt = this->leapt_time();
    if (leapt == this->end_time()) return false;
    const T near = at_end;
    at_end = this->event_function(leapt, y1_);
    return this->crosses(near, at_end);
  }

  // Where reset i strikes in the step.
  LOCKSTEP_HOST_DEVICE_CALL Way find_reset(int i, T* between) {
    const EventDirection direction = Resets::direction(i);
    detail::ResetSide<T>& side = sides_[i];
    const double end = this->end_time(), leapt_time = this->leapt_time();
    const T after = reset_value(i, end, y1_);
    side.see_end(after);
    const T leapt = leapt_time == end ? after : reset_value(i, leapt_time, y1_);
    side.see_end(leapt);
    T before = side.before;
    Way way{.at_end = side.off(leapt), .cut = side};
    bool found = detail::crosses(direction, before, after);
    detail::CrossingSearch<T> search;
    if (found) search = {0, before, 1, after};
    if (side.on_threshold()) {
      const detail::ThresholdLook<T> look = look_from_threshold(i, after, between);
      way.at_end = look.side_at_end(side, leapt);
      way.cut = look.side_where_cut(side);
      way.rests = look.rests();
      found = look.found();
      before = look.side();
      if (found) search = look.search();
    } else if (!found) {
      const detail::TurnSearch<T> turn = find_turn(i, after, between);
      found = turn.found();
      if (found) {
        before = way.cut.before = turn.at_low();
        search = {turn.low(), before, turn.high(), turn.at_high()};
      }
    }
    if (!found) {
      if (detail::crosses(direction, after, leapt)) way.theta = 1;
      return way;
    }
    while (!search.done()) {
      const T value = reset_within(i, search.theta(), between);
      search.see(value, detail::crosses(direction, before, value));
    }
    way.untold = search.untold();
    way.theta = search.high();
    return way;
  }

  // Through a step that begins on reset i's threshold.
  LOCKSTEP_HOST_DEVICE detail::ThresholdLook<T> look_from_threshold(int i, T after, T* between) {
    detail::ThresholdLook<T> look;
    const double begin = this->start_time();
    detail::UnresolvedTime<T> behind(begin, proposed_.h);
    behind.see(reset_value(i, begin, y_), reset_value(i, behind.end(), y_));
    while (look.next() < look.kLooks) {
      const double theta = look.theta(look.next()), elapsed = D::mul(theta, proposed_.h);
      this->interpolate(proposed_.h, theta, between);
      const T value = reset_value(i, behind.time(elapsed), between);
      look.see(sides_[i], Resets::direction(i), behind.value(elapsed, value), after);
    }
    return look;
  }

  // Whether it strikes between the ends of a step from the first to the second of which it does not.
  LOCKSTEP_HOST_DEVICE detail::TurnSearch<T> find_turn(int i, T after, T* between) {
    const auto strikes = [direction = Resets::direction(i)](T from, T to) {
      return detail::crosses(direction, from, to);
    };
    this->estimate_middle(between);
    detail::TurnSearch<T> turn(sides_[i].before, reset_value(i, this->middle_time(), between), after, strikes);
    while (turn.open()) turn.see(reset_within(i, turn.theta(), between), strikes);
    return turn;
  }

  LOCKSTEP_HOST_DEVICE_CALL T reset_within(int i, double theta, T* between) {
    this->interpolate(proposed_.h, theta, between);
    return reset_value(i, D::fma(theta, proposed_.h, t_), between);
  }

  // At a time at which something changes at once: the state by reset `striking`, or, where that is none, it has by
  // impulses, or functions of the time have leapt. They are `seen` at a side of a jump there. The resets follow that
  // this strikes, each once. True where it is the event that ends the trajectory.
  LOCKSTEP_HOST_DEVICE_CALL bool settle(int striking, T untold, double seen) {
    const int searched = striking;
    bool used[Resets::kCount] = {};
    T found[Resets::kCount] = {}, left[Resets::kCount] = {}, event = 0;
    if (striking < Resets::kCount && meets_event(seen, event)) return true;
    for (;;) {
      if (striking < Resets::kCount) {
        used[striking] = true;
        found[striking] = reset_value(striking, seen, y_);
        change_state(striking, seen);
      }
      if (meets_event(seen, event)) return true;
      striking = Resets::kCount;
      for (int i = Resets::kCount - 1; i >= 0; --i) {
        left[i] = reset_value(i, seen, y_);
        if (!used[i] && sides_[i].is_struck(Resets::direction(i), left[i])) striking = i;
      }
      if (striking == Resets::kCount) break;
    }
    event_value_ = event;
    detail::leave_changed<T>(
        Resets::kCount,
        [&](std::size_t at) {
          const int i = static_cast<int>(at);
          return detail::ChangedSide<T>{sides_[i], Resets::direction(i),         used[i], found[i],
                                        left[i],   i == searched ? untold : T(0)};
        },
        [&](std::size_t at) { return rounding(static_cast<int>(at), seen, left[at], y_); });
    for (int i = 0; i < Resets::kCount; ++i) {
      if (used[i]) struck_at_[i] = t_;
    }
    return false;
  }
  // Whether the event is met by what has changed the state, and its value there.
  LOCKSTEP_HOST_DEVICE bool meets_event(double seen, T& value) const {
    if (!has_event()) return false;
    value = this->event_function(seen, y_);
    return this->crosses(event_value_, value);
  }
  // What reset i's function, `here` in that state as it is seen, may be off by for roundings.
  template <class State>
  LOCKSTEP_HOST_DEVICE_CALL T rounding(int i, double seen, T here, const State& u) const {
    using Rounding = detail::FunctionRounding<T>;
    const std::size_t n = static_cast<std::size_t>(derivative_.components());
    Rounding result;
    T moved[Derivative::kMostComponents] = {};
    copy(u, moved);
    result.see(here, reset_value(i, Rounding::moved_time(seen), moved));
    for (std::size_t move = 0; move < Rounding::moves(n); ++move) {
      for (std::size_t c = move; c < n; c += Rounding::kGroups) moved[c] = Rounding::moved(c, u[c]);
      result.see(here, reset_value(i, seen, moved));
      for (std::size_t c = move; c < n; c += Rounding::kGroups) moved[c] = u[c];
    }
    return result.value();
  }
  LOCKSTEP_HOST_DEVICE void change_state(int i, double seen) {
    T next[Derivative::kMostComponents];
    Resets::template state<T>(i, seen, y_, numbers(), next);
    copy(next, y_);
  }

  LOCKSTEP_HOST_DEVICE_CALL T reset_value(int i, double t, const T* u) const {
    return Resets::template value<T>(i, t, u, numbers());
  }
  LOCKSTEP_HOST_DEVICE void copy(const T* from, T* to) const {
    for (int c = 0; c < derivative_.components(); ++c) to[c] = from[c];
  }
};

template <class T, class Scheme, class Derivative>
requires kHasResets<Derivative>
struct TrajectoryFor<T, Scheme, Derivative> {
  using Type = ResetTrajectory<T, Scheme, Derivative>;
};

}  // namespace lockstep::ode::cuda

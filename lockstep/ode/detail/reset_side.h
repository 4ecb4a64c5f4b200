// On which side of its threshold a reset's function is along a trajectory, and what a step must look for: on the host
// and on devices.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "lockstep/ode/detail/turn_search.h"
#include "lockstep/ode/event_direction.h"

namespace lockstep::ode::detail {

// Whether a function strikes that had one value and has another, as the solve goes on.
template <class T>
LOCKSTEP_HOST_DEVICE bool crosses(EventDirection direction, T before, T after) {
  const bool rises = before < 0 && after >= 0;
  const bool falls = before > 0 && after <= 0;
  return (rises && direction != EventDirection::falling) || (falls && direction != EventDirection::rising);
}

// Of one reset in one trajectory, where its next step begins.
template <class T>
struct ResetSide {
  T before = 0;   // the function's value; 0 on the threshold, where that tells no side
  T noise = -1;   // on the threshold: values up to this tell none either; elsewhere negative
  T largest = 0;  // of its values where steps began and ended
  T from = 0;     // where its own reset has just left it on the threshold: a value on the side from which it came
  T came = 0;     // where another reset of the same function has: a value on the side to which it came
  int turns = 0;  // likewise: how many, one upon the other, have turned it back at once before
  T end = 0;      // its value where the last step ended, before what cut that short

  LOCKSTEP_HOST_DEVICE bool on_threshold() const { return noise >= 0; }

  // `rounding`, here and below: what the function may be off by for roundings alone, as FunctionRounding finds it.
  static LOCKSTEP_HOST_DEVICE bool stands_at_start(T value) { return value == 0; }
  static LOCKSTEP_HOST_DEVICE ResetSide at_start(T value, T rounding) {
    const ResetSide start{.largest = std::fabs(value)};
    return value == 0 ? start.on(4 * rounding) : start.off(value);
  }
  LOCKSTEP_HOST_DEVICE void see_end(T value) {
    largest = std::fmax(largest, std::fabs(value));
    end = value;
  }
  // Values up to this tell no side. What a start's rounding was found to be has to be small among values yet to be
  // seen.
  LOCKSTEP_HOST_DEVICE T tells_none_up_to() const { return smaller(noise, T(0x1p-4) * largest); }
  LOCKSTEP_HOST_DEVICE ResetSide on(T within) const { return {.noise = within, .largest = largest, .end = end}; }
  LOCKSTEP_HOST_DEVICE ResetSide off(T value) const { return {.before = value, .largest = largest, .end = end}; }
  // Whether another change of the state, which left that value, carries it over the threshold.
  LOCKSTEP_HOST_DEVICE bool is_struck(EventDirection direction, T left) const {
    return !(std::fabs(left) <= tells_none_up_to()) && crosses(direction, before == 0 ? came : before, left);
  }
  // Behind its own reset, which found one value and left another, and whose search did not tell apart what lies within
  // `untold` of 0; that is 0 where another change struck it. A crossing is found to within roundings of the state and
  // of the function, and a reset that leaves the function as it is leaves what they made of 0: that may be less than
  // they are, as a part of the function that is rounded less, such as time's, finds a zero between two roundings of the
  // others. What is large among all values seen is no rounding: the function leapt, or the other change carried it
  // there.
  LOCKSTEP_HOST_DEVICE_CALL ResetSide behind_own(T found, T left, T untold, T rounding) const {
    const T roundings = std::fmax(std::fmax(std::fabs(found), untold), smaller(rounding, most(untold)));
    const bool tells_none = roundings <= most(untold) && std::fabs(left) <= 4 * roundings;
    if (!tells_none) return at(left, 0);
    ResetSide side = on(4 * std::fmax(std::fabs(left), std::fmax(untold, smaller(rounding, most(untold)))));
    side.from = before;
    side.turns = turned_at_once() ? turns : 0;
    return side;
  }
  // Whether that asks for the function's rounding.
  LOCKSTEP_HOST_DEVICE bool may_stand_behind_own(T found, T left, T untold) const {
    return std::fmax(std::fabs(found), untold) <= most(untold) && std::fabs(left) <= 4 * most(untold);
  }
  // Behind another change of the state.
  LOCKSTEP_HOST_DEVICE ResetSide behind_other(T left, T rounding) const {
    return std::fabs(left) <= tells_none_up_to() ? still_on() : at(left, rounding);
  }
  LOCKSTEP_HOST_DEVICE bool may_stand_behind_other(T left) const { return left == 0 && !on_threshold(); }
  // On the threshold as before, where nothing has told a side.
  LOCKSTEP_HOST_DEVICE ResetSide still_on() const {
    ResetSide side = on(noise);
    side.came = came;
    side.turns = turns;
    return side;
  }
  // Behind another reset, which is `struck` now, of the same function as its values tell, for the other direction. That
  // one has crossed the threshold, and leaves this one on it: where it turns the function back, this one strikes.
  LOCKSTEP_HOST_DEVICE_CALL bool has_twin(EventDirection direction, const ResetSide& struck, T left,
                                          T struck_left) const {
    return struck.from != 0 && crosses(direction, -struck.from, struck.from) && struck.end == end &&
           struck_left == left && std::signbit(struck_left) == std::signbit(left) &&
           (end != 0 || before == struck.from);
  }
  LOCKSTEP_HOST_DEVICE ResetSide behind_twin(const ResetSide& struck) const {
    ResetSide side = on(struck.noise);
    side.came = std::copysign(std::numeric_limits<T>::min(), -struck.from);
    side.turns = struck.turns + 1;
    return side;
  }
  // Of one that strikes: whether that is where the step begins, as the other had turned the function back.
  LOCKSTEP_HOST_DEVICE bool turned_at_once() const { return came != 0 && before == came; }

 private:
  LOCKSTEP_HOST_DEVICE ResetSide at(T value, T rounding) const {
    return value == 0 ? on(4 * smaller(rounding, most(0))) : off(value);
  }
  static LOCKSTEP_HOST_DEVICE T smaller(T a, T b) { return a < b ? a : b; }
  // The largest value that may be rounding.
  LOCKSTEP_HOST_DEVICE T most(T untold) const {
    return (untold > 0 ? T(0x1p-8) : 64 * std::numeric_limits<T>::epsilon()) * largest;
  }
};

// What a function may be off by, as the state and time that it reads are rounded: the sum of what moving each by one
// unit of rounding, epsilon of its size, changes. Components past kGroups share moves, then by unlike amounts, that one
// does not undo another's. What the function rounds within itself adds to it, and is as large for most.
template <class T>
class FunctionRounding {
 public:
  static constexpr std::size_t kGroups = 16;
  // How often to move the state of so many components; component c moves at move c % kGroups.
  static LOCKSTEP_HOST_DEVICE std::size_t moves(std::size_t components) {
    return components < kGroups ? components : kGroups;
  }
  static LOCKSTEP_HOST_DEVICE T moved(std::size_t component, T value) {
    return value * (1 + static_cast<T>(kUnits + component / kGroups % 4 * 2) * std::numeric_limits<T>::epsilon());
  }
  static LOCKSTEP_HOST_DEVICE double moved_time(double t) {
    return t * (1 + double{kUnits} * static_cast<double>(std::numeric_limits<T>::epsilon()));
  }
  // The function where it stands, and behind a move. Where that is no number the move left where the function is one.
  LOCKSTEP_HOST_DEVICE void see(T here, T there) {
    const T change = std::fabs(there - here);
    if (change - change == 0) sum_ += change;  // finite
  }
  LOCKSTEP_HOST_DEVICE T value() const { return sum_ / kUnits; }

 private:
  static constexpr int kUnits = 4;  // several, so that rounding what is moved matters less
  T sum_ = 0;
};

// Of one reset, where a trajectory's state has changed at once: by it, where it is used, or by others.
template <class T>
struct ChangedSide {
  ResetSide<T>& side;
  EventDirection direction;
  bool used;
  T found, left;  // its function before its own change, behind the last one
  T untold;       // as behind_own() takes it

  // Whether its side asks for the function's rounding.
  LOCKSTEP_HOST_DEVICE bool may_stand() const {
    return used ? side.may_stand_behind_own(found, left, untold) : side.may_stand_behind_other(left);
  }
};
// The sides from which the trajectory goes on; of(i) is reset i's, rounding(i) its function's where may_stand().
template <class T, class Of, class Rounding>
LOCKSTEP_HOST_DEVICE_CALL void leave_changed(std::size_t count, const Of& of, const Rounding& rounding) {
  const auto rounding_of = [&](std::size_t i, const ChangedSide<T>& changed) {
    return changed.may_stand() ? rounding(i) : T(0);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const ChangedSide<T> own = of(i);
    if (own.used) own.side = own.side.behind_own(own.found, own.left, own.untold, rounding_of(i, own));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const ChangedSide<T> other = of(i);
    if (other.used) continue;
    const auto is_twin = [&](const ChangedSide<T>& one) {
      return one.used && other.side.has_twin(other.direction, one.side, other.left, one.left);
    };
    std::size_t twin = 0;
    while (twin < count && !is_twin(of(twin))) ++twin;
    other.side = twin < count ? other.side.behind_twin(of(twin).side)
                              : other.side.behind_other(other.left, rounding_of(i, other));
  }
}

// Whether a reset that strikes at `now`, from that side in a step that begins at t, follows its last time, `struck_at`,
// without time between them: by time itself, or as it and others have turned its function back at once time and again,
// for which float32's states take longer than times need.
template <class T>
LOCKSTEP_HOST_DEVICE_CALL bool piles_up(const ResetSide<T>& side, double struck_at, double t, double now,
                                        double smallest_step) {
  constexpr int kTurns = 16;
  if (now == t) return struck_at == now;
  if (!side.on_threshold()) return false;
  return side.came == 0 ? std::fabs(now - t) <= smallest_step : side.turned_at_once() && side.turns >= kTurns;
}

// A function just behind time t, where rounding does not resolve times; equations in float32 round t as well. What time
// alone changes in it is taken for a line as far as that: rounded times would move it by more than the state does, and
// tell a side to which it does not leave.
template <class T>
class UnresolvedTime {
 public:
  UnresolvedTime() = default;
  LOCKSTEP_HOST_DEVICE UnresolvedTime(double t, double h)
      : t_(t), reach_(std::copysign((sizeof(T) == 4 ? 0x1p-21 : 0x1p-46) * std::fabs(t), h)) {}
  LOCKSTEP_HOST_DEVICE double end() const { return t_ + reach_; }
  // Of the state at t, at that time and at end().
  LOCKSTEP_HOST_DEVICE void see(T here, T at_end) { change_ = static_cast<double>(at_end) - static_cast<double>(here); }

  // When to evaluate what is `elapsed` behind t, and what the value found then stands for.
  LOCKSTEP_HOST_DEVICE double time(double elapsed) const { return covers(elapsed) ? t_ : t_ + elapsed; }
  LOCKSTEP_HOST_DEVICE T value(double elapsed, T found) const {
    return covers(elapsed) && change_ != 0 ? static_cast<T>(static_cast<double>(found) + change_ * (elapsed / reach_))
                                           : found;
  }

 private:
  LOCKSTEP_HOST_DEVICE bool covers(double elapsed) const { return std::fabs(elapsed) < std::fabs(reach_); }
  double t_ = 0, reach_ = 0, change_ = 0;
};

// Where in a step a function crosses, by ITP (Oliveira & Takahashi, An Enhancement of the Bisection Method Average
// Performance Preserving Minmax Optimality, ACM TOMS 47(1), 2020, algorithm 4.1, with kappa_1 = 0.2 / (b - a),
// kappa_2 = 2, n_0 = 1): ten evaluations for a smooth one, and never two more than bisection takes. Ends on the far
// side, within 2^-52 of where that is, of the step in float32 within 2^-30, whose states tell no more.
template <class T>
class CrossingSearch {
 public:
  CrossingSearch() = default;
  // Not crossed at `low`, where the function is `at_low`, and crossed at `high`.
  LOCKSTEP_HOST_DEVICE_CALL CrossingSearch(double low, T at_low, double high, T at_high)
      : low_(low),
        high_(high),
        below_(-std::fabs(static_cast<double>(at_low))),
        above_(std::fabs(static_cast<double>(at_high))),
        truncation_(0.2 / (high - low)),
        tolerance_((sizeof(T) == 4 ? 0x1p-30 : 0x1p-52) * high) {
    reach_ = tolerance_;
    while (reach_ < high - low) reach_ *= 2;
    choose();
  }

  LOCKSTEP_HOST_DEVICE bool done() const { return done_; }
  LOCKSTEP_HOST_DEVICE double high() const { return high_; }
  // The function is as small as this on both sides of where it ended.
  LOCKSTEP_HOST_DEVICE T untold() const { return static_cast<T>(std::fmax(-below_, above_)); }
  // The place to look at next, and what was seen there.
  LOCKSTEP_HOST_DEVICE double theta() const { return theta_; }
  LOCKSTEP_HOST_DEVICE_CALL void see(T value, bool crossed) {
    const double size = std::fabs(static_cast<double>(value));
    (crossed ? high_ : low_) = theta_;
    (crossed ? above_ : below_) = crossed ? size : -size;
    choose();
  }

 private:
  LOCKSTEP_HOST_DEVICE_CALL void choose() {
    const double width = high_ - low_, middle = 0.5 * (low_ + high_);
    // Of algorithm 4.1: interpolate, truncate towards the middle, project to within r of it.
    const double secant = (above_ * low_ - below_ * high_) / (above_ - below_);
    const double offset = middle - secant;
    const double truncated = std::fmax(truncation_ * width * width, 0.5 * tolerance_);  // no less than float64 tells
    double theta = truncated <= std::fabs(offset) ? secant + std::copysign(truncated, offset) : middle;
    const double reach = reach_ - 0.5 * width;
    if (!(std::fabs(theta - middle) <= reach)) theta = middle - std::copysign(reach, offset);
    reach_ *= 0.5;
    theta_ = low_ < theta && theta < high_ ? theta : middle;
    done_ = !(width > tolerance_ && low_ < theta_ && theta_ < high_);
  }

  double low_ = 0, high_ = 0, below_ = 0, above_ = 0, truncation_ = 0, tolerance_ = 0;
  double reach_ = 0;  // epsilon 2^(n_max - j)
  double theta_ = 0;
  bool done_ = true;
};

// How a step is looked through that begins on its function's threshold: at 8^-24, 8^-23, ... of it until one tells the
// side to which the function leaves. Where the step's end lies beyond the threshold from there, it has come back in
// between, after a flight as short as Zeno likes: looks then halve the places between, and a search the last of them.
template <class T>
class ThresholdLook {
 public:
  static constexpr int kLooks = 24;
  static LOCKSTEP_HOST_DEVICE double theta(int look) {
    return std::ldexp(1.0, 3 * (look - kLooks));
  }  // kLooks: the step's end

  // Where to look next; kLooks where there is nothing more to see.
  LOCKSTEP_HOST_DEVICE int next() const { return next_; }
  LOCKSTEP_HOST_DEVICE_CALL void see(const ResetSide<T>& from, EventDirection direction, T value, T at_end) {
    if (side_ == 0) {
      if (std::fabs(value) > from.tells_none_up_to()) leave(from, direction, value, at_end);
      // Away from where it came, as if its reset had not turned it back: one more look tells whether it has.
      passes_ = side_ != 0 && from.from != 0 && (side_ < 0) != (from.from < 0);
      ++next_;
      if (passes_ && next_ == kLooks) see_passing(from.tells_none_up_to(), at_end);
      if (side_ != 0 && !passes_) next_ = found_ && !told_ ? (low_ + high_) / 2 : kLooks;
    } else if (passes_) {
      see_passing(from.tells_none_up_to(), value);
    } else {
      const bool crossed = crosses(direction, side_, value);
      (crossed ? high_ : low_) = next_;
      (crossed ? above_ : below_) = value;
      next_ = (low_ + high_) / 2;
    }
    if (found_ && high_ - low_ == 1) next_ = kLooks;
  }

  LOCKSTEP_HOST_DEVICE bool found() const { return found_; }
  // Its own reset did turn it back, but to less than roundings tell, time and again: it lies on its threshold.
  LOCKSTEP_HOST_DEVICE bool rests() const { return rests_; }
  LOCKSTEP_HOST_DEVICE T side() const { return side_; }  // a value on that side; 0 where none tells it
  LOCKSTEP_HOST_DEVICE CrossingSearch<T> search() const { return {theta(low_), below_, theta(high_), above_}; }
  // Of a step that is cut short: from which side another change carries it over the threshold.
  LOCKSTEP_HOST_DEVICE ResetSide<T> side_where_cut(ResetSide<T> from) const {
    from.before = side_;
    return from;
  }
  // Of a step that nothing cuts short.
  LOCKSTEP_HOST_DEVICE ResetSide<T> side_at_end(const ResetSide<T>& from, T at_end) const {
    return side_ == 0 ? from.still_on() : from.off(at_end);
  }

 private:
  LOCKSTEP_HOST_DEVICE_CALL void leave(const ResetSide<T>& from, EventDirection direction, T value, T at_end) {
    side_ = below_ = value;
    found_ = crosses(direction, value, at_end);
    low_ = next_;
    above_ = at_end;
    if (!crosses(direction, from.came, value)) return;
    // Turned back by the reset that has just let it cross: it crosses where the step begins, or so near that roundings
    // do not tell.
    side_ = below_ = from.came;
    found_ = told_ = true;
    low_ = -1;
    high_ = next_;
    above_ = value;
  }

  // `value` is found 8 times as far on as the one that told the side. Of r x + q x^2 there the first is r x + q x^2,
  // the second 8 r x + 64 q x^2. A function that its reset has not turned back goes on at a rate r. Where none shows it
  // rests, if what it has been turned back to is that parabola: a third look, where steps are long enough for one,
  // finds another value where a rounding had told the first, and where the function leaves as a cubic does.
  LOCKSTEP_HOST_DEVICE_CALL void see_passing(T noise, T value) {
    constexpr int kFarthest = kLooks - 3;  // what is no parabola's shows beyond
    if (doubts_) {
      rests_ = std::fabs(value - parabola_) <= std::fabs(parabola_) / 4;
    } else {
      const T bend = (value - 8 * side_) / 56, along = side_ - bend;
      const bool goes_on = (along < 0) == (side_ < 0) && std::fabs(along) > std::fmax(noise / 2, std::fabs(side_) / 16);
      rests_ = !goes_on && (value < 0) == (side_ < 0);
      doubts_ = rests_ && next_ < kFarthest;
      if (doubts_) {
        parabola_ = 64 * along + 4096 * bend;
        ++next_;
        return;
      }
    }
    passes_ = false;
    next_ = !rests_ && found_ ? (low_ + high_) / 2 : kLooks;
  }

  int next_ = 0, low_ = 0, high_ = kLooks;
  bool found_ = false, passes_ = false, rests_ = false, told_ = false, doubts_ = false;
  T parabola_ = 0;  // what a third look sees of it
  T side_ = 0, below_ = 0, above_ = 0;
};

}  // namespace lockstep::ode::detail

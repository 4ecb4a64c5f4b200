// On which side of its threshold a reset's function is along a trajectory, and what a step must look for.
#pragma once

#include <cmath>

#include "lockstep/ode/problem.h"

namespace lockstep::ode::detail {

// Whether a function strikes that had one value and has another, as the solve goes on.
template <class T>
bool crosses(TerminalEvent::Direction direction, T before, T after) {
  const bool rises = before < 0 && after >= 0;
  const bool falls = before > 0 && after <= 0;
  return (rises && direction != TerminalEvent::Direction::falling) ||
         (falls && direction != TerminalEvent::Direction::rising);
}

// Of one reset in one trajectory, where its next step begins.
template <class T>
struct ResetSide {
  T before = 0;  // the function's value; 0 on the threshold, where that tells no side
  T noise = -1;  // on the threshold: values up to this tell none either; elsewhere negative

  bool on_threshold() const { return noise >= 0; }

  static ResetSide on(T within) { return {0, within}; }
  static ResetSide off(T value) { return {value, -1}; }
  static ResetSide at_start(T value) { return value == 0 ? on(0) : off(value); }
  // Behind its own reset, which found one value and left another. A crossing is found to within roundings of the
  // state, and a reset that leaves the function as it is leaves what they made of 0.
  static ResetSide behind_own(T found, T left) {
    return std::fabs(left) <= std::fabs(found) ? on(4 * std::fabs(left)) : off(left);
  }
  // Behind another change of the state.
  ResetSide behind_other(T left) const { return on_threshold() && std::fabs(left) <= noise ? *this : at_start(left); }
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
  CrossingSearch(double low, T at_low, double high, T at_high)
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

  bool done() const { return done_; }
  double high() const { return high_; }
  // The place to look at next, and what was seen there.
  double theta() const { return theta_; }
  void see(T value, bool crossed) {
    const double size = std::fabs(static_cast<double>(value));
    (crossed ? high_ : low_) = theta_;
    (crossed ? above_ : below_) = crossed ? size : -size;
    choose();
  }

 private:
  void choose() {
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
  static double theta(int look) { return std::ldexp(1.0, 3 * (look - kLooks)); }  // kLooks: the step's end

  // Where to look next; kLooks where there is nothing more to see.
  int next() const { return next_; }
  void see(const ResetSide<T>& from, TerminalEvent::Direction direction, T value, T at_end) {
    if (side_ == 0) {
      if (std::fabs(value) > from.noise) leave(direction, value, at_end);
      next_ = side_ == 0 ? next_ + 1 : found_ ? (low_ + high_) / 2 : kLooks;
    } else {
      const bool crossed = crosses(direction, side_, value);
      (crossed ? high_ : low_) = next_;
      (crossed ? above_ : below_) = value;
      next_ = (low_ + high_) / 2;
    }
    if (found_ && high_ - low_ == 1) next_ = kLooks;
  }

  bool found() const { return found_; }
  T side() const { return side_; }  // a value on that side; 0 where none tells it
  CrossingSearch<T> search() const { return {theta(low_), below_, theta(high_), above_}; }
  // Of a step that nothing cuts short.
  ResetSide<T> side_at_end(const ResetSide<T>& from, T at_end) const {
    return side_ == 0 ? from : ResetSide<T>::off(at_end);
  }

 private:
  void leave(TerminalEvent::Direction direction, T value, T at_end) {
    side_ = below_ = value;
    found_ = crosses(direction, value, at_end);
    low_ = next_;
    above_ = at_end;
  }

  int next_ = 0, low_ = 0, high_ = kLooks;
  bool found_ = false;
  T side_ = 0, below_ = 0, above_ = 0;
};

}  // namespace lockstep::ode::detail

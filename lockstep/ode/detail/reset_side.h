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

// The way of a function through a step that begins on its threshold: the side to which it leaves, and where it comes
// back. A flight may be as short as Zeno likes: looks are at 8^-20, 8^-19, .. of the step, down to what float64 tells
// from its beginning.
template <class T>
struct ThresholdLook {
  static constexpr int kLooks = 20;
  static double theta(int look) { return std::ldexp(1.0, 3 * (look - kLooks)); }  // kLooks: the step's end

  T side = 0;       // 0: not told yet
  double low = 0;   // where it was last on that side
  double high = 0;  // where it was first seen to have crossed; 0: nowhere

  bool found() const { return high != 0; }
  void see(const ResetSide<T>& from, TerminalEvent::Direction direction, double at, T value) {
    if (found()) return;
    if (side != 0 && crosses(direction, side, value)) {
      high = at;
    } else if (side != 0 ? value != 0 : std::fabs(value) > from.noise) {
      side = value;
      low = at;
    }
  }
  // Of a step that nothing cuts short, `value` at its end.
  ResetSide<T> at_end(const ResetSide<T>& from, T value) const { return side == 0 ? from : ResetSide<T>::off(value); }
};

}  // namespace lockstep::ode::detail

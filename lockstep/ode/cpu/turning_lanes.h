// Which of a tile's lanes may have turned across a threshold within their steps.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "lockstep/ode/cpu/tile_state.h"
#include "lockstep/ode/detail/turn_search.h"

namespace lockstep::ode::cpu {

// Values of the tile's function: [lane].
template <class T>
struct StepValues {
  T before[kTileLanes], middle[kTileLanes], after[kTileLanes];
};

// The lanes of `lanes` for which TurnSearch is not to be asked in vain: seldom any.
template <class T>
LaneMask turning_lanes(LaneMask lanes, const StepValues<T>& values) {
  std::int64_t near[kTileLanes];  // as wide as the numbers compared: the loop is one of vectors
  for (int lane = 0; lane < kTileLanes; ++lane) {
    near[lane] =
        detail::TurnSearch<T>::comes_near(values.before[lane], values.middle[lane], values.after[lane]) ? 1 : 0;
  }
  LaneMask turning = 0;
  for (int lane = 0; lane < kTileLanes; ++lane) turning |= static_cast<LaneMask>(near[lane]) << lane;
  return turning & lanes;
}

// Looks at the turns of lanes, turn_of(lane), until none is open. evaluate() evaluates the function at theta of each
// lane's step, into `values` [lane].
template <class T, class TurnOf, class Evaluate, class Strikes>
void follow_turns(LaneMask open, const TurnOf& turn_of, double* theta, const Evaluate& evaluate, const T* values,
                  const Strikes& strikes) {
  while (open != 0) {
    for (LaneMask bits = open; bits != 0; bits &= bits - 1)
      theta[std::countr_zero(bits)] = turn_of(std::countr_zero(bits)).theta();
    evaluate();
    for (LaneMask bits = open; bits != 0; bits &= bits - 1) {
      detail::TurnSearch<T>& turn = turn_of(std::countr_zero(bits));
      turn.see(values[std::countr_zero(bits)], strikes);
      if (!turn.open()) open &= ~(bits & -bits);
    }
  }
}

}  // namespace lockstep::ode::cpu

// Of a trajectory's linearised measurements those that tell nothing of errors: of states carried along as known
// numbers.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/ode/detail/least_squares.h"

namespace lockstep::ode::detail {

// Rows [by start of a component..., by trained number..., residual], in units of each measurement's sigma.
struct MeasuredRows {
  Rows rows;
  std::size_t starts = 0;               // columns of them: components, or none where starts are known
  std::vector<std::size_t> components;  // [row], which was measured
  std::vector<double> roundings = {};   // [row], residuals as small as this are none
};

// Takes out what was measured of components that no trained number moves, nor a start other than their own, and that
// are met exactly: at a known start each number, at a free one two or more of them by one and the same start. Such a
// start is known as well, and its column becomes zero.
//
// s^2 = (sum of squared residuals) / (numbers - unknowns) has the mean sigma^2 because each number, and each unknown
// that is fitted to it, adds a degree of freedom with an error of variance sigma^2. Of a number whose residual is the
// error itself, as nothing is fitted to it, that error is zero with probability zero; where all of a component's are,
// it has no such error: a temperature that was set, carried along as a state. Counted it would add to the numbers and
// nothing to the squares. A component with a start of its own is the same after the start is taken out: two numbers or
// more leave one residual or more, and all of them are zero.
void take_out_known_states(MeasuredRows& measured);

}  // namespace lockstep::ode::detail

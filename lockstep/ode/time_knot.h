// Times at which a right-hand side is not smooth: a step over one keeps neither its order nor its error estimate.
#pragma once

namespace lockstep::ode {

struct TimeKnot {
  double time = 0;
  bool jumps = false;  // in value; else in a derivative
  // The largest number met on the way from the time to where the function bends, in units of the time: rain(t - 5) at
  // a knot 3 meets 8. Roundings are of that size, so that it is known how near the knot the function's sides are told
  // apart.
  double magnitude = 0;
  double apart = 0;  // of those that repeat, as at whole multiples of 24 in t % 24: how long it is to the next
};

// Of time, either way; from minus to plus infinity for all there is.
struct TimeSpan {
  double first = 0, last = 0;  // ascending
};

// What holds for all knots, those of any span.
struct KnotBounds {
  bool some = false;       // whether there are some
  bool some_jump = false;  // and not only bend
  bool repeats = false;    // without an end: of an infinite span one stands for all
  double magnitude = 0;    // the largest
};

}  // namespace lockstep::ode

// What the functions of a problem tell of times at which they jump or bend, as if they were one function.
#pragma once

#include <span>
#include <vector>

#include "lockstep/ode/detail/knot_bounds.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode::detail {

// Of the right-hand side, the event's function and those of the resets, which a step that passes over a jump of theirs
// may miss. Named as StateFunction's, which says what they are. Valid while the problem lives.
class ProblemKnots {
 public:
  explicit ProblemKnots(const Problem& problem) : problem_(problem) {}

  bool moves_knots() const { return any(&StateFunction::moves_knots); }
  bool repeats_knots() const { return any(&StateFunction::repeats_knots); }
  bool has_many_knots() const { return any(&StateFunction::has_many_knots); }
  std::vector<TimeKnot> time_knots(const TimeSpan& span, std::span<const double> parameters) const {
    std::vector<TimeKnot> knots;
    const bool repeat = repeats_knots();
    for_functions([&](const StateFunction& function) {
      const std::vector<TimeKnot> more = knots_beside(function, parameters, repeat, span);
      knots.insert(knots.end(), more.begin(), more.end());
    });
    return knots;
  }
  KnotBounds knot_bounds(std::span<const double> parameters) const {
    KnotBounds bounds;
    for_functions([&](const StateFunction& function) {
      bounds = bounds_of_both(bounds, detail::knot_bounds(function, parameters));
    });
    return bounds;
  }

 private:
  template <class Use>
  void for_functions(const Use& use) const {
    use(*problem_.rhs);
    if (problem_.event) use(*problem_.event->function);
    for (const Reset& reset : problem_.resets) use(*reset.function);
  }
  bool any(bool (StateFunction::*tells)() const) const {
    bool found = false;
    for_functions([&](const StateFunction& function) { found = found || (function.*tells)(); });
    return found;
  }

  const Problem& problem_;
};

}  // namespace lockstep::ode::detail

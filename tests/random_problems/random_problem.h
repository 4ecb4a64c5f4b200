// Problems drawn at random over all that a solve may be asked for: right-hand sides, events, resets, impulses, stops,
// spans, methods and controls. One seed is one problem, on every machine.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode {

struct RandomProblem {
  Problem problem;
  Options options;
  bool as_text = false;     // its right-hand side or event is: a GPU would have it compiled
  std::string description;  // for people, of several lines
};

RandomProblem random_problem(std::uint64_t seed);

}  // namespace lockstep::ode

// Comparisons that choose between values which agree where they switch: a bend at most, and no jump.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/kernels/graph/graph.h"

namespace lockstep::ode::detail {

// The graph's values, ascending, that compare a value with a constant and do nothing but choose, where each choice is
// between two functions of that value alone that are one finite number where it is the constant, to rounding: x < 0 in
// sinh(x), or in if(f(t) < 0, 0, f(t)). Not where something else comes in, such as a state or a parameter.
std::vector<std::size_t> continuous_choices(const graph::Graph& graph);

}  // namespace lockstep::ode::detail

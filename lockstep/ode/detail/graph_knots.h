// The times at which a graph as a right-hand side bends or jumps.
#pragma once

#include <vector>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/ode/detail/graph_inputs.h"
#include "lockstep/ode/time_knot.h"

namespace lockstep::ode::detail {

// Of everything in it that reads a multiple of the time plus a constant: tables, comparisons, bounds.
std::vector<TimeKnot> time_knots(const graph::Graph& graph, const GraphPieces& pieces);

}  // namespace lockstep::ode::detail

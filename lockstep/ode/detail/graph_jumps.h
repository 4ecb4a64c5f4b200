// Whether a graph as a right-hand side jumps where a state passes a value.
#pragma once

#include <cstddef>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/ode/detail/graph_inputs.h"

namespace lockstep::ode::detail {

// Looks for two states, next to each other but on the two sides of a comparison, of a step of a table or of a hard
// threshold in the graph, between which an output changes by more than rounding: in if(x < 1, 0, x - 1) none does, nor
// in minima, absolute values or rectifiers. Sought on lines between states of any size up to 1e9.
bool jumps_at_states(const graph::Graph& graph, const GraphPieces& pieces);

// The same of that one of the graph's nodes alone.
bool jumps_at_states(const graph::Graph& graph, const GraphPieces& pieces, std::size_t node);

}  // namespace lockstep::ode::detail

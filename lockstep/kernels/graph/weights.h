// The numbers of a graph that training changes, as one list: weights and biases of its dense nodes.
#pragma once

#include <span>
#include <vector>

#include "lockstep/kernels/graph/graph.h"

namespace lockstep::graph {

// Dense nodes in the order of computing, each weights [output][input], then bias [output]: of a plain stack, the order
// of gather_parameters(). Scales and shifts, of layer normalisations too, belong to the data.
std::vector<double> gather_weights(const Graph& graph);
// Writes them back. Throws Error (invalid_argument) when there are not as many as gather_weights() gives.
void scatter_weights(std::span<const double> weights, Graph& graph);

}  // namespace lockstep::graph

// The numbers of a graph that training changes, as one list: weights and biases of its dense nodes.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "lockstep/kernels/graph/graph.h"

namespace lockstep::graph {

// Dense nodes in the order of computing, each weights [output][input], then bias [output]: of a plain stack, the order
// of gather_parameters(). Scales and shifts, of layer normalisations too, belong to the data.
std::vector<double> gather_weights(const Graph& graph);
// Writes them back. Throws Error (invalid_argument) when there are not as many as gather_weights() gives.
void scatter_weights(std::span<const double> weights, Graph& graph);

// Where each dense node's numbers begin in such a list, [dense node]: nodes of one place share their numbers, those
// that are kept are not in the list.
using WeightPlaces = std::vector<std::size_t>;
inline constexpr std::size_t kKept = std::numeric_limits<std::size_t>::max();

// One after another, as gather_weights() has them.
WeightPlaces own_places(const Graph& graph);
// Throws Error (invalid_argument) unless there is a place for each dense node and the places fill one list without a
// gap, where nodes overlap only as a whole and hold the same numbers.
std::vector<double> gather_weights(const Graph& graph, std::span<const std::size_t> places);
// Of places that gather_weights() takes; kept nodes keep theirs. Throws as above when the count differs.
void scatter_weights(std::span<const double> weights, std::span<const std::size_t> places, Graph& graph);

}  // namespace lockstep::graph

// A net that is no plain stack as a right-hand side with its transposed derivative, and with that of its derivative
// along a direction.
#pragma once

#include <cstddef>
#include <memory>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/ode/detail/graph_inputs.h"
#include "lockstep/ode/differentiable_tile.h"

namespace lockstep::ode::detail {

// The graph has one output port; its weights are graph::gather_weights() at these places.
template <class T>
std::shared_ptr<DifferentiableTile<T>> reverse_graph(const graph::Graph& graph, const GraphPieces& pieces,
                                                     const graph::WeightPlaces& places, CpuTarget target);

// StateFunction::directional_f64() of such a net, whose state has so many components.
template <class T>
std::shared_ptr<DifferentiableTile<T>> directional_graph(const graph::Graph& graph, const GraphPieces& pieces,
                                                         std::size_t components, const graph::WeightPlaces& places,
                                                         CpuTarget target);

}  // namespace lockstep::ode::detail

// The Jacobian of a right-hand side that is a graph without layers: of equations written as text.
#pragma once

#include <cstddef>
#include <memory>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/ode/detail/graph_inputs.h"
#include "lockstep/ode/jacobian_tile.h"

namespace lockstep::ode::detail {

// Whether it holds dense layers, whose weights a direction after another would read again.
bool has_layers(const graph::Graph& graph);

// One graph makes all of it: columns that share no row, as those of a band matrix, lie in one direction (Curtis, Powell
// & Reid 1974, J. Inst. Maths Applics 13, 117-119); the time is a direction of its own where it is read.
template <class T>
std::shared_ptr<const JacobianTile<T>> graph_jacobian(const graph::Graph& graph, const GraphPieces& pieces,
                                                      std::size_t components, CpuTarget target);

extern template std::shared_ptr<const JacobianTile<float>> graph_jacobian(const graph::Graph&, const GraphPieces&,
                                                                          std::size_t, CpuTarget);
extern template std::shared_ptr<const JacobianTile<double>> graph_jacobian(const graph::Graph&, const GraphPieces&,
                                                                           std::size_t, CpuTarget);

}  // namespace lockstep::ode::detail

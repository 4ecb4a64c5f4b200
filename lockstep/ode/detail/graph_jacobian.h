// The Jacobian of a right-hand side that is a graph: of equations written as text, and of nets that they call.
#pragma once

#include <cstddef>
#include <memory>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/ode/detail/graph_inputs.h"
#include "lockstep/ode/jacobian_source.h"
#include "lockstep/ode/jacobian_tile.h"

namespace lockstep::ode::detail {

// One graph makes all of it: columns that share no row, as those of a band matrix, lie in one direction (Curtis, Powell
// & Reid 1974, J. Inst. Maths Applics 13, 117-119); the time is a direction of its own where it is read. Null where the
// directions would read layers' weights so often that the transpose, a row after another, is had for less.
template <class T>
std::shared_ptr<const JacobianTile<T>> graph_jacobian(const graph::Graph& graph, const graph::WeightPlaces& places,
                                                      const GraphPieces& pieces, std::size_t components,
                                                      CpuTarget target);

// The same as text. Null where graph_jacobian() is, and where that is too long for a GPU.
template <class T>
std::shared_ptr<const JacobianSource> graph_jacobian_source(const graph::Graph& graph,
                                                            const graph::WeightPlaces& places,
                                                            const GraphPieces& pieces, std::size_t components);

extern template std::shared_ptr<const JacobianSource> graph_jacobian_source<float>(const graph::Graph&,
                                                                                   const graph::WeightPlaces&,
                                                                                   const GraphPieces&, std::size_t);
extern template std::shared_ptr<const JacobianSource> graph_jacobian_source<double>(const graph::Graph&,
                                                                                    const graph::WeightPlaces&,
                                                                                    const GraphPieces&, std::size_t);
extern template std::shared_ptr<const JacobianTile<float>> graph_jacobian(const graph::Graph&,
                                                                          const graph::WeightPlaces&,
                                                                          const GraphPieces&, std::size_t, CpuTarget);
extern template std::shared_ptr<const JacobianTile<double>> graph_jacobian(const graph::Graph&,
                                                                           const graph::WeightPlaces&,
                                                                           const GraphPieces&, std::size_t, CpuTarget);

}  // namespace lockstep::ode::detail

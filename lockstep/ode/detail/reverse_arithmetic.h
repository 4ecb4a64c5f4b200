// A graph without layers as a right-hand side with its derivatives, for which code is generated where there is a
// generator.
#pragma once

#include <memory>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/ode/detail/graph_inputs.h"
#include "lockstep/ode/differentiable_tile.h"

namespace lockstep::ode::detail {

// What is compiled of such a graph. It never changes: any number of tiles may be made of one.
template <class T>
struct ArithmeticDerivative;

// Of a graph with one output port, nothing trainable. Null for one that has layers, or a port whose rows
// do not lie in place.
template <class T>
std::shared_ptr<const ArithmeticDerivative<T>> arithmetic_derivative(const graph::Graph& graph,
                                                                     const GraphPieces& pieces, CpuTarget target);
template <class T>
std::shared_ptr<DifferentiableTile<T>> reverse_arithmetic(std::shared_ptr<const ArithmeticDerivative<T>> derivative);

}  // namespace lockstep::ode::detail

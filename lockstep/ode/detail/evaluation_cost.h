// What one evaluation of a right-hand side costs, for the cost model: counted, not measured.
#pragma once

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode::detail {

// As the function says of itself (StateFunction::evaluation_cost), else from its parts; where there are none, a guess.
EvaluationCost cost_of(const StateFunction& function);

// Equations and nets that are no stack: products and activations in `nets`, what goes element by element in `rest`.
// Throws Error (model) where the graph's widths do not fit together.
EvaluationCost cost_of(const graph::Graph& graph);

}  // namespace lockstep::ode::detail

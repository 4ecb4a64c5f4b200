// Steps of a schedule that are arithmetic on lanes, or functions of single features, several in a row as one piece of
// machine code.
#pragma once

#include "lockstep/kernels/graph/detail/program.h"

namespace lockstep::graph {

// A GenerateSteps for T, float or double. Layers are left out, what runs through features as a softmax does, and steps
// so wide that a loop over their features costs nothing. Throws Error (model) naming the field when a number does not
// fit into T.
template <class T>
GeneratedSteps generate_steps(const Graph& graph, const Schedule& schedule, std::size_t first, CpuTarget target);

extern template GeneratedSteps generate_steps<float>(const Graph&, const Schedule&, std::size_t, CpuTarget);
extern template GeneratedSteps generate_steps<double>(const Graph&, const Schedule&, std::size_t, CpuTarget);

}  // namespace lockstep::graph

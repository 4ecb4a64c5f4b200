// Elementary functions and tables as code that generated code calls: each on one register, with the bits of the graph's
// own kernels.
#pragma once

#include <cstddef>
#include <string>

#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/generated/lane_program.h"
#include "lockstep/kernels/graph/operation.h"

namespace lockstep::graph {

// For instruction sets that code is generated for; elsewhere there is no code in it. T is float or double.
template <class T>
LaneFunction called_function(ActivationKind kind, CpuTarget target);  // of the argument and alpha
template <class T>
LaneFunction called_function(UnaryKind kind, CpuTarget target);  // exp, log, erf, cosine, arctangent
template <class T>
LaneFunction called_power(CpuTarget target);
template <class T>
LaneFunction called_chain(ActivationKind kind, CpuTarget target);  // of Chain's two and alpha
// Of one feature that the table makes. Throws Error (model) where numbers do not fit into T.
template <class T>
LaneFunction called_table(const Interpolate& table, const std::string& node, std::size_t feature, CpuTarget target);

}  // namespace lockstep::graph

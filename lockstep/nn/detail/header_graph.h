// What an exported header makes of a net that is no plain stack: a function for each node, rows for its values, and the
// order of calls. `$`, `@` and `~` as in c_lane.h.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/nn/detail/header_text.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

// The plan's layers are the graph's dense nodes in the order of computing, each with the activation it ends in.
// Throws Error as to_graph().
HeaderPlan graph_header_plan(const Model& model, const HeaderOptions& options);

// Has nodes whose functions would be the same, in double, call that of the first, and counts the calls of each
// function.
void share_node_functions(HeaderPlan& plan);

// The functions of the nodes but for the layers; `~` is left in.
template <class T>
std::string node_functions_text(const HeaderPlan& plan);

// The evaluating functions and all they call, of the precisions that the header has.
std::string c_graph_text(const HeaderPlan& plan);
std::string cuda_graph_text(const HeaderPlan& plan);

}  // namespace lockstep::nn::detail

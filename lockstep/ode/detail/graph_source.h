// A net that is no plain stack as the body of a function that a GPU's thread runs: ode/cuda_source.h.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/ode/detail/graph_inputs.h"

namespace lockstep::ode::detail {

// Numbers in the net and features of all its values together, above which there is no text: a thread keeps the latter
// in memory of its own, and compiling takes longer than evaluating on the CPU.
inline constexpr std::size_t kMostSourceNumbers = 16384, kMostSourceFeatures = 1024;

// A number as the text spells it, in the type R: as that rounds it.
std::string source_literal(double value);

// Statements that set du from t, u and p, in the type of u's numbers, with the bits of GraphPlan; of an event, that
// return its value. Nothing for nets that are too large.
enum class GraphSourceForm { derivative, event };
std::optional<std::string> graph_source(const graph::Graph& graph, const GraphPieces& pieces,
                                        GraphSourceForm form = GraphSourceForm::derivative);

// The same for a graph of derivatives: statements that set `assignments`, numbers of its one output by the text that
// names them.
struct Assignment {
  std::string to;
  std::size_t from;  // feature of the output
};
inline constexpr std::size_t kMostJacobianFeatures = 16384;
std::optional<std::string> jacobian_source(const graph::Graph& graph, const GraphPieces& pieces,
                                           const std::vector<Assignment>& assignments);

}  // namespace lockstep::ode::detail

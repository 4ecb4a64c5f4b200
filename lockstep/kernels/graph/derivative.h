// Graphs that compute another graph's derivatives: its Jacobian by the input ports, times vectors, from either side.
// They are made of the same operations, so that whatever evaluates graphs evaluates derivatives too.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lockstep/kernels/graph/graph.h"

namespace lockstep::graph {

// Input ports: those of `graph`, then for each of them its direction, "NAME_dot", of the same width. Output ports:
// those of `graph`, then for each of them J times the directions, "NAME_dot". At kinks the derivative is the one from
// the right, but for relu (0 at 0), the absolute value (0 at 0) and clip (1 at its bounds); where two values are equal,
// that of a minimum or maximum is the first one's, and reductions share it out equally. Comparisons have none.
//
// Throws Error (model) when the graph is invalid, (unsupported) naming the node when it holds derivatives already.
Graph jvp_graph(const Graph& graph);
// Along changes of some of the input ports, `moved`, ascending: these alone have directions. The output ports are
// "NAME_dot" alone.
Graph jvp_graph(const Graph& graph, const std::vector<std::size_t>& moved);

// Input ports: those of `graph`, whose one output port has n features. Output port: J times each of the directions, one
// after another, [direction][n]. What a direction does not move is left out, so that a sparse Jacobian in few
// directions costs little. Otherwise as jvp_graph. Each direction that moves a dense node has a copy of its weights,
// but for those nodes that it moves alike in every sample: nothing where they would be more than `most_weights`.
using Direction = std::vector<std::vector<double>>;  // [input port][feature], empty where all are 0
std::optional<Graph> jvp_graph(const Graph& graph, const std::vector<Direction>& directions, std::size_t most_weights);

// The derivative of a graph's one output port along a direction, made of operations that have derivatives themselves.
// Input ports: those of `graph`, then for each one that is moved its direction, "NAME_along", of the same width. Output
// port: J times the directions, "NAME_along". Throws Error as jvp_graph.
struct Tangent {
  struct Layer {
    std::size_t of;     // a dense node of the given graph, whose weights it has
    bool of_direction;  // without its bias
  };
  Graph graph;
  std::size_t given_ports;    // of the input ports; directions follow
  std::vector<Layer> layers;  // [dense node of `graph`]
};
Tangent tangent_graph(const Graph& graph, const std::vector<bool>& moved);  // [input port]

// For each feature of the one output port the features of the input ports, numbered one port after another, that it
// depends on or may, ascending. Comparisons count. Of layers all, or all but those weights that are zero.
enum class CountedWeights { all, nonzero };
std::vector<std::vector<std::size_t>> dependencies(const Graph& graph,
                                                   CountedWeights counted = CountedWeights::nonzero);

// Input ports: those of `graph`, then for each output port its cotangent, "NAME_bar". Output ports: those of `graph`,
// then for each input port J^T times the cotangents, "NAME_bar". Otherwise as jvp_graph.
Graph vjp_graph(const Graph& graph);

// Input ports: those of `graph`. Output ports: those of `graph`, then "jacobian", [output][input]: of each feature of
// the outputs, one port after another, its derivatives by those of the inputs. Along one input after another where
// these are not more than the outputs, else back from one output after another: the numbers of jvp_graph or vjp_graph
// for unit vectors, of which a layer makes a column or a row of its weights. Each of them has a copy of the weights of
// the dense nodes on its way. Throws Error as jvp_graph, and (unsupported) when all nodes' for all of them
// would be more than these numbers of weights or of nodes.
inline constexpr std::size_t kMostJacobianWeights = std::size_t{1} << 22;
inline constexpr std::size_t kMostJacobianNodes = std::size_t{1} << 20;
Graph jacobian_graph(const Graph& graph);

// As vjp_graph, and after its output ports two for each dense node in their order: "NAME_read", what it reads, and
// "NAME_bar", the cotangent of what it makes. The node's weight gradient is the sum over samples of NAME_bar[output]
// NAME_read[input], its bias gradient that of NAME_bar.
struct LayerVjp {
  static constexpr std::size_t kNone = ~std::size_t(0);
  Graph graph;  // its first nodes are those of the net
  // Of each dense node of the net: the one of `graph` that has its weights transposed, no bias; kNone where none has.
  std::vector<std::size_t> transposes;
};
LayerVjp layer_vjp_graph(const Graph& graph);

}  // namespace lockstep::graph

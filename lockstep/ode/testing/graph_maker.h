// Graphs for tests, node by node.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/kernels/graph/graph.h"

namespace lockstep::ode::testing {

// Each call adds a node and gives the number of its value; the inputs have those before.
struct GraphMaker : graph::Graph {
  explicit GraphMaker(std::vector<graph::Port> ports) : Graph{std::move(ports), {}, {}} {}

  std::size_t node(graph::Operation operation, std::vector<std::size_t> of) {
    nodes.push_back({"v" + std::to_string(nodes.size()), std::move(operation), std::move(of)});
    return inputs.size() + nodes.size() - 1;
  }
  std::size_t column(std::size_t of, std::size_t i) { return node(graph::Columns{{i}}, {of}); }
  std::size_t binary(graph::BinaryKind kind, std::size_t a, std::size_t b) { return node(graph::Binary{kind}, {a, b}); }
};

}  // namespace lockstep::ode::testing

// A net as numbered vectors: what the kernels need to know of a model that is no plain stack of layers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/kernels/graph/operation.h"

namespace lockstep::graph {

struct Port {
  std::string name;
  std::size_t value;  // input ports: their own number; output ports: the value they show
  std::size_t width;
};

struct Node {
  std::string name;  // for messages and explain
  Operation operation;
  std::vector<std::size_t> inputs;  // numbers of values made before it
};

// Values are numbered: the input ports first, then the nodes, in the order of computing.
struct Graph {
  std::vector<Port> inputs;
  std::vector<Node> nodes;
  std::vector<Port> outputs;

  // The width of every value. Throws Error (model) when something does not fit together.
  std::vector<std::size_t> widths() const;
  // 32 hexadecimal digits over all that decides the outputs; names do not count.
  std::string digest() const;
};

}  // namespace lockstep::graph

// A graph laid out for a GPU: its steps as plain numbers that point into two arrays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/kernels/cuda/graph_launch.h"
#include "lockstep/kernels/graph/graph.h"

namespace lockstep::cuda {

template <class T>
struct GraphImage {
  std::vector<GraphStep> steps;
  std::vector<T> numbers;  // each list at a multiple of 64 bytes
  std::vector<std::int32_t> indices;
  std::vector<GraphPortLayout> inputs, outputs;
  std::int64_t rows = 0;
  std::string summary;
};

// Numbers are rounded to T. Throws Error (model) naming the node when the graph is invalid or a number does not fit
// into T, (unsupported) for more than kMostGraphPorts ports.
template <class T>
GraphImage<T> make_graph_image(const graph::Graph& graph);

extern template GraphImage<float> make_graph_image<float>(const graph::Graph&);
extern template GraphImage<double> make_graph_image<double>(const graph::Graph&);

}  // namespace lockstep::cuda

#include "lockstep/kernels/graph/weights.h"

#include <algorithm>
#include <string>
#include <variant>

#include "lockstep/core/error.h"

namespace lockstep::graph {

std::vector<double> gather_weights(const Graph& graph) {
  std::vector<double> all;
  for (const Node& node : graph.nodes) {
    const auto* dense = std::get_if<Dense>(&node.operation);
    if (!dense) continue;
    all.insert(all.end(), dense->weights.begin(), dense->weights.end());
    all.insert(all.end(), dense->bias.begin(), dense->bias.end());
  }
  return all;
}

void scatter_weights(std::span<const double> weights, Graph& graph) {
  std::size_t expected = 0;
  for (const Node& node : graph.nodes) {
    if (const auto* dense = std::get_if<Dense>(&node.operation)) expected += dense->weights.size() + dense->bias.size();
  }
  if (weights.size() != expected) {
    throw Error(ErrorKind::invalid_argument, {"weights", std::to_string(weights.size()) + " numbers",
                                              std::to_string(expected), "give those of every dense node"});
  }
  for (Node& node : graph.nodes) {
    auto* dense = std::get_if<Dense>(&node.operation);
    if (!dense) continue;
    for (std::vector<double>* part : {&dense->weights, &dense->bias}) {
      std::copy_n(weights.begin(), part->size(), part->begin());
      weights = weights.subspan(part->size());
    }
  }
}

}  // namespace lockstep::graph

// A net's second derivatives are those of its graph, whose kernels take this compiler ten minutes. The programs here
// call none.
#include <exception>

#include "lockstep/kernels/graph/weights.h"
#include "lockstep/ode/detail/reverse_graph.h"

namespace lockstep {

graph::WeightPlaces graph::own_places(const Graph&) { std::terminate(); }

namespace ode::detail {

template <class T>
std::shared_ptr<DifferentiableTile<T>> directional_graph(const graph::Graph&, const GraphPieces&, std::size_t,
                                                         const graph::WeightPlaces&, CpuTarget) {
  std::terminate();
}
template std::shared_ptr<DifferentiableTile<float>> directional_graph(const graph::Graph&, const GraphPieces&,
                                                                      std::size_t, const graph::WeightPlaces&,
                                                                      CpuTarget);
template std::shared_ptr<DifferentiableTile<double>> directional_graph(const graph::Graph&, const GraphPieces&,
                                                                       std::size_t, const graph::WeightPlaces&,
                                                                       CpuTarget);

}  // namespace ode::detail
}  // namespace lockstep

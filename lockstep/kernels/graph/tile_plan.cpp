#include "lockstep/kernels/graph/tile_plan.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/precision.h"
#include "lockstep/kernels/graph/detail/program.h"

namespace lockstep {
namespace {

using graph::Program;

// Lanes that go through the whole graph together: layers take two registers, all else a tile.
template <class T>
std::size_t strip_of(const Program<T>& program) {
  return program.layers.empty() ? kTileLanes : std::min<std::size_t>(program.kernels->strip(), kTileLanes);
}

}  // namespace

template <class T>
GraphTilePlan<T> GraphTilePlan<T>::compile(const graph::Graph& graph, CpuTarget target) {
  if (graph.inputs.size() > kMostInputs || graph.outputs.size() != 1) {
    throw Error(ErrorKind::unsupported, {"graph",
                                         std::to_string(graph.inputs.size()) + " input and " +
                                             std::to_string(graph.outputs.size()) + " output ports",
                                         "at most " + std::to_string(kMostInputs) + " and one",
                                         {}});
  }
  return GraphTilePlan(
      std::make_shared<Packed>(Packed{graph::lower<T>(graph, target, graph::PortRowsLie::with_the_caller)}));
}

template <class T>
std::size_t GraphTilePlan<T>::workspace_bytes() const {
  return (packed_->rows * kTileLanes + packed_->scratch) * sizeof(T);
}

template <class T>
void GraphTilePlan<T>::evaluate(std::span<const T* const> in, T* out, int lanes, std::byte* workspace) const {
  const Program<T>& program = *packed_;
  const std::size_t strip = strip_of(program), wanted = static_cast<std::size_t>(lanes);
  graph::Tile<T> tile{};
  tile.stride = kTileLanes;
  tile.scratch = reinterpret_cast<T*>(workspace) + program.rows * kTileLanes;
  tile.bases[0] = reinterpret_cast<T*>(workspace);
  tile.bases[graph::kOutputBase] = out;
  // Nothing is written there: inputs' rows are nobody's to reuse.
  for (std::size_t i = 0; i < in.size(); ++i) tile.bases[graph::kInputBase + i] = const_cast<T*>(in[i]);
  const auto begin = tile.bases;
  for (std::size_t first = 0; first < wanted; first += strip) {
    tile.samples = std::min(wanted - first, strip);
    tile.registers = (tile.samples + program.kernels->lanes - 1) / program.kernels->lanes;
    for (const graph::Step<T>& step : program.steps) step.run(step, tile);
    for (T*& base : tile.bases) base += base == nullptr ? 0 : strip;
  }
  for (const auto& [port, row, base] : program.stores) {
    std::copy_n(begin[base] + row * kTileLanes, program.outputs[port].width * kTileLanes, out);
  }
}

template <class T>
std::string GraphTilePlan<T>::description() const {
  std::size_t packed = 0;
  for (const auto& layer : packed_->layers) packed += layer->weights.size();
  return std::string(to_string(packed_->target)) + " " + std::string(to_string(kPrecisionOf<T>)) + " graph, " +
         packed_->summary + "; tiles of " + std::to_string(strip_of(*packed_)) + " lanes, " +
         std::to_string(packed_->rows) + " rows, " + std::to_string(packed * sizeof(T)) + " bytes packed";
}

template class GraphTilePlan<float>;
template class GraphTilePlan<double>;

}  // namespace lockstep

#include "lockstep/kernels/graph/tile_plan.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/precision.h"
#include "lockstep/kernels/graph/detail/lane_run.h"
#include "lockstep/kernels/graph/detail/program.h"

namespace lockstep {
namespace {

using graph::Program;

// Lanes that layers take at a time: two registers.
template <class T>
std::size_t strip_of(const Program<T>& program) {
  return std::min<std::size_t>(program.kernels->strip(), kTileLanes);
}

// The tile from lane `first` on, `samples` of them.
template <class T>
graph::Tile<T> part_of(const Program<T>& program, graph::Tile<T> tile, std::size_t first, std::size_t samples) {
  for (T*& base : tile.bases) base += base == nullptr ? 0 : first;
  tile.samples = samples;
  tile.registers = (samples + program.kernels->lanes - 1) / program.kernels->lanes;
  return tile;
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
  return GraphTilePlan(std::make_shared<Packed>(
      Packed{graph::lower<T>(graph, target, graph::PortRowsLie::with_the_caller, graph::generate_steps<T>)}));
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
  tile.bases[graph::kConstantBase] = const_cast<T*>(program.constant_rows.data());
  if (program.whole_tiles) {
    const graph::Tile<T> whole = part_of(program, tile, 0, wanted);
    for (const graph::Step<T>& step : program.steps) {
      if (step.layer == nullptr) {
        step.run(step, whole);
        continue;
      }
      for (std::size_t first = 0; first < wanted; first += strip) {
        step.run(step, part_of(program, tile, first, std::min(wanted - first, strip)));
      }
    }
  } else {
    for (std::size_t first = 0; first < wanted; first += strip) {
      const graph::Tile<T> part = part_of(program, tile, first, std::min(wanted - first, strip));
      for (const graph::Step<T>& step : program.steps) step.run(step, part);
    }
  }
  for (const auto& [port, row, base] : program.stores) {
    std::copy_n(tile.bases[base] + row * kTileLanes, program.outputs[port].width * kTileLanes, out);
  }
}

template <class T>
const LaneProgram* GraphTilePlan<T>::arithmetic() const {
  static_assert(kOutput == graph::kOutputBase && kFirstInput == graph::kInputBase);
  return packed_->arithmetic.get();
}

template <class T>
std::string GraphTilePlan<T>::description() const {
  std::size_t packed = 0;
  for (const auto& layer : packed_->layers) packed += layer->weights.size();
  return std::string(to_string(packed_->target)) + " " + std::string(to_string(kPrecisionOf<T>)) + " graph, " +
         packed_->summary + "; tiles of " +
         std::to_string(packed_->whole_tiles ? kTileLanes : static_cast<int>(strip_of(*packed_))) + " lanes, " +
         std::to_string(packed_->rows) + " rows, " + std::to_string(packed * sizeof(T)) + " bytes packed";
}

template class GraphTilePlan<float>;
template class GraphTilePlan<double>;

}  // namespace lockstep

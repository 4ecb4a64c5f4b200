#include "lockstep/ode/detail/reverse_graph.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/plan.h"
#include "lockstep/kernels/graph/trainable_plan.h"
#include "lockstep/ode/detail/guarded_tile.h"

namespace lockstep::ode::detail {
namespace {

// What fills a port. Pieces fill the ports one after another, none lies in two of them.
struct PortPieces {
  std::size_t port;
  std::span<const GraphPiece> pieces;
};
std::vector<PortPieces> pieces_of_ports(const graph::Graph& graph, const GraphPieces& pieces) {
  std::vector<PortPieces> ports;
  std::size_t first = 0;
  for (std::size_t port = 0; port < graph.inputs.size(); ++port) {
    std::size_t end = first;
    for (std::size_t width = 0; width < graph.inputs[port].width && end < pieces.size(); ++end)
      width += pieces[end].count;
    ports.push_back({port, std::span(pieces).subspan(first, end - first)});
    first = end;
  }
  return ports;
}
template <class Which>
bool any_of(const PortPieces& port, const Which& which) {
  return std::ranges::any_of(port.pieces, [&](const GraphPiece& piece) { return which(piece.source); });
}

// Nothing is recorded: the transpose runs the net again.
template <class T>
class ReverseGraph final : public DifferentiableTile<T> {
 public:
  // What the derivative along a direction is compiled from.
  struct Source {
    graph::Graph graph;
    graph::WeightPlaces places;
    CpuTarget target;
  };

  // `directions`: the pieces of those ports whose directions the plan reads too; they lie behind the state. Without a
  // source nothing is pushed forward.
  ReverseGraph(TrainableGraphPlan<T> plan, GraphPieces pieces, GraphPieces directions, std::size_t components,
               std::optional<Source> source)
      : pieces_(std::move(pieces)),
        directions_(std::move(directions)),
        components_(components),
        source_(std::move(source)),
        plan_(std::move(plan)) {}

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override {
    T* const inputs = reinterpret_cast<T*>(workspace);
    gather(tile.t, tile.in, tile.parameters, inputs);
    plan_.evaluate_tile({tile.t, inputs, nullptr, tile.out, tile.lanes}, workspace + row_bytes(plan_.inputs()));
  }
  std::size_t workspace_bytes() const override { return row_bytes(plan_.inputs()) + plan_.workspace_bytes(); }
  std::size_t cotangent_bytes() const override { return round_up_to_alignment(plan_.cotangent_numbers() * sizeof(T)); }
  std::string description() const override {
    return "trainable graph, " + std::to_string(plan_.weights()) + " weights, " + plan_.description();
  }

  void reverse(const ReverseTileView<T>& tile, std::byte* workspace) const override {
    T* const read = reinterpret_cast<T*>(workspace);
    T* const out_bar = gather(tile.t, tile.in, tile.parameters, read);
    std::copy_n(tile.out_bar, plan_.outputs() * kTileLanes, out_bar);
    const T* row = plan_.reverse_tile(read, reinterpret_cast<T*>(tile.cotangents),
                                      workspace + row_bytes(plan_.inputs() + plan_.outputs()), tile.lanes);
    for (const GraphPiece& piece : pieces_) {
      T* const to = piece.source == GraphSource::state        ? tile.in_bar
                    : piece.source == GraphSource::parameters ? tile.parameter_bar
                                                              : tile.time_bar;
      const std::size_t numbers = piece.count * kTileLanes;
      for (std::size_t i = 0; to && i < numbers; ++i) to[piece.first * kTileLanes + i] += row[i];
      row += numbers;
    }
  }
  std::size_t reverse_workspace_bytes() const override {
    return row_bytes(plan_.inputs() + plan_.outputs()) + plan_.reverse_workspace_bytes();
  }

  bool knows_time() const override { return true; }

  // Compiled with the weights as they are: who asks for it does so once at each.
  void prepare_forward() override {
    if (forward_ || !source_) return;
    graph::Graph graph = source_->graph;
    if (!weights_.empty()) graph::scatter_weights(weights_, source_->places, graph);
    std::vector<std::size_t> moved;
    moved_.clear();
    for (const PortPieces& port : pieces_of_ports(graph, pieces_)) {
      if (!any_of(port, [](GraphSource source) { return source != GraphSource::time; })) continue;
      moved.push_back(port.port);
      moved_.insert(moved_.end(), port.pieces.begin(), port.pieces.end());
    }
    forward_ = GraphPlan<T>::compile(graph::jvp_graph(graph, moved), source_->target);
  }
  bool pushes_forward() const override { return forward_.has_value(); }
  void forward(const ForwardTileView<T>& tile, std::byte* workspace) const override {
    T* const inputs = reinterpret_cast<T*>(workspace);
    T* row = gather_inputs(pieces_, tile.t, tile.in, tile.parameters, inputs);
    for (const GraphPiece& piece : moved_) {
      const std::size_t numbers = piece.count * kTileLanes;
      if (piece.source == GraphSource::time) {
        row = std::fill_n(row, numbers, T(0));
      } else {
        const T* const from = piece.source == GraphSource::state ? tile.in_dot : tile.parameter_dot;
        row = std::copy_n(from + piece.first * kTileLanes, numbers, row);
      }
    }
    forward_->evaluate_tile({tile.t, inputs, nullptr, tile.out_dot, tile.lanes},
                            workspace + row_bytes(2 * plan_.inputs()));
  }
  std::size_t forward_workspace_bytes() const override {
    return forward_ ? row_bytes(2 * plan_.inputs()) + forward_->workspace_bytes() : 0;
  }

  std::size_t weights() const override { return plan_.weights(); }
  void set_weights(std::span<const T> weights) override {
    plan_.set_weights(weights);
    weights_.assign(weights.begin(), weights.end());
    forward_.reset();
  }
  void accumulate(std::span<const RecordedEvaluation> evaluations, T* gradient) const override {
    constexpr std::size_t kAtOnce = 64;  // as the plan takes them
    typename TrainableGraphPlan<T>::ReversedTile tiles[kAtOnce];
    for (; !evaluations.empty(); evaluations = evaluations.subspan(std::min(kAtOnce, evaluations.size()))) {
      const std::size_t count = std::min(kAtOnce, evaluations.size());
      for (std::size_t i = 0; i < count; ++i)
        tiles[i] = {reinterpret_cast<const T*>(evaluations[i].cotangents), evaluations[i].lanes};
      plan_.accumulate({tiles, count}, gradient);
    }
  }

 private:
  static std::size_t row_bytes(std::size_t rows) { return rows * kTileLanes * sizeof(T); }
  // What the plan's input ports take; returns where it ends.
  T* gather(const double* t, const T* in, const T* parameters, T* row) const {
    row = gather_inputs(pieces_, t, in, parameters, row);
    for (const GraphPiece& piece : directions_) {
      const std::size_t numbers = piece.count * kTileLanes;
      if (piece.source == GraphSource::parameters) {
        row = std::fill_n(row, numbers, T(0));
      } else {
        const std::size_t first = piece.source == GraphSource::time ? 2 * components_ : components_ + piece.first;
        row = std::copy_n(in + first * kTileLanes, numbers, row);
      }
    }
    return row;
  }

  GraphPieces pieces_, directions_;
  std::size_t components_;
  std::optional<Source> source_;
  TrainableGraphPlan<T> plan_;
  std::vector<double> weights_;  // empty: the graph's own
  std::optional<GraphPlan<T>> forward_;
  GraphPieces moved_;  // of the ports along whose directions it goes
};

}  // namespace

template <class T>
std::shared_ptr<DifferentiableTile<T>> reverse_graph(const graph::Graph& graph, const GraphPieces& pieces,
                                                     const graph::WeightPlaces& places, CpuTarget target) {
  return std::make_shared<ReverseGraph<T>>(TrainableGraphPlan<T>::compile(graph, places, target), pieces, GraphPieces(),
                                           graph.outputs[0].width,
                                           typename ReverseGraph<T>::Source{graph, places, target});
}
template std::shared_ptr<DifferentiableTile<float>> reverse_graph(const graph::Graph&, const GraphPieces&,
                                                                  const graph::WeightPlaces&, CpuTarget);
template std::shared_ptr<DifferentiableTile<double>> reverse_graph(const graph::Graph&, const GraphPieces&,
                                                                   const graph::WeightPlaces&, CpuTarget);

template <class T>
std::shared_ptr<DifferentiableTile<T>> directional_graph(const graph::Graph& graph, const GraphPieces& pieces,
                                                         std::size_t components, const graph::WeightPlaces& places,
                                                         CpuTarget target) {
  std::vector<bool> moved;
  GraphPieces directions;
  for (const PortPieces& port : pieces_of_ports(graph, pieces)) {
    moved.push_back(any_of(port, [](GraphSource source) { return source != GraphSource::parameters; }));
    if (moved.back()) directions.insert(directions.end(), port.pieces.begin(), port.pieces.end());
  }
  auto plan = TrainableGraphPlan<T>::compile_tangent(graph::tangent_graph(graph, moved), places, target);
  return std::make_shared<ReverseGraph<T>>(std::move(plan), pieces, std::move(directions), components, std::nullopt);
}
template std::shared_ptr<DifferentiableTile<float>> directional_graph(const graph::Graph&, const GraphPieces&,
                                                                      std::size_t, const graph::WeightPlaces&,
                                                                      CpuTarget);
template std::shared_ptr<DifferentiableTile<double>> directional_graph(const graph::Graph&, const GraphPieces&,
                                                                       std::size_t, const graph::WeightPlaces&,
                                                                       CpuTarget);

}  // namespace lockstep::ode::detail

#include "lockstep/ode/detail/reverse_graph.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/kernels/graph/trainable_plan.h"
#include "lockstep/ode/detail/guarded_tile.h"

namespace lockstep::ode::detail {
namespace {

// Nothing is recorded: the transpose runs the net again.
template <class T>
class ReverseGraph final : public DifferentiableTile<T> {
 public:
  // `directions`: the pieces of those ports whose directions the plan reads too; they lie behind the state.
  ReverseGraph(TrainableGraphPlan<T> plan, GraphPieces pieces, GraphPieces directions, std::size_t components)
      : pieces_(std::move(pieces)),
        directions_(std::move(directions)),
        components_(components),
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
                                      workspace + row_bytes(plan_.inputs() + plan_.outputs()));
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

  std::size_t weights() const override { return plan_.weights(); }
  void set_weights(std::span<const T> weights) override { plan_.set_weights(weights); }
  void accumulate(std::span<const RecordedEvaluation> evaluations, T* gradient) const override {
    constexpr std::size_t kAtOnce = 64;  // as the plan takes them
    const T* cotangents[kAtOnce];
    for (; !evaluations.empty(); evaluations = evaluations.subspan(std::min(kAtOnce, evaluations.size()))) {
      const std::size_t count = std::min(kAtOnce, evaluations.size());
      for (std::size_t i = 0; i < count; ++i) cotangents[i] = reinterpret_cast<const T*>(evaluations[i].cotangents);
      plan_.accumulate({cotangents, count}, gradient);
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
  TrainableGraphPlan<T> plan_;
};

}  // namespace

template <class T>
std::shared_ptr<DifferentiableTile<T>> reverse_graph(const graph::Graph& graph, const GraphPieces& pieces,
                                                     const graph::WeightPlaces& places, CpuTarget target) {
  return std::make_shared<ReverseGraph<T>>(TrainableGraphPlan<T>::compile(graph, places, target), pieces, GraphPieces(),
                                           graph.outputs[0].width);
}
template std::shared_ptr<DifferentiableTile<float>> reverse_graph(const graph::Graph&, const GraphPieces&,
                                                                  const graph::WeightPlaces&, CpuTarget);
template std::shared_ptr<DifferentiableTile<double>> reverse_graph(const graph::Graph&, const GraphPieces&,
                                                                   const graph::WeightPlaces&, CpuTarget);

// Pieces fill the ports one after another, none lies in two of them.
template <class T>
std::shared_ptr<DifferentiableTile<T>> directional_graph(const graph::Graph& graph, const GraphPieces& pieces,
                                                         std::size_t components, const graph::WeightPlaces& places,
                                                         CpuTarget target) {
  std::vector<bool> moved;
  GraphPieces directions;
  auto piece = pieces.begin();
  for (const graph::Port& port : graph.inputs) {
    const auto first = piece;
    for (std::size_t width = 0; width < port.width && piece != pieces.end(); ++piece) width += piece->count;
    moved.push_back(
        std::any_of(first, piece, [](const GraphPiece& of_port) { return of_port.source != GraphSource::parameters; }));
    if (moved.back()) directions.insert(directions.end(), first, piece);
  }
  auto plan = TrainableGraphPlan<T>::compile_tangent(graph::tangent_graph(graph, moved), places, target);
  return std::make_shared<ReverseGraph<T>>(std::move(plan), pieces, std::move(directions), components);
}
template std::shared_ptr<DifferentiableTile<float>> directional_graph(const graph::Graph&, const GraphPieces&,
                                                                      std::size_t, const graph::WeightPlaces&,
                                                                      CpuTarget);
template std::shared_ptr<DifferentiableTile<double>> directional_graph(const graph::Graph&, const GraphPieces&,
                                                                       std::size_t, const graph::WeightPlaces&,
                                                                       CpuTarget);

}  // namespace lockstep::ode::detail

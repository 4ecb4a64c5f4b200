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
  ReverseGraph(const graph::Graph& graph, GraphPieces pieces, const graph::WeightPlaces& places, CpuTarget target)
      : pieces_(std::move(pieces)), plan_(TrainableGraphPlan<T>::compile(graph, places, target)) {}

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override {
    T* const inputs = reinterpret_cast<T*>(workspace);
    gather_inputs(pieces_, tile.t, tile.in, tile.parameters, inputs);
    plan_.evaluate_tile({tile.t, inputs, nullptr, tile.out, tile.lanes}, workspace + row_bytes(plan_.inputs()));
  }
  std::size_t workspace_bytes() const override { return row_bytes(plan_.inputs()) + plan_.workspace_bytes(); }
  std::size_t cotangent_bytes() const override { return round_up_to_alignment(plan_.cotangent_numbers() * sizeof(T)); }
  std::string description() const override {
    return "trainable graph, " + std::to_string(plan_.weights()) + " weights, " + plan_.description();
  }

  void reverse(const ReverseTileView<T>& tile, std::byte* workspace) const override {
    T* const read = reinterpret_cast<T*>(workspace);
    T* const out_bar = gather_inputs(pieces_, tile.t, tile.in, tile.parameters, read);
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

  GraphPieces pieces_;
  TrainableGraphPlan<T> plan_;
};

}  // namespace

template <class T>
std::shared_ptr<DifferentiableTile<T>> reverse_graph(const graph::Graph& graph, const GraphPieces& pieces,
                                                     const graph::WeightPlaces& places, CpuTarget target) {
  return std::make_shared<ReverseGraph<T>>(graph, pieces, places, target);
}
template std::shared_ptr<DifferentiableTile<float>> reverse_graph(const graph::Graph&, const GraphPieces&,
                                                                  const graph::WeightPlaces&, CpuTarget);
template std::shared_ptr<DifferentiableTile<double>> reverse_graph(const graph::Graph&, const GraphPieces&,
                                                                   const graph::WeightPlaces&, CpuTarget);

}  // namespace lockstep::ode::detail

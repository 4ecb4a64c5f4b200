#include "lockstep/ode/detail/reverse_graph.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/plan.h"
#include "lockstep/kernels/mlp/reverse.h"
#include "lockstep/ode/detail/guarded_tile.h"

namespace lockstep::ode::detail {
namespace {

std::size_t round_up(std::size_t numbers) { return (numbers + 15) / 16 * 16; }

// One layer's sum of outer products over tiles: a net of its own, whose record and cotangents are the layer's.
template <class T>
struct Layer {
  explicit Layer(const graph::Dense& dense, CpuTarget target) : plan(compile(dense, target)) {}
  static TrainablePlan<T> compile(const graph::Dense& dense, CpuTarget target) {
    Mlp mlp;
    mlp.layers.push_back({dense.inputs, dense.outputs, dense.weights, dense.bias, {}});
    return TrainablePlan<T>::compile(mlp, target);
  }
  std::size_t record_numbers() const { return round_up(plan.tile_activation_numbers()); }
  std::size_t numbers() const { return record_numbers() + round_up(plan.tile_cotangent_numbers()); }

  TrainablePlan<T> plan;
  std::size_t first = 0;  // of its numbers among the cotangents
  std::size_t place = 0;  // of its weights among those that are trained
};

// Nothing is recorded: the transpose runs the net again. What it leaves for the weights are the layers' inputs and the
// cotangents of their sums.
template <class T>
class ReverseGraph final : public DifferentiableTile<T> {
 public:
  ReverseGraph(graph::Graph graph, GraphPieces pieces, graph::WeightPlaces places, CpuTarget target)
      : graph_(std::move(graph)), pieces_(std::move(pieces)), places_(std::move(places)), target_(target) {
    for (const graph::Port& port : graph_.inputs) inputs_ += port.width;
    outputs_ = graph_.outputs[0].width;
    made_ = inputs_;
    std::size_t most_outputs = 0, next = 0;
    for (const graph::Node& node : graph_.nodes) {
      const auto* dense = std::get_if<graph::Dense>(&node.operation);
      if (!dense) continue;
      const std::size_t place = places_[next++];
      if (place == graph::kKept) continue;
      layers_.emplace_back(*dense, target);
      layers_.back().place = place;
      layers_.back().first = cotangents_;
      cotangents_ += layers_.back().numbers();
      made_ += dense->inputs + dense->outputs;
      most_outputs = std::max(most_outputs, dense->outputs);
      layer_scratch_ = std::max(layer_scratch_, round_up(layers_.back().plan.workspace_numbers()));
      weights_ = std::max(weights_, place + layers_.back().plan.parameter_count());
    }
    layer_scratch_ += most_outputs * kTileLanes;
    lower();
  }

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override {
    T* const inputs = reinterpret_cast<T*>(workspace);
    gather_inputs(pieces_, tile.t, tile.in, tile.parameters, inputs);
    forward_->evaluate_tile({tile.t, inputs, nullptr, tile.out, tile.lanes},
                            workspace + inputs_ * kTileLanes * sizeof(T));
  }
  std::size_t workspace_bytes() const override {
    return inputs_ * kTileLanes * sizeof(T) + forward_->workspace_bytes();
  }
  std::size_t cotangent_bytes() const override { return round_up_to_alignment(cotangents_ * sizeof(T)); }
  std::string description() const override {
    return "trainable graph, " + std::to_string(weights_) + " weights, " + forward_->description();
  }

  void reverse(const ReverseTileView<T>& tile, std::byte* workspace) const override {
    T* const read = reinterpret_cast<T*>(workspace);
    T* const out_bar = gather_inputs(pieces_, tile.t, tile.in, tile.parameters, read);
    std::copy_n(tile.out_bar, outputs_ * kTileLanes, out_bar);
    T* const made = read + (inputs_ + outputs_) * kTileLanes;
    T* const rest = made + made_ * kTileLanes;
    reverse_->evaluate_tile({tile.t, read, nullptr, made, kTileLanes}, reinterpret_cast<std::byte*>(rest));
    silence_unused_lanes(tile.out_bar, made);
    const T* row = made;
    for (const GraphPiece& piece : pieces_) {
      T* const to = piece.source == GraphSource::state        ? tile.in_bar
                    : piece.source == GraphSource::parameters ? tile.parameter_bar
                                                              : nullptr;
      const std::size_t numbers = piece.count * kTileLanes;
      for (std::size_t i = 0; to && i < numbers; ++i) to[piece.first * kTileLanes + i] += row[i];
      row += numbers;
    }
    T* const cotangents = reinterpret_cast<T*>(tile.cotangents);
    T* const sums = rest;
    for (const Layer<T>& layer : layers_) {
      T* const record = cotangents + layer.first;
      T* const scratch = rest + layer.plan.outputs() * kTileLanes;
      layer.plan.evaluate_tile({tile.t, row, nullptr, sums, kTileLanes}, record, scratch);
      row += layer.plan.inputs() * kTileLanes;
      layer.plan.reverse_tile(record, row, nullptr, record + layer.record_numbers(), kTileLanes, scratch);
      row += layer.plan.outputs() * kTileLanes;
    }
  }
  std::size_t reverse_workspace_bytes() const override {
    const std::size_t rows = (inputs_ + outputs_ + made_) * kTileLanes;
    return rows * sizeof(T) + std::max(reverse_->workspace_bytes(), layer_scratch_ * sizeof(T));
  }

  std::size_t weights() const override { return weights_; }
  void set_weights(std::span<const T> weights) override {
    const std::vector<double> numbers(weights.begin(), weights.end());
    graph::scatter_weights(numbers, places_, graph_);
    lower();
  }
  void accumulate(std::span<const RecordedEvaluation> evaluations, T* gradient) const override {
    constexpr std::size_t kAtOnce = 64;
    RecordedTile<T> tiles[kAtOnce];
    for (; !evaluations.empty(); evaluations = evaluations.subspan(std::min(kAtOnce, evaluations.size()))) {
      const std::size_t count = std::min(kAtOnce, evaluations.size());
      for (const Layer<T>& layer : layers_) {
        for (std::size_t i = 0; i < count; ++i) {
          const T* const record = reinterpret_cast<const T*>(evaluations[i].cotangents) + layer.first;
          tiles[i] = {record, record + layer.record_numbers(), kTileLanes};
        }
        layer.plan.accumulate_tiles({tiles, count}, gradient + layer.place);
      }
    }
  }

 private:
  // The layers' own plans keep the weights of the beginning: sums of outer products do not read them.
  void lower() {
    forward_ = GraphPlan<T>::compile(graph_, target_);
    graph::Graph reverse = graph::layer_vjp_graph(graph_);
    // Nobody reads the net's own output here, nor what layers leave that are not trained.
    const std::size_t first = reverse.outputs.size() - 2 * places_.size();
    for (std::size_t layer = places_.size(); layer-- > 0;) {
      if (places_[layer] != graph::kKept) continue;
      const auto pair = reverse.outputs.begin() + static_cast<std::ptrdiff_t>(first + 2 * layer);
      reverse.outputs.erase(pair, pair + 2);
    }
    reverse.outputs.erase(reverse.outputs.begin());
    reverse_ = GraphPlan<T>::compile(reverse, target_);
  }

  // Lanes that do not count have zeros for cotangents, and inputs at which a derivative may be infinite: their products
  // are NaN, and must be nothing.
  void silence_unused_lanes(const T* out_bar, T* made) const {
    for (int lane = 0; lane < kTileLanes; ++lane) {
      bool used = false;
      for (std::size_t j = 0; j < outputs_; ++j) used = used || out_bar[j * kTileLanes + lane] != 0;
      if (used) continue;
      for (std::size_t row = 0; row < made_; ++row) made[row * kTileLanes + lane] = 0;
    }
  }

  graph::Graph graph_;
  GraphPieces pieces_;
  graph::WeightPlaces places_;
  CpuTarget target_;
  std::size_t inputs_ = 0, outputs_ = 0, weights_ = 0;
  std::size_t made_ = 0;           // rows: cotangents of the inputs, then each layer's inputs and cotangents
  std::size_t cotangents_ = 0;     // numbers
  std::size_t layer_scratch_ = 0;  // numbers
  std::vector<Layer<T>> layers_;
  std::optional<GraphPlan<T>> forward_, reverse_;
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

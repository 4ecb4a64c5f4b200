#include "lockstep/kernels/graph/trainable_plan.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/plan.h"
#include "lockstep/kernels/mlp/reverse.h"

namespace lockstep {
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

}  // namespace

template <class T>
struct TrainableGraphPlan<T>::State {
  State(graph::Graph graph_of, graph::WeightPlaces places_of, CpuTarget target_of)
      : graph(std::move(graph_of)), places(std::move(places_of)), target(target_of) {
    for (const graph::Port& port : graph.inputs) inputs += port.width;
    outputs = graph.outputs[0].width;
    made = inputs;
    std::size_t most_outputs = 0, next = 0;
    for (const graph::Node& node : graph.nodes) {
      const auto* dense = std::get_if<graph::Dense>(&node.operation);
      if (!dense) continue;
      const std::size_t place = places[next++];
      if (place == graph::kKept) continue;
      layers.emplace_back(*dense, target);
      layers.back().place = place;
      layers.back().first = cotangents;
      cotangents += layers.back().numbers();
      made += dense->inputs + dense->outputs;
      most_outputs = std::max(most_outputs, dense->outputs);
      layer_scratch = std::max(layer_scratch, round_up(layers.back().plan.workspace_numbers()));
      weights = std::max(weights, place + layers.back().plan.parameter_count());
    }
    layer_scratch += most_outputs * kTileLanes;
    lower();
  }

  // The layers' own plans keep the weights of the beginning: sums of outer products do not read them.
  void lower() {
    forward = GraphPlan<T>::compile(graph, target);
    graph::Graph transposed = graph::layer_vjp_graph(graph);
    // Nobody reads the net's own output here, nor what layers leave that are not trained.
    const std::size_t first = transposed.outputs.size() - 2 * places.size();
    for (std::size_t layer = places.size(); layer-- > 0;) {
      if (places[layer] != graph::kKept) continue;
      const auto pair = transposed.outputs.begin() + static_cast<std::ptrdiff_t>(first + 2 * layer);
      transposed.outputs.erase(pair, pair + 2);
    }
    transposed.outputs.erase(transposed.outputs.begin());
    reverse = GraphPlan<T>::compile(transposed, target);
  }

  // Lanes that do not count have zeros for cotangents, and inputs at which a derivative may be infinite: their products
  // are NaN, and must be nothing.
  void silence_unused_lanes(const T* out_bar, T* rows) const {
    for (int lane = 0; lane < kTileLanes; ++lane) {
      bool used = false;
      for (std::size_t j = 0; j < outputs; ++j) used = used || out_bar[j * kTileLanes + lane] != 0;
      if (used) continue;
      for (std::size_t row = 0; row < made; ++row) rows[row * kTileLanes + lane] = 0;
    }
  }

  graph::Graph graph;
  graph::WeightPlaces places;
  CpuTarget target;
  std::size_t inputs = 0, outputs = 0, weights = 0;
  std::size_t made = 0;           // rows: cotangents of the inputs, then each layer's inputs and cotangents
  std::size_t cotangents = 0;     // numbers
  std::size_t layer_scratch = 0;  // numbers
  std::vector<Layer<T>> layers;
  std::optional<GraphPlan<T>> forward, reverse;
};

template <class T>
TrainableGraphPlan<T>::TrainableGraphPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
template <class T>
TrainableGraphPlan<T>::TrainableGraphPlan(TrainableGraphPlan&&) noexcept = default;
template <class T>
TrainableGraphPlan<T>& TrainableGraphPlan<T>::operator=(TrainableGraphPlan&&) noexcept = default;
template <class T>
TrainableGraphPlan<T>::~TrainableGraphPlan() = default;

template <class T>
TrainableGraphPlan<T> TrainableGraphPlan<T>::compile(graph::Graph graph, graph::WeightPlaces places, CpuTarget target) {
  const StandardArithmetic arithmetic;
  return TrainableGraphPlan(std::make_unique<State>(std::move(graph), std::move(places), target));
}

template <class T>
std::size_t TrainableGraphPlan<T>::inputs() const {
  return state_->inputs;
}
template <class T>
std::size_t TrainableGraphPlan<T>::outputs() const {
  return state_->outputs;
}
template <class T>
std::size_t TrainableGraphPlan<T>::weights() const {
  return state_->weights;
}
template <class T>
std::string TrainableGraphPlan<T>::description() const {
  return state_->forward->description();
}

template <class T>
void TrainableGraphPlan<T>::set_weights(std::span<const T> weights) {
  const StandardArithmetic arithmetic;
  const std::vector<double> numbers(weights.begin(), weights.end());
  graph::scatter_weights(numbers, state_->places, state_->graph);
  state_->lower();
}

template <class T>
void TrainableGraphPlan<T>::evaluate_tile(const TileView<T>& tile, std::byte* workspace) const {
  state_->forward->evaluate_tile(tile, workspace);
}
template <class T>
std::size_t TrainableGraphPlan<T>::workspace_bytes() const {
  return state_->forward->workspace_bytes();
}

template <class T>
const T* TrainableGraphPlan<T>::reverse_tile(const T* read, T* cotangents, std::byte* workspace) const {
  const State& state = *state_;
  T* const made = reinterpret_cast<T*>(workspace);
  T* const rest = made + state.made * kTileLanes;
  state.reverse->evaluate_tile({nullptr, read, nullptr, made, kTileLanes}, reinterpret_cast<std::byte*>(rest));
  state.silence_unused_lanes(read + state.inputs * kTileLanes, made);
  const T* row = made + state.inputs * kTileLanes;
  for (const Layer<T>& layer : state.layers) {
    T* const record = cotangents + layer.first;
    T* const scratch = rest + layer.plan.outputs() * kTileLanes;
    layer.plan.evaluate_tile({nullptr, row, nullptr, rest, kTileLanes}, record, scratch);
    row += layer.plan.inputs() * kTileLanes;
    layer.plan.reverse_tile(record, row, nullptr, record + layer.record_numbers(), kTileLanes, scratch);
    row += layer.plan.outputs() * kTileLanes;
  }
  return made;
}
template <class T>
std::size_t TrainableGraphPlan<T>::cotangent_numbers() const {
  return state_->cotangents;
}
template <class T>
std::size_t TrainableGraphPlan<T>::reverse_workspace_bytes() const {
  return state_->made * kTileLanes * sizeof(T) +
         std::max(state_->reverse->workspace_bytes(), state_->layer_scratch * sizeof(T));
}

template <class T>
void TrainableGraphPlan<T>::accumulate(std::span<const T* const> cotangents, T* gradient) const {
  constexpr std::size_t kAtOnce = 64;
  RecordedTile<T> tiles[kAtOnce];
  for (; !cotangents.empty(); cotangents = cotangents.subspan(std::min(kAtOnce, cotangents.size()))) {
    const std::size_t count = std::min(kAtOnce, cotangents.size());
    for (const Layer<T>& layer : state_->layers) {
      for (std::size_t i = 0; i < count; ++i) {
        const T* const record = cotangents[i] + layer.first;
        tiles[i] = {record, record + layer.record_numbers(), kTileLanes};
      }
      layer.plan.accumulate_tiles({tiles, count}, gradient + layer.place);
    }
  }
}

template class TrainableGraphPlan<float>;
template class TrainableGraphPlan<double>;

}  // namespace lockstep

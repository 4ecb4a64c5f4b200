#include "lockstep/kernels/graph/trainable_plan.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/detail/program.h"
#include "lockstep/kernels/graph/detail/require_ports.h"
#include "lockstep/kernels/graph/plan.h"
#include "lockstep/kernels/mlp/detail/reverse_packed.h"
#include "lockstep/kernels/mlp/reverse.h"

namespace lockstep {
namespace {

using graph::Program;
using graph::Tile;

// One layer's sum of outer products over tiles: that of a net of its own, whose record and cotangents are the layer's.
template <class T>
struct Layer {
  explicit Layer(const graph::Dense& dense, CpuTarget target) : plan(compile(dense, target)) {}
  static TrainablePlan<T> compile(const graph::Dense& dense, CpuTarget target) {
    Mlp mlp;
    mlp.layers.push_back({dense.inputs, dense.outputs, dense.weights, dense.bias, {}});
    return TrainablePlan<T>::compile(mlp, target);
  }
  std::size_t read_numbers() const { return plan.inputs() * kTileLanes; }
  std::size_t bar_numbers() const { return plan.outputs() * kTileLanes; }

  TrainablePlan<T> plan;
  bool has_bias;
  std::size_t place;     // of its weights among those that are trained
  std::size_t first;     // of its numbers among a tile's cotangents: what it reads, then its cotangents
  std::size_t read = 0;  // of what it reads among a tile's values
  std::size_t bar = 0;   // likewise of its cotangents
};

// Where a dense node's numbers come from when they change.
template <class T>
struct Source {
  std::size_t place;    // among those that are trained; kKept
  std::vector<T> kept;  // weights, then bias, of one that is not
  std::size_t inputs, outputs;
  std::vector<T> no_bias;  // zeros, of one that has none among the numbers; else empty

  mlp::LayerPart<T> part(std::span<const T> weights, bool transposed) const {
    const T* const first = place == graph::kKept ? kept.data() : weights.data() + place;
    if (transposed) return {first, nullptr, inputs};
    return {first, no_bias.empty() ? first + inputs * outputs : no_bias.data(), outputs};
  }
};

// Steps of a program over the lanes of a tile, whose rows are kTileLanes apart. A register is computed as a whole.
template <class T>
void run_lanes(const Program<T>& program, std::size_t first_step, std::size_t end_step, int lanes, T* values,
               std::byte* scratch) {
  const std::size_t width = program.kernels->lanes, strip = std::min<std::size_t>(2 * width, kTileLanes);
  const auto wanted = static_cast<std::size_t>(lanes);
  for (std::size_t first = 0; first < wanted; first += strip) {
    const std::size_t registers = (std::min(strip, wanted - first) + width - 1) / width;
    const Tile<T> tile{{values + first}, kTileLanes, registers, registers * width, reinterpret_cast<T*>(scratch)};
    for (std::size_t step = first_step; step < end_step; ++step) program.steps[step].run(program.steps[step], tile);
  }
}

// [feature][lane] of the first `ports` input ports, one after another.
template <class T>
void load_ports(const Program<T>& program, std::size_t ports, const T* from, T* values) {
  for (const auto& [port, row, base] : program.loads) {
    if (port >= ports) continue;
    const T* rows = from;
    for (std::size_t before = 0; before < port; ++before) rows += program.inputs[before].width * kTileLanes;
    std::copy_n(rows, program.inputs[port].width * kTileLanes, values + row * kTileLanes);
  }
}

}  // namespace

template <class T>
struct TrainableGraphPlan<T>::State {
  // without_bias: [dense node]; empty: none. `wanted`: of the input ports, the first so many have cotangents made.
  State(const graph::Graph& graph, graph::WeightPlaces places, CpuTarget target, std::size_t wanted,
        const std::vector<bool>& without_bias = {})
      : ports(graph.inputs.size()), inputs(graph::widths_of(graph.inputs)), outputs(graph.outputs[0].width) {
    std::size_t next = 0;
    for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
      const auto* dense = std::get_if<graph::Dense>(&graph.nodes[node].operation);
      if (!dense) continue;
      const bool has_bias = without_bias.empty() || !without_bias[next];
      const std::size_t place = places[next++];
      std::vector<T> no_bias(has_bias ? 0 : dense->outputs);
      Source<T>& source = sources.emplace_back(Source<T>{place, {}, dense->inputs, dense->outputs, std::move(no_bias)});
      source_of.resize(graph.nodes.size(), 0);
      source_of[node] = sources.size() - 1;
      if (place == graph::kKept) {
        source.kept.assign(dense->weights.begin(), dense->weights.end());
        source.kept.insert(source.kept.end(), dense->bias.begin(), dense->bias.end());
        continue;
      }
      Layer<T>& layer = layers.emplace_back(*dense, target);
      layer.place = place;
      layer.has_bias = has_bias;
      layer.first = cotangents;
      cotangents += layer.read_numbers() + layer.bar_numbers();
      weights = std::max(weights, place + layer.plan.parameter_count());
    }
    forward = graph::lower<T>(graph, target);
    graph::LayerVjp vjp = graph::layer_vjp_graph(graph);
    net_nodes = graph.nodes.size();
    source_of.resize(vjp.graph.nodes.size(), 0);
    for (std::size_t i = 0; i < vjp.transposes.size(); ++i) {
      if (vjp.transposes[i] != graph::LayerVjp::kNone) source_of[vjp.transposes[i]] = i;
    }
    lower_reverse(std::move(vjp.graph), places, target, wanted);
  }

  void lower_reverse(graph::Graph vjp, const graph::WeightPlaces& places, CpuTarget target, std::size_t wanted) {
    // Ports of layers that are not trained show what nobody reads, as those of the inputs' cotangents may.
    const std::size_t first = 1 + ports;
    std::vector<graph::Port> shown(vjp.outputs.begin(), vjp.outputs.begin() + static_cast<std::ptrdiff_t>(1 + wanted));
    const std::size_t first_layer = shown.size();
    for (std::size_t layer = 0; layer < places.size(); ++layer) {
      if (places[layer] == graph::kKept) continue;
      shown.push_back(vjp.outputs[first + 2 * layer]);
      shown.push_back(vjp.outputs[first + 2 * layer + 1]);
    }
    vjp.outputs = std::move(shown);
    reverse = graph::lower<T>(vjp, target);
    // Steps stand in the order of the nodes whose operations they carry out: the net's own come first.
    const auto of_net = [this](std::size_t node) { return node < net_nodes; };
    const std::vector<std::size_t>& nodes = reverse.step_nodes;
    if (!std::is_partitioned(nodes.begin(), nodes.end(), of_net)) {
      throw Error(ErrorKind::unsupported,
                  {"the net", "a step of the way back before one of its own", "all of its own steps first",
                   "tell of this net: it is a fault of Lockstep"});
    }
    forward_steps = static_cast<std::size_t>(std::partition_point(nodes.begin(), nodes.end(), of_net) - nodes.begin());
    // Output ports last to the end: where they stand is where they can be read.
    const auto place_of = [&](std::size_t port) { return reverse.stores[port].row * kTileLanes; };
    out = place_of(0);
    for (std::size_t port = 1; port < first_layer; ++port) {
      input_bars.push_back({place_of(port), reverse.outputs[port].width * kTileLanes});
    }
    for (std::size_t i = 0; i < layers.size(); ++i) {
      layers[i].read = place_of(first_layer + 2 * i);
      layers[i].bar = place_of(first_layer + 2 * i + 1);
    }
    out_bar = reverse.rows * kTileLanes;
    for (const auto& [port, row, base] : reverse.loads) {
      if (port == ports) out_bar = row * kTileLanes;
    }
  }

  // The tiles' copies of the weights: steps over lanes read no others.
  void replace_weights(Program<T>& program, std::span<const T> numbers) {
    for (std::size_t i = 0; i < program.layers.size(); ++i) {
      parts.clear();
      bool trained = false;
      for (const std::size_t node : program.layer_nodes[i]) {
        const Source<T>& source = sources[source_of[node]];
        parts.push_back(source.part(numbers, node >= net_nodes));
        trained = trained || source.place != graph::kKept;
      }
      if (trained) mlp::repack_layer<T>(*program.layers[i], parts, merged);
    }
  }

  // The cotangents follow where no layer's gradient depends on them.
  std::size_t value_numbers() const { return std::max(reverse.rows * kTileLanes, out_bar + outputs * kTileLanes); }

  // Those of the first `lanes` lanes whose cotangents, [output][lane], are all zero.
  std::uint32_t unused_lanes(const T* bars, int lanes) const {
    std::uint32_t unused = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      bool used = false;
      for (std::size_t j = 0; j < outputs && !used; ++j) used = bars[j * kTileLanes + lane] != 0;
      if (!used) unused |= std::uint32_t{1} << lane;
    }
    return unused;
  }

  // The net's own steps, then those of the way back, over the first `lanes`.
  void run_forth(int lanes, const T* read, T* values, std::byte* scratch) const {
    load_ports(reverse, ports, read, values);
    run_lanes(reverse, 0, forward_steps, lanes, values, scratch);
  }
  // `wanted` lanes have cotangents; those after the first `lanes` of them are zero.
  void run_back(int wanted, int lanes, T* values, std::byte* scratch) const {
    std::uint32_t unused = unused_lanes(values + out_bar, wanted);  // before steps write over cotangents
    const int read = read_lanes(wanted);
    for (int lane = wanted; lane < read; ++lane) unused |= std::uint32_t{1} << lane;
    run_lanes(reverse, forward_steps, reverse.steps.size(), lanes, values, scratch);
    silence(unused, values);
  }
  // Of the first `lanes` lanes those whose numbers sums over lanes read: whole groups of slots.
  static int read_lanes(int lanes) { return static_cast<int>(mlp::padded<T>(static_cast<std::size_t>(lanes))); }

  // Lanes that do not count have zeros for cotangents, and inputs at which a derivative may be infinite: their products
  // are NaN, and must be nothing.
  void silence(std::uint32_t unused, T* values) const {
    for (; unused != 0; unused &= unused - 1) {
      const int lane = std::countr_zero(unused);
      const auto silence_rows = [&](std::size_t first, std::size_t count) {
        for (std::size_t i = 0; i < count; i += kTileLanes) values[first + i + lane] = 0;
      };
      for (const auto& [first, count] : input_bars) silence_rows(first, count);
      for (const Layer<T>& layer : layers) {
        silence_rows(layer.read, layer.read_numbers());
        silence_rows(layer.bar, layer.bar_numbers());
      }
    }
  }

  // gradient += that of the tiles, whose layers' numbers `find(layer, tile)` knows: what it reads, its cotangents.
  template <class Find>
  void accumulate(std::size_t tiles, T* gradient, const Find& find) const {
    constexpr std::size_t kAtOnce = 64;
    RecordedTile<T> recorded[kAtOnce];
    for (std::size_t first = 0; first < tiles; first += kAtOnce) {
      const std::size_t count = std::min(kAtOnce, tiles - first);
      for (const Layer<T>& layer : layers) {
        for (std::size_t i = 0; i < count; ++i) recorded[i] = find(layer, first + i);
        add_layer(layer, {recorded, count}, gradient + layer.place);
      }
    }
  }
  void add_layer(const Layer<T>& layer, std::span<const RecordedTile<T>> tiles, T* gradient) const {
    if (layer.has_bias) return layer.plan.accumulate_tiles(tiles, gradient);
    const std::size_t count = layer.plan.parameter_count();
    AlignedBuffer<T> sum(count);
    std::copy_n(gradient, count, sum.data());
    layer.plan.accumulate_tiles(tiles, sum.data());
    std::copy_n(sum.data(), layer.plan.inputs() * layer.plan.outputs(), gradient);
  }

  std::size_t ports, inputs, outputs, weights = 0;
  std::size_t cotangents = 0;          // numbers
  std::vector<Source<T>> sources;      // [dense node of the net]
  std::vector<std::size_t> source_of;  // [node of the reverse graph], whose first ones are the net's
  std::size_t net_nodes = 0;
  std::vector<Layer<T>> layers;  // that are trained
  Program<T> forward, reverse;
  std::size_t forward_steps = 0;  // of reverse: those that make the net's values
  std::size_t out = 0;            // among a tile's values, as all of these
  std::size_t out_bar = 0;
  struct Rows {
    std::size_t first, count;
  };
  std::vector<Rows> input_bars;
  std::vector<mlp::LayerPart<T>> parts;
  std::vector<T> merged;
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
TrainableGraphPlan<T> TrainableGraphPlan<T>::compile(graph::Graph graph, graph::WeightPlaces places, CpuTarget target,
                                                     Gradients gradients) {
  const StandardArithmetic arithmetic;
  const std::size_t wanted = gradients == Gradients::of_weights ? 0 : graph.inputs.size();
  return TrainableGraphPlan(std::make_unique<State>(graph, std::move(places), target, wanted));
}

template <class T>
TrainableGraphPlan<T> TrainableGraphPlan<T>::compile_tangent(const graph::Tangent& tangent,
                                                             const graph::WeightPlaces& places, CpuTarget target) {
  const StandardArithmetic arithmetic;
  graph::WeightPlaces of_layers;
  std::vector<bool> without_bias;
  for (const auto& [of, of_direction] : tangent.layers) {
    of_layers.push_back(places[of]);
    without_bias.push_back(of_direction);
  }
  return TrainableGraphPlan(
      std::make_unique<State>(tangent.graph, std::move(of_layers), target, tangent.given_ports, without_bias));
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
  return graph::description_of(state_->forward);
}

template <class T>
void TrainableGraphPlan<T>::set_weights(std::span<const T> weights, Paths paths) {
  const StandardArithmetic arithmetic;
  if (weights.size() != state_->weights) {
    graph::refuse_argument("weights", weights.size(), state_->weights, "give those of every dense node");
  }
  if (paths == Paths::both) state_->replace_weights(state_->forward, weights);
  state_->replace_weights(state_->reverse, weights);
}

template <class T>
void TrainableGraphPlan<T>::evaluate_tile(const TileView<T>& tile, std::byte* workspace) const {
  const Program<T>& program = state_->forward;
  T* const values = reinterpret_cast<T*>(workspace);
  load_ports(program, state_->ports, tile.in, values);
  run_lanes(program, 0, program.steps.size(), tile.lanes, values, workspace + program.rows * kTileLanes * sizeof(T));
  const T* const made = values + program.stores[0].row * kTileLanes;
  for (std::size_t at = 0; at < state_->outputs * kTileLanes; at += kTileLanes) {
    std::copy_n(made + at, static_cast<std::size_t>(tile.lanes), tile.out + at);
  }
}
template <class T>
std::size_t TrainableGraphPlan<T>::workspace_bytes() const {
  return (state_->forward.rows * kTileLanes + state_->forward.scratch) * sizeof(T);
}

template <class T>
const T* TrainableGraphPlan<T>::reverse_tile(const T* read, T* cotangents, std::byte* workspace, int wanted) const {
  const State& state = *state_;
  T* const input_bars = reinterpret_cast<T*>(workspace);
  T* const values = input_bars + state.inputs * kTileLanes;
  std::byte* const scratch = reinterpret_cast<std::byte*>(values + state.value_numbers());
  const T* const bars = read + state.inputs * kTileLanes;
  // Of those behind the last lane that counts nothing is looked at.
  const std::uint32_t behind = wanted == kTileLanes ? 0 : ~std::uint32_t{0} << wanted;
  const int lanes = kTileLanes - std::countl_one(state.unused_lanes(bars, wanted) | behind);
  state.run_forth(lanes, read, values, scratch);
  std::copy_n(bars, state.outputs * kTileLanes, out_bar(values));
  state.run_back(wanted, lanes, values, scratch);
  const auto copy_rows = [held = static_cast<std::size_t>(State::read_lanes(wanted))](const T* from, std::size_t count,
                                                                                      T* to) {
    for (std::size_t row = 0; row < count; row += kTileLanes) std::copy_n(from + row, held, to + row);
    return to + count;
  };
  T* to = input_bars;
  for (const auto& [first, count] : state.input_bars) to = copy_rows(values + first, count, to);
  for (const Layer<T>& layer : state.layers) {
    T* const bars = copy_rows(values + layer.read, layer.read_numbers(), cotangents + layer.first);
    copy_rows(values + layer.bar, layer.bar_numbers(), bars);
  }
  return input_bars;
}
template <class T>
std::size_t TrainableGraphPlan<T>::cotangent_numbers() const {
  return state_->cotangents;
}
template <class T>
std::size_t TrainableGraphPlan<T>::reverse_workspace_bytes() const {
  return (state_->inputs * kTileLanes + value_numbers()) * sizeof(T) + scratch_bytes();
}

template <class T>
void TrainableGraphPlan<T>::accumulate(std::span<const ReversedTile> tiles, T* gradient) const {
  state_->accumulate(tiles.size(), gradient, [&](const Layer<T>& layer, std::size_t tile) -> RecordedTile<T> {
    const T* const read = tiles[tile].cotangents + layer.first;
    return {read, read + layer.read_numbers(), tiles[tile].lanes};
  });
}

template <class T>
std::size_t TrainableGraphPlan<T>::value_numbers() const {
  return state_->value_numbers();
}
template <class T>
std::size_t TrainableGraphPlan<T>::scratch_bytes() const {
  return state_->reverse.scratch * sizeof(T);
}

template <class T>
const T* TrainableGraphPlan<T>::forward(const T* inputs, T* values, std::byte* scratch) const {
  state_->run_forth(kTileLanes, inputs, values, scratch);
  return values + state_->out;
}
template <class T>
T* TrainableGraphPlan<T>::out_bar(T* values) const {
  return values + state_->out_bar;
}
template <class T>
void TrainableGraphPlan<T>::back(T* values, std::byte* scratch) const {
  state_->run_back(kTileLanes, kTileLanes, values, scratch);
}

template <class T>
void TrainableGraphPlan<T>::accumulate_values(std::span<const T* const> values, T* gradient) const {
  state_->accumulate(values.size(), gradient, [&](const Layer<T>& layer, std::size_t tile) -> RecordedTile<T> {
    return {values[tile] + layer.read, values[tile] + layer.bar, kTileLanes};
  });
}

template class TrainableGraphPlan<float>;
template class TrainableGraphPlan<double>;

}  // namespace lockstep

#include "lockstep/kernels/graph/regression.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/thread_count.h"
#include "lockstep/kernels/graph/trainable_plan.h"
#include "lockstep/kernels/mlp/detail/tiled_samples.h"

namespace lockstep {
namespace {

constexpr std::size_t kChunkTiles = 8;
constexpr std::size_t kMostSums = 64;

[[noreturn]] void refuse_rows(const char* field, std::string found, std::string expected, std::string remedy = {}) {
  throw Error(ErrorKind::invalid_argument, {field, std::move(found), std::move(expected), std::move(remedy)});
}

// rows[0] = the sum of all, in halves.
template <class Row, class Add>
void add_in_halves(std::vector<Row>& rows, std::size_t height, const Add& add) {
  while (height > 1) {
    const std::size_t half = (height + 1) / 2;
    for (std::size_t row = 0; row + half < height; ++row) add(rows[row], rows[row + half]);
    height = half;
  }
}

template <class T>
struct CostAndSlope {
  T cost, slope;
};
template <Residual kResidual, class T>
CostAndSlope<T> cost_of(T delta, T r) {
  const T size = std::abs(r);
  const T sign = r > 0 ? T(1) : r < 0 ? T(-1) : T(0);
  if constexpr (kResidual == Residual::squared) return {r * r, T(2) * r};
  if constexpr (kResidual == Residual::absolute) return {size, r == r ? sign : r};
  if (size <= delta) return {r * r * T(0.5), r};
  return {delta * (size - delta * T(0.5)), r == r ? sign * delta : r};
}

template <class T>
struct Costs {
  T scale;
  std::span<const T> weights, deltas;  // [output]
};
// Of a tile's outputs [output][lane], residuals times `factors` unless that is null; `bars`, the same, becomes the
// derivative times the scale, zeros from `lanes` on.
template <class T, Residual kResidual>
double tile_cost(const Costs<T>& costs, const T* out, const T* targets, const T* factors, std::size_t lanes, T* bars) {
  double loss = 0;
  for (std::size_t c = 0; c < costs.weights.size(); ++c) {
    const T weight = costs.weights[c], bar_weight = costs.scale * weight;
    T each[kTileLanes];
    for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
      const T factor = factors == nullptr ? T(1) : factors[lane];  // times 1 changes no bit
      const auto [cost, slope] = cost_of<kResidual>(costs.deltas[c], (out[lane] - targets[lane]) * factor);
      each[lane] = weight * cost;
      bars[lane] = bar_weight * slope * factor;
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) loss += static_cast<double>(each[lane]);
    std::fill(bars + lanes, bars + kTileLanes, T(0));
    out += kTileLanes;
    targets += kTileLanes;
    factors += factors == nullptr ? 0 : kTileLanes;
    bars += kTileLanes;
  }
  return loss;
}

// A thread's own memory.
template <class T>
struct Workspace {
  explicit Workspace(const TrainableGraphPlan<T>& plan)
      : values(kChunkTiles * plan.value_numbers()), scratch(plan.scratch_bytes()) {}
  AlignedBuffer<T> values;  // of the tiles of a chunk
  AlignedBuffer<std::byte> scratch;
};

}  // namespace

template <class T>
struct GraphRegressionPlan<T>::State {
  TrainableGraphPlan<T> plan;
  ResidualCost cost;
  const mlp::Kernels<T>* kernels;                         // that put samples into tiles
  std::vector<T> weights, deltas;                         // [output]
  std::vector<std::vector<T>> sums;                       // [group][parameter]
  std::vector<double> losses;                             // [group]
  std::vector<std::unique_ptr<Workspace<T>>> workspaces;  // [thread], each made by its thread
  std::unique_ptr<Team> team;                             // once a call had work for several threads

  // body(0) .. body(threads - 1), each on a thread of its own.
  template <class Body>
  void run_on_team(int threads, const Body& body) {
    if (threads == 1) return body(0);
    if (!team || team->threads() < threads) team = std::make_unique<Team>(threads);
    team->run(threads, body);
  }
};

template <class T>
GraphRegressionPlan<T>::GraphRegressionPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
template <class T>
GraphRegressionPlan<T>::GraphRegressionPlan(GraphRegressionPlan&&) noexcept = default;
template <class T>
GraphRegressionPlan<T>& GraphRegressionPlan<T>::operator=(GraphRegressionPlan&&) noexcept = default;
template <class T>
GraphRegressionPlan<T>::~GraphRegressionPlan() = default;

template <class T>
GraphRegressionPlan<T> GraphRegressionPlan<T>::compile(const graph::Graph& graph, const ResidualCost& cost,
                                                       CpuTarget target) {
  const StandardArithmetic arithmetic;
  if (graph.inputs.size() != 1 || graph.outputs.size() != 1) {
    refuse_rows(
        "net",
        std::to_string(graph.inputs.size()) + " input ports, " + std::to_string(graph.outputs.size()) + " output ports",
        "one of each");
  }
  cost.validate(graph.outputs[0].width);
  auto state =
      std::make_unique<State>(State{TrainableGraphPlan<T>::compile(graph, graph::own_places(graph), target,
                                                                   TrainableGraphPlan<T>::Gradients::of_weights),
                                    cost,
                                    &mlp::kernels_for<T>(target),
                                    {},
                                    {},
                                    {},
                                    {},
                                    {},
                                    nullptr});
  if (state->plan.weights() == 0) refuse_rows("net", "no dense layer", "weights to be trained");
  for (std::size_t c = 0; c < state->plan.outputs(); ++c) {
    state->weights.push_back(static_cast<T>(cost.weights.empty() ? 1.0 : cost.weights[c]));
    state->deltas.push_back(static_cast<T>(cost.delta_of(c)));
  }
  return GraphRegressionPlan(std::move(state));
}

template <class T>
std::size_t GraphRegressionPlan<T>::inputs() const {
  return state_->plan.inputs();
}
template <class T>
std::size_t GraphRegressionPlan<T>::outputs() const {
  return state_->plan.outputs();
}
template <class T>
std::size_t GraphRegressionPlan<T>::parameter_count() const {
  return state_->plan.weights();
}

template <class T>
TiledSamples<T> GraphRegressionPlan<T>::make_samples(std::size_t capacity, ResidualFactors factors) const {
  return mlp::make_samples<T>({inputs(), outputs()}, capacity, factors);
}

template <class T>
void GraphRegressionPlan<T>::assign(TiledSamples<T>& tiles, MatrixView<const T> in, MatrixView<const T> targets,
                                    std::span<const std::uint32_t> rows, MatrixView<const T> factors) const {
  const StandardArithmetic arithmetic;
  mlp::assign_samples<T>(tiles, {inputs(), outputs()}, *state_->kernels, in, targets, rows, factors);
}

template <class T>
void GraphRegressionPlan<T>::set_parameters(std::span<const T> parameters) {
  const StandardArithmetic arithmetic;
  state_->plan.set_weights(parameters, TrainableGraphPlan<T>::Paths::reverse);
}

template <class T>
double GraphRegressionPlan<T>::loss(const TiledSamples<T>& tiles, double scale, int threads) {
  return run(tiles, scale, nullptr, threads);
}

template <class T>
double GraphRegressionPlan<T>::loss_and_gradient(const TiledSamples<T>& tiles, double scale, std::span<T> gradient,
                                                 int threads) {
  if (gradient.size() != parameter_count()) {
    refuse_rows("gradient", std::to_string(gradient.size()) + " numbers", std::to_string(parameter_count()),
                "give room for one number a parameter");
  }
  return run(tiles, scale, gradient.data(), threads);
}

template <class T>
double GraphRegressionPlan<T>::run(const TiledSamples<T>& samples, double scale, T* gradient, int threads) {
  const StandardArithmetic arithmetic;
  State& state = *state_;
  const TrainableGraphPlan<T>& plan = state.plan;
  const std::size_t tiles = (samples.samples + kTileLanes - 1) / kTileLanes;
  const std::size_t chunks = (tiles + kChunkTiles - 1) / kChunkTiles;
  const std::size_t groups = std::min(chunks, kMostSums);
  state.losses.assign(std::max<std::size_t>(groups, 1), 0.0);
  state.sums.resize(std::max<std::size_t>(groups, 1));
  if (gradient != nullptr) {
    for (std::vector<T>& sum : state.sums) sum.assign(parameter_count(), T(0));
  }

  const auto costs_of_tile = state.cost.residual == Residual::squared    ? tile_cost<T, Residual::squared>
                             : state.cost.residual == Residual::absolute ? tile_cost<T, Residual::absolute>
                                                                         : tile_cost<T, Residual::huber>;
  // The loss of a tile, without the scale; what its derivative is made of stays among its values.
  const auto differentiate = [&](std::size_t tile, Workspace<T>& work, T* values) {
    const std::size_t lanes = std::min<std::size_t>(kTileLanes, samples.samples - tile * kTileLanes);
    const T* const out =
        plan.forward(samples.inputs.data() + tile * inputs() * kTileLanes, values, work.scratch.data());
    const std::size_t place = tile * outputs() * kTileLanes;
    const T* const factors = samples.factors.empty() ? nullptr : samples.factors.data() + place;
    const double loss = costs_of_tile({static_cast<T>(scale), state.weights, state.deltas}, out,
                                      samples.targets.data() + place, factors, lanes, plan.out_bar(values));
    if (gradient != nullptr) plan.back(values, work.scratch.data());
    return loss;
  };

  std::atomic<std::size_t> next{0};
  const auto body = [&](int thread) {
    std::unique_ptr<Workspace<T>>& own = state.workspaces[static_cast<std::size_t>(thread)];
    if (!own) own = std::make_unique<Workspace<T>>(plan);
    Workspace<T>& work = *own;
    for (std::size_t group = next++; group < groups; group = next++) {
      for (std::size_t chunk = group * chunks / groups; chunk < (group + 1) * chunks / groups; ++chunk) {
        const std::size_t first = chunk * kChunkTiles, count = std::min(kChunkTiles, tiles - first);
        const T* kept[kChunkTiles];
        for (std::size_t i = 0; i < count; ++i) {
          T* const values = work.values.data() + i * plan.value_numbers();
          state.losses[group] += differentiate(first + i, work, values);
          kept[i] = values;
        }
        if (gradient != nullptr) plan.accumulate_values({kept, count}, state.sums[group].data());
      }
    }
  };
  const double registers = static_cast<double>(parameter_count() * tiles * kTileLanes) / (64.0 / sizeof(T));
  threads = mlp::worthwhile_threads(chosen_threads(threads), groups, registers);
  if (state.workspaces.size() < static_cast<std::size_t>(threads)) {
    state.workspaces.resize(static_cast<std::size_t>(threads));
  }
  state.run_on_team(threads, body);
  add_in_halves(state.losses, groups, [](double& to, double from) { to += from; });
  if (gradient != nullptr) {
    add_in_halves(state.sums, groups, [](std::vector<T>& to, const std::vector<T>& from) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
    });
    std::copy(state.sums[0].begin(), state.sums[0].end(), gradient);
  }
  return scale * state.losses[0];
}

template class GraphRegressionPlan<float>;
template class GraphRegressionPlan<double>;

}  // namespace lockstep

#include "lockstep/kernels/mlp/regression.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/core/thread_count.h"
#include "lockstep/kernels/mlp/detail/regression_batch.h"
#include "lockstep/kernels/mlp/detail/reverse_packed.h"
#include "lockstep/kernels/mlp/detail/shared_steps.h"
#include "lockstep/kernels/mlp/detail/tiled_samples.h"

namespace lockstep {

using mlp::bring, mlp::kApart, mlp::kMostGroups, mlp::Use;

namespace {

constexpr std::size_t kMostChunkTiles = 16;      // further tiles no longer make the sum over slots cheaper
constexpr std::size_t kChunkBytes = 768 * 1024;  // a chunk's record stays in the second-level cache
constexpr std::size_t kLossStride = 16;          // threads' losses lie in different cache lines
constexpr std::size_t kBlock = 512;              // numbers of each group that are added up together
constexpr std::size_t kWorthThreads = 1 << 14;   // additions that take longer than a call of the team
// Up to here each thread takes the steps for itself.
constexpr std::size_t kMostShared = 1024;

// rows[0][i] = sum over rows, halves first, for `count` columns from `first`; rows are `stride` apart.
template <class T>
void add_in_halves(T* rows, std::size_t height, std::size_t stride, std::size_t first, std::size_t count) {
  while (height > 1) {
    const std::size_t half = (height + 1) / 2;
    for (std::size_t row = 0; row + half < height; ++row) {
      T* const to = rows + row * stride + first;
      const T* const from = to + half * stride;
      for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
    }
    height = half;
  }
}

[[noreturn]] void refuse_regression(const char* field, std::string found, std::string expected, std::string remedy) {
  throw Error(ErrorKind::invalid_argument, {field, std::move(found), std::move(expected), std::move(remedy)});
}

}  // namespace

std::string_view to_string(Residual residual) {
  switch (residual) {
    case Residual::squared:
      return "squared";
    case Residual::absolute:
      return "absolute";
    case Residual::huber:
      break;
  }
  return "huber";
}

void ResidualCost::validate(std::size_t outputs) const {
  if (!deltas.empty() && deltas.size() != outputs) {
    refuse_regression("loss.deltas", std::to_string(deltas.size()) + " numbers", std::to_string(outputs),
                      "give one an output, or none");
  }
  for (std::size_t c = 0; c < (deltas.empty() ? 1 : outputs); ++c) {
    const double each = delta_of(c);
    if (each > 0 && std::isfinite(each)) continue;
    refuse_regression(deltas.empty() ? "loss.delta" : "loss.deltas", number_text(each), "a finite number above 0",
                      "use 1, or the size of a usual residual");
  }
  if (!weights.empty() && weights.size() != outputs) {
    refuse_regression("loss.weights", std::to_string(weights.size()) + " numbers", std::to_string(outputs),
                      "give one an output, or none");
  }
  for (const double weight : weights) {
    if (!(weight >= 0) || !std::isfinite(weight)) {
      refuse_regression("loss.weights", number_text(weight), "finite numbers, not negative",
                        "use 0 to leave an output out");
    }
  }
}

template <class T>
struct RegressionPlan<T>::State {
  mlp::ReverseNet<T> net;
  mlp::RegressionCost<T> cost;
  std::size_t chunk_tiles;
  AlignedBuffer<T> weights, bar_weights, deltas;  // [output]
  double scale = 0;                          // in bar_weights
  AlignedBuffer<T> gradients;                // [group][parameter, padded]
  AlignedBuffer<double> losses;              // [group][kLossStride], the first of which counts
  std::vector<AlignedBuffer<T>> workspaces;  // [thread]
  // Groups of each thread's part that are taken.
  struct alignas(128) Queue {
    std::atomic<std::size_t> taken{0};
  };
  std::vector<Queue> queues;   // [thread]
  std::unique_ptr<Team> team;  // once a call had work for several threads
  // Of a small net.
  Mlp mlp;
  std::unique_ptr<mlp::SharedSteps<T>> shared;
  std::optional<std::uint64_t> announced;  // the step that the caller takes with the last gradient

  mlp::RegressionBatch<T> batch(const TiledSamples<T>& samples) const {
    return {samples.inputs.data(), samples.targets.data(), samples.samples, chunk_tiles,
            samples.factors.empty() ? nullptr : samples.factors.data()};
  }
  int worth(int threads, const mlp::RegressionBatch<T>& batch) const {
    const double numbers = static_cast<double>(net.parameters * batch.tiles() * kTileLanes);
    return mlp::worthwhile_threads(threads, batch.groups(), numbers / static_cast<double>(net.packed.kernels->lanes));
  }
  std::size_t workspace() const { return mlp::regression_workspace(net, chunk_tiles); }
  void set_scale(double wanted) {
    if (wanted == scale && wanted != 0) return;  // unchanged, these stay in other threads' caches
    scale = wanted;
    for (std::size_t c = 0; c < weights.size(); ++c) bar_weights[c] = static_cast<T>(scale) * weights[c];
  }
  void call_team(int threads) {
    if (team && team->threads() >= threads) return;
    shared.reset();
    team = std::make_unique<Team>(threads);
  }
  // body(0) .. body(threads - 1), each on a thread of its own.
  template <class Body>
  void run_on_team(int threads, const Body& body) {
    if (threads == 1) return body(0);
    call_team(threads);
    team->run(threads, body);
  }
  // The caller does something else than a row of steps.
  void break_row() {
    announced.reset();
    if (shared) shared->stop();
  }
};

template <class T>
RegressionPlan<T>::RegressionPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
template <class T>
RegressionPlan<T>::RegressionPlan(RegressionPlan&&) noexcept = default;
template <class T>
RegressionPlan<T>& RegressionPlan<T>::operator=(RegressionPlan&&) noexcept = default;
template <class T>
RegressionPlan<T>::~RegressionPlan() = default;

template <class T>
RegressionPlan<T> RegressionPlan<T>::compile(const Mlp& mlp, const ResidualCost& cost, CpuTarget target) {
  const StandardArithmetic arithmetic;
  auto state = std::make_unique<State>();
  state->net = mlp::prepare_reverse<T>(mlp, target);
  cost.validate(mlp.outputs());
  const std::size_t tile_bytes = mlp::regression_rows(state->net) * kTileLanes * sizeof(T);
  state->chunk_tiles = kMostChunkTiles;
  while (state->chunk_tiles > 1 && state->chunk_tiles * tile_bytes > kChunkBytes) state->chunk_tiles /= 2;
  state->weights = AlignedBuffer<T>(mlp.outputs());
  state->bar_weights = AlignedBuffer<T>(mlp.outputs());
  state->deltas = AlignedBuffer<T>(mlp.outputs());
  for (std::size_t c = 0; c < mlp.outputs(); ++c) {
    state->weights[c] = static_cast<T>(cost.weights.empty() ? 1.0 : cost.weights[c]);
    state->deltas[c] = static_cast<T>(cost.delta_of(c));
  }
  if (mlp.parameter_count() <= kMostShared) state->mlp = mlp;
  state->cost = {cost.residual, state->deltas.data(), state->weights.data(), state->bar_weights.data()};
  return RegressionPlan(std::move(state));
}

template <class T>
std::size_t RegressionPlan<T>::inputs() const {
  return state_->net.packed.inputs();
}
template <class T>
std::size_t RegressionPlan<T>::outputs() const {
  return state_->net.packed.outputs();
}
template <class T>
std::size_t RegressionPlan<T>::parameter_count() const {
  return state_->net.parameters;
}
template <class T>
std::size_t RegressionPlan<T>::chunk_tiles() const {
  return state_->chunk_tiles;
}

template <class T>
TiledSamples<T> RegressionPlan<T>::make_samples(std::size_t capacity, ResidualFactors factors) const {
  return mlp::make_samples<T>({inputs(), outputs()}, capacity, factors);
}

template <class T>
void RegressionPlan<T>::assign(TiledSamples<T>& tiles, MatrixView<const T> in, MatrixView<const T> targets,
                               std::span<const std::uint32_t> rows, MatrixView<const T> factors) const {
  const StandardArithmetic arithmetic;
  const auto& packed = state_->net.packed;
  mlp::assign_samples<T>(tiles, {inputs(), outputs(), packed.input_shift.span(), packed.input_scale.span()},
                         *packed.kernels, in, targets, rows, factors);
}

template <class T>
void RegressionPlan<T>::set_parameters(std::span<const T> parameters) {
  const StandardArithmetic arithmetic;
  if (parameters.size() != parameter_count()) {
    refuse_regression("parameters", std::to_string(parameters.size()) + " numbers", std::to_string(parameter_count()),
                      "give every layer's weights, then its bias");
  }
  state_->break_row();
  mlp::repack_tiles(state_->net, parameters.data());
}

template <class T>
double RegressionPlan<T>::loss(const TiledSamples<T>& tiles, double scale, int threads) {
  return run(tiles, scale, nullptr, threads);
}

template <class T>
double RegressionPlan<T>::loss_and_gradient(const TiledSamples<T>& tiles, double scale, std::span<T> gradient,
                                            int threads) {
  if (gradient.size() != parameter_count()) {
    refuse_regression("gradient", std::to_string(gradient.size()) + " numbers", std::to_string(parameter_count()),
                      "give room for one number a parameter");
  }
  return run(tiles, scale, gradient.data(), threads);
}

template <class T>
double RegressionPlan<T>::loss_and_gradient(std::span<const T> parameters, const TiledSamples<T>& tiles, double scale,
                                            std::span<T> gradient, int threads, const StepAhead<T>& ahead) {
  const StandardArithmetic arithmetic;
  State& state = *state_;
  const mlp::RegressionBatch<T> batch = state.batch(tiles);
  threads = chosen_threads(threads);
  const int worth = state.worth(threads, batch);
  const bool in_a_row = state.announced && ahead.number == *state.announced + 1;
  if (worth > 1 && in_a_row && state.net.parameters <= kMostShared && parameters.size() == parameter_count() &&
      gradient.size() == parameter_count()) {
    state.call_team(worth);
    // A small batch that ends an epoch is no reason to part.
    if (!state.shared || state.shared->threads() < worth || state.shared->threads() > threads) {
      state.shared = std::make_unique<mlp::SharedSteps<T>>(state.mlp, state.net.packed.target, state.cost,
                                                           state.workspace(), *state.team, worth);
    }
    state.set_scale(scale);
    if (const auto loss = state.shared->take(state.net, parameters, batch, gradient, ahead)) {
      state.announced = ahead.number;
      return scale * *loss;
    }
  }
  set_parameters(parameters);
  const double loss = loss_and_gradient(tiles, scale, gradient, threads);
  state.announced = ahead.number;
  return loss;
}

template <class T>
double RegressionPlan<T>::run(const TiledSamples<T>& samples, double scale, T* gradient, int threads) {
  const StandardArithmetic arithmetic;
  State& state = *state_;
  state.break_row();
  const mlp::RegressionBatch<T> batch = state.batch(samples);
  const std::size_t groups = batch.groups();
  const std::size_t stride = mlp::padded<T>(parameter_count());
  const std::size_t record = state.workspace();
  threads = state.worth(chosen_threads(threads), batch);
  if (state.losses.size() < groups * kLossStride) state.losses = AlignedBuffer<double>(groups * kLossStride);
  if (gradient != nullptr && state.gradients.size() < groups * stride) {
    state.gradients = AlignedBuffer<T>(groups * stride);
  }
  if (state.workspaces.size() < static_cast<std::size_t>(threads)) {
    state.workspaces.resize(static_cast<std::size_t>(threads));
    state.queues = std::vector<typename State::Queue>(static_cast<std::size_t>(threads));
  }
  state.set_scale(scale);

  struct Work {
    State& state;
    const mlp::RegressionBatch<T>& batch;
    std::size_t groups, stride, record, parameters;
    bool with_gradient;
    T* only;  // the gradient where there is but one group
    std::size_t threads;

    // Each thread takes its own part of the groups, the same in every call, since their samples may still be near it;
    // then what is left of the others', unless each has but one.
    void operator()(int thread) const {
      const auto own = static_cast<std::size_t>(thread);
      if (own != 0) {  // the caller has just replaced the weights
        bring<Use::read>(state.net.packed.weights.data(), state.net.packed.weights.size());
        bring<Use::read>(state.net.flat.data(), parameters);
      }
      // Made by the thread that uses it: its memory is then near it and away from the others'.
      AlignedBuffer<T>& buffer = state.workspaces[own];
      if (buffer.empty()) buffer = AlignedBuffer<T>(record + stride + kApart / sizeof(T));
      if (groups == threads) return run_group(own, buffer.data());
      for (std::size_t i = 0; i < threads; ++i) {
        const std::size_t part = (own + i) % threads;
        const std::size_t first = part * groups / threads, end = (part + 1) * groups / threads;
        std::atomic<std::size_t>& taken = state.queues[part].taken;
        for (std::size_t group; (group = first + taken.fetch_add(1, std::memory_order_relaxed)) < end;) {
          run_group(group, buffer.data());
        }
      }
    }

    void run_group(std::size_t group, T* workspace) const {
      // A group is summed apart from its neighbours', which other threads are writing. Where the sums will go, another
      // thread has read after the call before.
      T* const row = state.gradients.data() + group * stride;
      double* const row_loss = state.losses.data() + group * kLossStride;
      bring<Use::write>(row_loss, 1);
      if (with_gradient) bring<Use::write>(row, parameters);
      T* const sum = only != nullptr ? only : with_gradient ? workspace + record : nullptr;
      const double loss = mlp::sum_group(state.net, state.cost, batch, group, sum, workspace);
      if (sum != nullptr && sum != only) std::copy_n(sum, parameters, row);
      *row_loss = loss;
    }
  } work{state,
         batch,
         groups,
         stride,
         record,
         parameter_count(),
         gradient != nullptr,
         groups == 1 ? gradient : nullptr,
         static_cast<std::size_t>(threads)};
  for (auto& queue : state.queues) queue.taken.store(0, std::memory_order_relaxed);
  state.run_on_team(threads, work);
  add_in_halves(state.losses.data(), groups, kLossStride, 0, 1);
  if (gradient != nullptr && groups == 0) std::fill_n(gradient, parameter_count(), T(0));
  if (gradient != nullptr && groups > 1) {
    const std::size_t blocks = (parameter_count() + kBlock - 1) / kBlock;
    const auto sum_blocks = [&](std::size_t first, std::size_t end) {
      for (std::size_t block = first; block < end; ++block) {
        const std::size_t from = block * kBlock, count = std::min(kBlock, parameter_count() - from);
        add_in_halves(state.gradients.data(), groups, stride, from, count);
        std::copy_n(state.gradients.data() + from, count, gradient + from);
      }
    };
    if (threads == 1 || parameter_count() * groups < kWorthThreads) {
      sum_blocks(0, blocks);
    } else {
      const auto n = static_cast<std::size_t>(threads);
      const auto sum_part = [&](int thread) {
        const auto i = static_cast<std::size_t>(thread);
        sum_blocks(i * blocks / n, (i + 1) * blocks / n);
      };
      state.run_on_team(threads, sum_part);
    }
  }
  return groups == 0 ? 0 : scale * state.losses[0];
}

template class RegressionPlan<float>;
template class RegressionPlan<double>;

}  // namespace lockstep

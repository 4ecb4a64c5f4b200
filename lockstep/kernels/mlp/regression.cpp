#include "lockstep/kernels/mlp/regression.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/kernels/mlp/detail/reverse_packed.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostChunkTiles = 16;      // further tiles no longer make the sum over slots cheaper
constexpr std::size_t kChunkBytes = 768 * 1024;  // a chunk's record stays in the second-level cache
constexpr std::size_t kMostGroups = 64;
// Bytes between threads' memory: nearer, two threads on Zen 4 took 1.6 times as long as this far apart, presumably
// since one's prefetches fetched what the other was writing.
constexpr std::size_t kApart = 65536;

constexpr std::size_t kBlock = 512;             // numbers of each group that are added up together
constexpr std::size_t kWorthThreads = 1 << 15;  // additions that take longer than waking threads

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

[[noreturn]] void refuse(const char* field, std::string found, std::string expected, std::string remedy) {
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
  if (!(delta > 0) || !std::isfinite(delta)) {
    refuse("loss.delta", std::to_string(delta), "a finite number above 0", "use 1, or the size of a usual residual");
  }
  if (!weights.empty() && weights.size() != outputs) {
    refuse("loss.weights", std::to_string(weights.size()) + " numbers", std::to_string(outputs),
           "give one an output, or none");
  }
  for (const double weight : weights) {
    if (!(weight >= 0) || !std::isfinite(weight)) {
      refuse("loss.weights", std::to_string(weight), "finite numbers, not negative", "use 0 to leave an output out");
    }
  }
}

template <class T>
struct RegressionPlan<T>::State {
  mlp::ReverseNet<T> net;
  mlp::RegressionCost<T> cost;
  std::size_t chunk_tiles;
  AlignedBuffer<T> weights, bar_weights;     // [output]
  AlignedBuffer<T> gradients;                // [group][parameter, padded]
  AlignedBuffer<double> losses;              // [group]
  std::vector<AlignedBuffer<T>> workspaces;  // [thread]
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
  auto state = std::make_unique<State>();
  state->net = mlp::prepare_reverse<T>(mlp, target);
  cost.validate(mlp.outputs());
  const std::size_t tile_bytes = mlp::regression_rows(state->net) * kTileLanes * sizeof(T);
  state->chunk_tiles = kMostChunkTiles;
  while (state->chunk_tiles > 1 && state->chunk_tiles * tile_bytes > kChunkBytes) state->chunk_tiles /= 2;
  state->weights = AlignedBuffer<T>(mlp.outputs());
  state->bar_weights = AlignedBuffer<T>(mlp.outputs());
  for (std::size_t c = 0; c < mlp.outputs(); ++c) {
    state->weights[c] = static_cast<T>(cost.weights.empty() ? 1.0 : cost.weights[c]);
  }
  state->cost = {cost.residual, static_cast<T>(cost.delta), state->weights.data(), state->bar_weights.data()};
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
TiledSamples<T> RegressionPlan<T>::make_samples(std::size_t capacity) const {
  const std::size_t tiles = (capacity + kTileLanes - 1) / kTileLanes;
  return {AlignedBuffer<T>(tiles * inputs() * kTileLanes), AlignedBuffer<T>(tiles * outputs() * kTileLanes), 0};
}

template <class T>
void RegressionPlan<T>::assign(TiledSamples<T>& tiles, MatrixView<const T> in, MatrixView<const T> targets,
                               std::span<const std::uint32_t> rows) const {
  const auto& packed = state_->net.packed;
  const std::size_t samples = rows.empty() ? in.rows : rows.size();
  const std::size_t room = tiles.inputs.size() / inputs();
  if (in.columns != inputs() || targets.columns != outputs() || in.rows != targets.rows || samples > room) {
    refuse("samples",
           std::to_string(in.rows) + " x " + std::to_string(in.columns) + " inputs, " + std::to_string(targets.rows) +
               " x " + std::to_string(targets.columns) + " targets",
           "at most " + std::to_string(room) + " x " + std::to_string(inputs()) + " and " + std::to_string(outputs()),
           "give inputs and targets of the same samples, and the tiles room for them");
  }
  tiles.samples = samples;
  const std::size_t padded = (samples + kTileLanes - 1) / kTileLanes * kTileLanes;
  for (std::size_t i = 0; i < padded; ++i) {
    const std::size_t tile = i / kTileLanes, lane = i % kTileLanes;
    T* const x = tiles.inputs.data() + tile * inputs() * kTileLanes + lane;
    T* const y = tiles.targets.data() + tile * outputs() * kTileLanes + lane;
    const std::size_t row = rows.empty() || i >= samples ? i : rows[i];
    for (std::size_t c = 0; c < inputs(); ++c) {
      T value = i < samples ? in(row, c) : T(0);
      if (i < samples && !packed.input_scale.empty()) value = (value - packed.input_shift[c]) / packed.input_scale[c];
      x[c * kTileLanes] = value;
    }
    for (std::size_t c = 0; c < outputs(); ++c) y[c * kTileLanes] = i < samples ? targets(row, c) : T(0);
  }
}

template <class T>
void RegressionPlan<T>::set_parameters(std::span<const T> parameters) {
  if (parameters.size() != parameter_count()) {
    refuse("parameters", std::to_string(parameters.size()) + " numbers", std::to_string(parameter_count()),
           "give every layer's weights, then its bias");
  }
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
    refuse("gradient", std::to_string(gradient.size()) + " numbers", std::to_string(parameter_count()),
           "give room for one number a parameter");
  }
  return run(tiles, scale, gradient.data(), threads);
}

template <class T>
double RegressionPlan<T>::run(const TiledSamples<T>& samples, double scale, T* gradient, int threads) {
  State& state = *state_;
  const std::size_t tiles = (samples.samples + kTileLanes - 1) / kTileLanes;
  const std::size_t chunks = (tiles + state.chunk_tiles - 1) / state.chunk_tiles;
  const std::size_t groups = std::min(chunks, kMostGroups);
  const std::size_t stride = mlp::padded<T>(parameter_count());
  const std::size_t record = mlp::regression_rows(state.net) * kTileLanes * state.chunk_tiles;
  // Waking threads takes some microseconds: each must have work for at least ten, counted at three fused multiply-adds
  // of one register a nanosecond.
  const double nanoseconds = static_cast<double>(parameter_count() * tiles * kTileLanes) /
                             static_cast<double>(state.net.packed.kernels->lanes);
  threads = std::max(1, std::min({threads, static_cast<int>(groups), static_cast<int>(nanoseconds / 10e3)}));
  if (state.losses.size() < groups) state.losses = AlignedBuffer<double>(groups);
  if (gradient != nullptr && state.gradients.size() < groups * stride) {
    state.gradients = AlignedBuffer<T>(groups * stride);
  }
  if (state.workspaces.size() < static_cast<std::size_t>(threads)) {
    state.workspaces.resize(static_cast<std::size_t>(threads));
  }
  for (std::size_t c = 0; c < outputs(); ++c) state.bar_weights[c] = static_cast<T>(scale) * state.weights[c];

  struct Work {
    State& state;
    const TiledSamples<T>& samples;
    std::size_t tiles, chunks, groups, stride, record, parameters;
    bool with_gradient;
    T* only;  // the gradient where there is but one group
    alignas(128) std::atomic<std::size_t> next{0};
  } work{state,
         samples,
         tiles,
         chunks,
         groups,
         stride,
         record,
         parameter_count(),
         gradient != nullptr,
         groups == 1 ? gradient : nullptr};
  const auto body = [&work](int thread) {
    State& s = work.state;
    const std::size_t x_tile = s.net.packed.inputs() * kTileLanes, y_tile = s.net.packed.outputs() * kTileLanes;
    // Made by the thread that uses it: its memory is then near it and away from the others'.
    AlignedBuffer<T>& own = s.workspaces[static_cast<std::size_t>(thread)];
    if (own.empty()) own = AlignedBuffer<T>(work.record + work.stride + kApart / sizeof(T));
    T* const workspace = own.data();
    // A group is summed apart from its neighbours', which other threads are writing.
    T* const sum = work.only != nullptr ? work.only : work.with_gradient ? workspace + work.record : nullptr;
    for (std::size_t group; (group = work.next.fetch_add(1, std::memory_order_relaxed)) < work.groups;) {
      if (sum != nullptr) std::fill_n(sum, work.parameters, T(0));
      double loss = 0;
      const std::size_t end = (group + 1) * work.chunks / work.groups;
      for (std::size_t chunk = group * work.chunks / work.groups; chunk < end; ++chunk) {
        const std::size_t first = chunk * s.chunk_tiles;
        const std::size_t count = std::min(s.chunk_tiles, work.tiles - first);
        loss += s.net.kernels->regression(
            s.net, s.cost,
            {work.samples.inputs.data() + first * x_tile, work.samples.targets.data() + first * y_tile, count,
             std::min(count * kTileLanes, work.samples.samples - first * kTileLanes)},
            sum, workspace);
      }
      if (sum != nullptr && sum != work.only) {
        std::copy_n(sum, work.parameters, s.gradients.data() + group * work.stride);
      }
      s.losses[group] = loss;
    }
  };
  if (threads == 1) {
    body(0);
  } else {
    run_on_threads(threads, body);
  }
  add_in_halves(state.losses.data(), groups, 1, 0, 1);
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
      run_on_threads(threads, [&](int thread) {
        const auto i = static_cast<std::size_t>(thread);
        sum_blocks(i * blocks / n, (i + 1) * blocks / n);
      });
    }
  }
  return groups == 0 ? 0 : scale * state.losses[0];
}

template class RegressionPlan<float>;
template class RegressionPlan<double>;

}  // namespace lockstep

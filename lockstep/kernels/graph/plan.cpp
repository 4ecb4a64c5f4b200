#include "lockstep/kernels/graph/plan.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/core/precision.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/thread_count.h"
#include "lockstep/kernels/graph/detail/program.h"
#include "lockstep/kernels/graph/detail/require_ports.h"

namespace lockstep {
namespace {

using graph::Program;
using graph::Tile;

// Kept by each thread from call to call; grows to the largest plan it has met.
std::span<std::byte> kept_workspace(std::size_t bytes) {
  thread_local AlignedBuffer<std::byte> buffer;
  if (buffer.size() < bytes) buffer = AlignedBuffer<std::byte>(bytes);
  return {buffer.data(), bytes};
}

// As many registers of lanes as hold `samples`, two at most.
template <class T>
Tile<T> tile_of(const Program<T>& program, std::byte* workspace, std::size_t samples) {
  const mlp::Kernels<T>& kernels = *program.kernels;
  T* const values = reinterpret_cast<T*>(workspace);
  return {{values},
          kernels.strip(),
          samples > kernels.lanes ? std::size_t{2} : std::size_t{1},
          samples,
          values + program.value_numbers()};
}

template <class T>
void run_steps(const Program<T>& program, const Tile<T>& tile) {
  for (const graph::Step<T>& step : program.steps) step.run(step, tile);
}

// Port views' samples [sample][feature], count of them from the first on, between_samples apart, and back.
template <class T>
void load_samples(const MatrixView<const T>& view, std::size_t first, std::size_t count, T* to, std::size_t between) {
  for (std::size_t sample = first; sample < first + count; ++sample, to += between) {
    if (view.column_stride == 1) {
      std::copy_n(&view(sample, 0), view.columns, to);
    } else {
      for (std::size_t c = 0; c < view.columns; ++c) to[c] = view(sample, c);
    }
  }
}
template <class T>
void store_samples(const T* from, std::size_t between, const MatrixView<T>& view, std::size_t first,
                   std::size_t count) {
  for (std::size_t sample = first; sample < first + count; ++sample, from += between) {
    if (view.column_stride == 1) {
      std::copy_n(from, view.columns, &view(sample, 0));
    } else {
      for (std::size_t c = 0; c < view.columns; ++c) view(sample, c) = from[c];
    }
  }
}

// A few samples, the values of each one after another: registers run over features, and layers read their weights once
// for all of the samples.
template <class T>
void evaluate_samples(const Program<T>& program, std::span<const MatrixView<const T>> in,
                      std::span<const MatrixView<T>> out, std::size_t first, std::size_t count, std::byte* workspace) {
  T* const values = reinterpret_cast<T*>(workspace);
  const std::size_t between = program.between_samples;
  const Tile<T> tile{{values}, 1, 1, count, values + program.value_numbers(), between};
  for (const auto& [port, row, base] : program.loads) {
    load_samples(in[port], first, count, rows_at(tile, base, row), between);
  }
  for (const graph::Step<T>& step : program.steps) step.by_sample(step, tile);
  for (const auto& [port, row, base] : program.stores) {
    if (out[port].data != nullptr) store_samples(rows_at(tile, base, row), between, out[port], first, count);
  }
}

template <class T>
void evaluate_rows(const Program<T>& program, std::span<const MatrixView<const T>> in,
                   std::span<const MatrixView<T>> out, std::size_t begin, std::size_t end, std::byte* workspace) {
  const mlp::Kernels<T>& kernels = *program.kernels;
  std::size_t samples = 0;
  for (std::size_t first = begin; first < end; first += samples) {
    const std::size_t left = end - first;
    const int registers = left >= kernels.strip() ? 2 : program.rest[left].registers;
    if (registers == 0) return evaluate_samples(program, in, out, first, left, workspace);
    samples = std::min(left, static_cast<std::size_t>(registers) * kernels.lanes);
    const Tile<T> tile = tile_of(program, workspace, samples);
    for (const auto& [port, row, base] : program.loads) {
      kernels.load(in[port], first, tile.samples, registers, rows_at(tile, base, row), tile.stride);
    }
    run_steps(program, tile);
    for (const auto& [port, row, base] : program.stores) {
      if (out[port].data == nullptr) continue;
      kernels.store(rows_at(tile, base, row), tile.stride, registers, out[port], first, tile.samples);
    }
  }
}

// Waking threads takes some microseconds: each must have work for at least twenty, counted at the fused multiply-adds
// of one register a nanosecond.
template <class T>
std::size_t useful_threads(const Program<T>& program, std::size_t rows) {
  constexpr double kLeastNanoseconds = 20e3;
  const double whole = program.cost * static_cast<double>(rows) / static_cast<double>(program.kernels->lanes) / 4;
  return static_cast<std::size_t>(std::max(1.0, whole / kLeastNanoseconds));
}

}  // namespace

template <class T>
[[gnu::cold]] std::string graph::description_of(const Program<T>& program) {
  std::size_t packed = 0;
  for (const auto& layer : program.layers) packed += layer->weights.size();
  return std::string(to_string(program.target)) + " " + std::string(to_string(kPrecisionOf<T>)) + " graph, " +
         program.summary + "; tiles of " + std::to_string(program.kernels->strip()) + " lanes, " +
         std::to_string(program.rows) + " rows, " + std::to_string(packed * sizeof(T)) + " bytes packed";
}
template std::string graph::description_of<float>(const Program<float>&);
template std::string graph::description_of<double>(const Program<double>&);

template <class T>
GraphPlan<T> GraphPlan<T>::compile(const graph::Graph& graph, CpuTarget target) {
  const StandardArithmetic arithmetic;
  return GraphPlan(std::make_shared<Packed>(Packed{graph::lower<T>(graph, target)}));
}

template <class T>
std::span<const graph::Port> GraphPlan<T>::inputs() const {
  return packed_->inputs;
}

template <class T>
std::span<const graph::Port> GraphPlan<T>::outputs() const {
  return packed_->outputs;
}

template <class T>
CpuTarget GraphPlan<T>::cpu_target() const {
  return packed_->target;
}

template <class T>
std::size_t GraphPlan<T>::workspace_bytes() const {
  return packed_->workspace_numbers() * sizeof(T);
}

template <class T>
void GraphPlan<T>::evaluate(std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out,
                            std::span<std::byte> workspace) const {
  const StandardArithmetic arithmetic;
  const std::size_t rows = graph::require_shapes(packed_->inputs, packed_->outputs, in, out);
  graph::require_given<T>(in, packed_->inputs);
  graph::require_wanted<T>(out, packed_->outputs);
  const std::size_t bytes = workspace_bytes();
  if (workspace.size() < bytes) {
    graph::refuse_argument("workspace", workspace.size(), bytes, "give at least workspace_bytes() bytes");
  }
  const Extent used = workspace_extent(workspace, bytes);
  if (const std::size_t odd = used.begin % kAlignment; odd != 0) {
    graph::refuse_argument("workspace alignment", odd, 0, "align it to 64 bytes");
  }
  graph::require_apart_from(used, packed_->inputs, packed_->outputs, in, out);
  evaluate_rows(*packed_, in, out, 0, rows, workspace.data());
}

template <class T>
void GraphPlan<T>::evaluate(std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out,
                            int threads) const {
  const StandardArithmetic arithmetic;
  const std::size_t rows = graph::require_shapes(packed_->inputs, packed_->outputs, in, out);
  graph::require_given<T>(in, packed_->inputs);
  graph::require_wanted<T>(out, packed_->outputs);
  if (threads != 1) threads = chosen_threads(threads);
  if (threads > 1) {
    threads = static_cast<int>(std::min(static_cast<std::size_t>(threads), useful_threads(*packed_, rows)));
  }
  if (threads == 1) return evaluate_rows(*packed_, in, out, 0, rows, kept_workspace(workspace_bytes()).data());

  // Threads draw pieces of whole tiles from a queue, so that one that is held up does not hold up the rest.
  struct Work {
    const GraphPlan* plan;
    std::span<const MatrixView<const T>> in;
    std::span<const MatrixView<T>> out;
    std::size_t rows;
    std::size_t piece;
    std::atomic<std::size_t> next{0};
  } work{this, in, out, rows, 0};
  const std::size_t pieces = static_cast<std::size_t>(threads) * 8;
  work.piece = std::clamp<std::size_t>(rows / pieces / kTileLanes * kTileLanes, kTileLanes, 4096);
  run_on_threads(threads, [&work](int) {
    const std::span<std::byte> workspace = kept_workspace(work.plan->workspace_bytes());
    for (;;) {
      const std::size_t first = work.next.fetch_add(work.piece, std::memory_order_relaxed);
      if (first >= work.rows) return;
      evaluate_rows(*work.plan->packed_, work.in, work.out, first, std::min(first + work.piece, work.rows),
                    workspace.data());
    }
  });
}

template <class T>
void GraphPlan<T>::evaluate_tile(const TileView<T>& tile, std::byte* workspace) const {
  const Program<T>& program = *packed_;
  const mlp::Kernels<T>& kernels = *program.kernels;
  const auto wanted = static_cast<std::size_t>(tile.lanes);
  for (std::size_t first = 0; first < wanted; first += kernels.strip()) {
    const Tile<T> part = tile_of(program, workspace, std::min(wanted - first, kernels.strip()));
    const std::size_t used = part.registers * kernels.lanes;
    for (const auto& [port, row, base] : program.loads) {
      const T* from = tile.in + first;
      for (std::size_t before = 0; before < port; ++before) from += program.inputs[before].width * kTileLanes;
      for (std::size_t c = 0; c < program.inputs[port].width; ++c, from += kTileLanes) {
        std::copy_n(from, used, rows_at(part, base, row + c));
      }
    }
    run_steps(program, part);
    T* to = tile.out + first;
    for (const auto& [port, row, base] : program.stores) {
      for (std::size_t c = 0; c < program.outputs[port].width; ++c, to += kTileLanes) {
        std::copy_n(rows_at(part, base, row + c), used, to);
      }
    }
  }
}

template <class T>
std::string GraphPlan<T>::description() const {
  return graph::description_of<T>(*packed_);
}

template class GraphPlan<float>;
template class GraphPlan<double>;

}  // namespace lockstep

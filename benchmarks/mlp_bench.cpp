// Evaluations of trained-net shapes, in nanoseconds and as a share of the core's fused multiply-add peak.
// Names: PRECISION/TARGET/NET/LAYOUT/BATCH/THREADS. Try --benchmark_filter=f32/avx512/ocean.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/fma_peak.h"
#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/parallel.h"
#include "lockstep/kernels/mlp/plan.h"

namespace lockstep::benchmarks {
namespace {

struct Net {
  const char* name;
  std::vector<std::size_t> widths;
  ActivationKind activation;  // of the hidden layers
  std::vector<std::size_t> batches;
};

const std::vector<Net>& nets() {
  static const std::vector<Net> all = {
      {"ocean_32_128_128_31_relu", {32, 128, 128, 31}, ActivationKind::relu, {1,  2,  3,  4,   5,    6,     7,      8,
                                                                              10, 12, 13, 14,  15,   16,    17,     24,
                                                                              31, 32, 64, 256, 4096, 65536, 1048576}},
      {"lorenz_3_100_3_tanh", {3, 100, 3}, ActivationKind::tanh, {1, 4, 16, 32, 256, 4096, 65536}},
      {"chain_4_32_16_4_tanh", {4, 32, 16, 4}, ActivationKind::tanh, {1, 16, 32, 256, 4096, 65536, 1048576}},
      {"peaks_2_20_5_1_relu", {2, 20, 5, 1}, ActivationKind::relu, {1, 16, 32, 256, 4096, 65536, 1048576}},
      {"qlknn_10_133x5_8_tanh", {10, 133, 133, 133, 133, 133, 8}, ActivationKind::tanh, {1, 16, 32, 256, 1000, 4096}}};
  return all;
}

Mlp random_mlp(const Net& net) {
  std::mt19937 random(1);
  Mlp mlp;
  for (std::size_t i = 0; i + 1 < net.widths.size(); ++i) {
    DenseLayer layer{.inputs = net.widths[i], .outputs = net.widths[i + 1]};
    const double limit = std::sqrt(6.0 / static_cast<double>(layer.inputs + layer.outputs));
    std::uniform_real_distribution<double> weight(-limit, limit), bias(-0.1, 0.1);
    for (std::size_t j = 0; j < layer.inputs * layer.outputs; ++j) layer.weights.push_back(weight(random));
    for (std::size_t j = 0; j < layer.outputs; ++j) layer.bias.push_back(bias(random));
    if (i + 2 < net.widths.size()) layer.activation.kind = net.activation;
    mlp.layers.push_back(std::move(layer));
  }
  return mlp;
}

enum class Layout { rows, columns, tile };
constexpr const char* kLayoutNames[] = {"rows", "columns", "tile"};

// `tile` evaluates one tile of `batch` lanes, as an integrator does.
template <class T>
void evaluate(benchmark::State& state, const Net& net, CpuTarget target, Layout layout, std::size_t batch,
              int threads) {
  using Clock = std::chrono::steady_clock;
  const Mlp mlp = random_mlp(net);
  const auto plan = Plan<T>::compile(mlp, target);
  const std::size_t rows = layout == Layout::tile ? kTileLanes : batch;
  AlignedBuffer<T> x(rows * mlp.inputs()), y(rows * mlp.outputs());
  AlignedBuffer<std::byte> workspace(plan.workspace_bytes());
  std::mt19937 random(2);
  std::normal_distribution<T> normal;
  for (T& value : x.span()) value = normal(random);
  const auto in = layout == Layout::rows ? MatrixView<const T>::row_major(x.data(), rows, mlp.inputs())
                                         : MatrixView<const T>::column_major(x.data(), rows, mlp.inputs());
  const auto out = layout == Layout::rows ? MatrixView<T>::row_major(y.data(), rows, mlp.outputs())
                                          : MatrixView<T>::column_major(y.data(), rows, mlp.outputs());
  const TileView<T> tile{nullptr, x.data(), nullptr, y.data(), static_cast<int>(batch)};
  const auto call = [&] {
    if (layout == Layout::tile) {
      plan.evaluate_tile(tile, workspace.data());
    } else if (threads == 1) {
      plan.evaluate(in, out, workspace.span());
    } else {
      plan.evaluate(in, out, threads);
    }
  };
  double operations = 0;
  for (const DenseLayer& layer : mlp.layers) operations += 2.0 * static_cast<double>(layer.inputs * layer.outputs);
  const auto repeats = std::max<std::size_t>(1, static_cast<std::size_t>(2e6 / (operations * batch)));
  const double peak = fma_peak(kPrecisionOf<T>, target) * threads;
  call();
  // The clock is read a call (or a few, of the shortest): the best is what the machine can do undisturbed.
  double best = 1e30;
  for (auto _ : state) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < repeats; ++i) {
      call();
      benchmark::ClobberMemory();
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    state.SetIterationTime(seconds);
    best = std::min(best, seconds / static_cast<double>(repeats * batch));
  }
  state.counters["ns_an_evaluation"] = best * 1e9;
  state.counters["gflops"] = operations / best * 1e-9;
  state.counters["percent_of_peak"] = 100 * operations / best * 1e-9 / peak;
}

template <class T>
void add(const Net& net, CpuTarget target, Layout layout, std::size_t batch, int threads) {
  const std::string name = std::string(to_string(kPrecisionOf<T>)) + "/" + std::string(to_string(target)) + "/" +
                           net.name + "/" + kLayoutNames[static_cast<int>(layout)] + "/" + std::to_string(batch) + "/" +
                           std::to_string(threads);
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    evaluate<T>(state, net, target, layout, batch, threads);
  })->UseManualTime();
}

const bool registered = [] {
  for (const CpuTarget target : available_cpu_targets()) {
    if (target == CpuTarget::scalar) continue;
    for (const Net& net : nets()) {
      for (const std::size_t batch : net.batches) {
        add<float>(net, target, Layout::rows, batch, 1);
        if (batch <= 65536) add<double>(net, target, Layout::rows, batch, 1);
        if (batch == 4096 || batch == 65536) add<float>(net, target, Layout::columns, batch, 1);
        if (batch <= 32) add<float>(net, target, Layout::tile, batch, 1);
        if (batch >= 256 && available_threads() > 1) add<float>(net, target, Layout::rows, batch, 2);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace lockstep::benchmarks

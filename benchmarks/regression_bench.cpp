// Times training steps of nets on fixed batches, and the pieces of reverse mode, and prints one JSON object a line, for
// regression_vs_peers.py.
//   regression_bench --workload peaks|ocean|deep|residual|normalised|lorenz_sample|lorenz_tile [--as-graph]
//   [--size SAMPLES] [--threads N] [--cpu-target NAME]
// A step of a net is loss, gradient and Adam; `percent_of_peak` counts the products of the forward and the
// backward pass, the gradient by the inputs excluded.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "benchmarks/fma_peak.h"
#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/kernels/graph/regression.h"
#include "lockstep/kernels/mlp/parameters.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/kernels/mlp/regression.h"
#include "lockstep/kernels/mlp/reverse.h"
#include "lockstep/train/descent.h"
#include "lockstep/train/initialise.h"

namespace {

using namespace lockstep;
using Row = nlohmann::ordered_json;

struct Arguments {
  std::string workload = "peaks";
  bool as_graph = false;
  std::size_t size = 40'000;
  int threads = 1;
  double budget = 2;
  std::string cpu_target;
  CpuTarget target = best_cpu_target();
};

// Dense layers in a row, 64 wide, with gelu; the same in blocks x + W gelu(W x), or x + W gelu(W layer_norm(x)).
const std::vector<std::size_t> kDeep = {32, 64, 64, 64, 64, 64, 64, 64, 64, 64, 16};

Mlp net(const std::vector<std::size_t>& widths, ActivationKind hidden, std::uint64_t seed) {
  Mlp mlp;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    DenseLayer layer{.inputs = widths[i], .outputs = widths[i + 1]};
    layer.weights.resize(layer.inputs * layer.outputs);
    layer.bias.resize(layer.outputs);
    if (i + 2 < widths.size()) layer.activation = {hidden};
    mlp.layers.push_back(std::move(layer));
  }
  train::initialise(mlp, train::Initialisation::glorot_uniform, seed);
  return mlp;
}

// Shortest and median seconds of one call, over repeats of a few milliseconds each.
struct Timing {
  double best, median;
  std::size_t repeats;
};
Timing measure(const std::function<void()>& call, double budget) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_of = [&](std::size_t count) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < count; ++i) call();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  seconds_of(3);
  const auto count = static_cast<std::size_t>(std::max(1.0, 2e-3 / std::max(seconds_of(3) / 3, 1e-9)));
  std::vector<double> times;
  for (double spent = 0; spent < budget;) {
    const double seconds = seconds_of(count);
    spent += seconds;
    times.push_back(seconds / static_cast<double>(count));
  }
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2], times.size()};
}

void print(const Arguments& arguments, const char* unit, double scale, const Timing& timing, const Row& more) {
  Row row = {{"workload", arguments.workload},
             {"version", LOCKSTEP_BENCH_VERSION},
             {"size", arguments.size},
             {"threads", arguments.threads},
             {"unit", unit},
             {"best", timing.best * scale},
             {"median", timing.median * scale},
             {"repeats", timing.repeats},
             {"target", to_string(arguments.target)}};
  row.update(more);
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

graph::Graph graph_of(const Mlp& mlp, const std::string& workload) {
  graph::Graph made{{{"x", 0, mlp.inputs()}}, {}, {}};
  const auto add = [&made](graph::Operation operation, std::vector<std::size_t> read) {
    made.nodes.push_back({"n" + std::to_string(made.nodes.size()), std::move(operation), std::move(read)});
    return made.nodes.size();
  };
  const bool blocks = workload == "residual" || workload == "normalised";
  const std::size_t last = mlp.layers.size() - 1;
  std::size_t x = 0, kept = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    const DenseLayer& layer = mlp.layers[i];
    const bool opens = blocks && i % 2 == 1 && i < last, closes = blocks && i > 0 && i % 2 == 0;
    if (opens) kept = x;
    if (opens && workload == "normalised") {
      x = add(graph::LayerNormalise{std::vector<double>(layer.inputs, 1), std::vector<double>(layer.inputs), 1e-5},
              {x});
    }
    x = add(graph::Dense{layer.inputs, layer.outputs, layer.weights, layer.bias}, {x});
    if (blocks ? opens : i < last) x = add(graph::Activate{layer.activation}, {x});
    if (closes) x = add(graph::Binary{graph::BinaryKind::add}, {kept, x});
  }
  made.outputs = {{"y", x, mlp.outputs()}};
  return made;
}

// Inputs and targets do not matter to the time; that the loss falls shows that training works. A low rate keeps the
// state that is timed: a converged net has cotangents so small that some processors compute them slowly.
void train_steps(const Arguments& arguments, const std::vector<std::size_t>& widths, ActivationKind hidden,
                 double rate) {
  const Mlp mlp = net(widths, hidden, 1), teacher = net(widths, hidden, 2);
  const Random random(3);
  std::vector<float> x(arguments.size * mlp.inputs()), y(arguments.size * mlp.outputs());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(random.normal(i, 0));
  Plan<float>::compile(teacher).evaluate(MatrixView<const float>::row_major(x.data(), arguments.size, mlp.inputs()),
                                         MatrixView<float>::row_major(y.data(), arguments.size, mlp.outputs()));
  auto plan = RegressionPlan<float>::compile(mlp, {}, arguments.target);
  auto graph_plan = GraphRegressionPlan<float>::compile(graph_of(mlp, arguments.workload), {}, arguments.target);
  const bool graph = arguments.as_graph || arguments.workload == "residual" || arguments.workload == "normalised";
  auto samples = plan.make_samples(arguments.size);
  plan.assign(samples, MatrixView<const float>::row_major(x.data(), arguments.size, mlp.inputs()),
              MatrixView<const float>::row_major(y.data(), arguments.size, mlp.outputs()));
  const double scale = 1 / static_cast<double>(y.size());
  std::vector<float> parameters = gather_parameters<float>(mlp), gradient(parameters.size());
  train::Descent<float> descent({.cpu_target = arguments.target}, {}, parameters.size());
  std::uint64_t number = 0;
  double loss = 0, first = -1;
  const Timing timing = measure(
      [&] {
        if (graph) {
          graph_plan.set_parameters(parameters);
          loss = graph_plan.loss_and_gradient(samples, scale, gradient, arguments.threads);
        } else {
          loss = plan.loss_and_gradient(parameters, samples, scale, gradient, arguments.threads,
                                        {&descent, rate, number++});
        }
        descent.step(parameters, gradient, rate);
        if (first < 0) first = loss;
      },
      arguments.budget);
  double products = 0;
  for (const DenseLayer& layer : mlp.layers) products += 3 * static_cast<double>(layer.inputs * layer.outputs);
  products -= static_cast<double>(mlp.layers[0].inputs * mlp.layers[0].outputs);
  const double gflops = 2 * products * static_cast<double>(arguments.size) / timing.best * 1e-9;
  const double peak = benchmarks::fma_peak(Precision::f32, arguments.target) * arguments.threads;
  print(arguments, "ms/step", 1e3, timing,
        {{"gflops", gflops}, {"percent_of_peak", 100 * gflops / peak}, {"first_loss", first}, {"loss", loss}});
}

// Nanoseconds an evaluation: alone, with a record, back, and the weight gradient of six evaluations at once.
void reverse_pieces(Arguments arguments) {
  const bool tile = arguments.workload == "lorenz_tile";
  const Mlp mlp = net({3, 100, 3}, ActivationKind::tanh, 1);
  auto plan = TrainablePlan<float>::compile(mlp, arguments.target);
  constexpr std::size_t kStages = 6;
  const std::size_t activations = tile ? plan.tile_activation_numbers() : plan.sample_activation_numbers();
  const std::size_t cotangents = tile ? plan.tile_cotangent_numbers() : plan.sample_cotangent_numbers();
  AlignedBuffer<float> in(3 * kTileLanes), out(3 * kTileLanes), bar(3 * kTileLanes);
  AlignedBuffer<float> records(kStages * activations), bars(kStages * cotangents), workspace(plan.workspace_numbers());
  AlignedBuffer<float> sum(std::max(plan.sample_gradient_numbers(), plan.parameter_count()));
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = bar[i] = static_cast<float>(Random(5).normal(i, 0));
  const TileView<float> view{nullptr, in.data(), nullptr, out.data(), kTileLanes};
  std::vector<RecordedTile<float>> tiles;
  std::vector<RecordedSample<float>> samples;
  for (std::size_t i = 0; i < kStages; ++i) {
    tiles.push_back({records.data() + i * activations, bars.data() + i * cotangents, kTileLanes});
    samples.push_back({records.data() + i * activations, bars.data() + i * cotangents});
  }
  const std::vector<float> parameters = gather_parameters<float>(mlp);
  const auto run = [&](const char* piece, double evaluations, const std::function<void()>& call) {
    print(arguments, "ns/evaluation", 1e9 / evaluations, measure(call, arguments.budget / 5), {{"piece", piece}});
  };
  const double lanes = tile ? kTileLanes : 1;
  arguments.size = static_cast<std::size_t>(lanes);
  const auto forward = [&](float* record) {
    if (tile) {
      plan.evaluate_tile(view, record, workspace.data());
    } else {
      plan.evaluate_sample(in.data(), out.data(), record, workspace.data());
    }
  };
  run("forward", lanes, [&] { forward(nullptr); });
  for (std::size_t i = 0; i < kStages; ++i) forward(records.data() + i * activations);
  run("forward with record", lanes, [&] { forward(records.data()); });
  const auto back = [&](std::size_t i) {
    if (tile) {
      plan.reverse_tile(tiles[i].activations, bar.data(), in.data(), bars.data() + i * cotangents, kTileLanes,
                        workspace.data());
    } else {
      plan.reverse_sample(samples[i].activations, bar.data(), in.data(), bars.data() + i * cotangents,
                          workspace.data());
    }
  };
  for (std::size_t i = 0; i < kStages; ++i) back(i);
  run("reverse", lanes, [&] { back(0); });
  run("weight gradient of six", lanes * kStages, [&] {
    if (tile) {
      plan.accumulate_tiles(tiles, sum.data());
    } else {
      plan.accumulate_samples(samples, sum.data());
    }
  });
  run("set parameters", 1, [&] { plan.set_parameters(parameters); });
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Times training steps and the pieces of reverse mode");
  app.add_option("--workload", arguments.workload)
      ->check(CLI::IsMember({"peaks", "ocean", "deep", "residual", "normalised", "lorenz_sample", "lorenz_tile"}));
  app.add_flag("--as-graph", arguments.as_graph, "train a plain stack as nets that are none are trained");
  app.add_option("--size", arguments.size, "samples of a batch")->check(CLI::PositiveNumber);
  app.add_option("--threads", arguments.threads)->check(CLI::PositiveNumber);
  app.add_option("--budget", arguments.budget, "seconds of repeats")->check(CLI::PositiveNumber);
  app.add_option("--cpu-target", arguments.cpu_target);
  CLI11_PARSE(app, argc, argv);
  try {
    if (!arguments.cpu_target.empty()) {
      const auto target = parse_cpu_target(arguments.cpu_target);
      if (!target) throw std::runtime_error("--cpu-target: unknown instruction set " + arguments.cpu_target);
      require_cpu_target(*target);
      arguments.target = *target;
    }
    if (arguments.workload.starts_with("lorenz")) {
      reverse_pieces(arguments);
    } else if (arguments.workload == "peaks") {
      train_steps(arguments, {2, 20, 5, 1}, ActivationKind::relu, 1e-5);
    } else if (arguments.workload == "ocean") {
      train_steps(arguments, {32, 128, 128, 31}, ActivationKind::relu, 1e-5);
    } else {
      train_steps(arguments, kDeep, ActivationKind::gelu, 1e-5);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regression_bench: %s\n", error.what());
    return 1;
  }
}

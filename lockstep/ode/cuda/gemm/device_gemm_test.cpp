// Solves by the engine cuda_gemm that are only queued, through its host double: the bits of the CPU engine over counts
// above and below the columns, one solve after another, and what is missing or does not fit.
#include "lockstep/ode/cuda/gemm/device_gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/cuda/testing/card_graph.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/gemm/testing/host_gemm.h"
#include "lockstep/ode/cuda/gemm/testing/solve_queued.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/cuda/testing/uneven_ensemble.h"
#include "lockstep/ode/device_solver.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode::cuda {
namespace {

using ::testing::HasSubstr;

class QueuedGemm : public ::testing::Test {
 protected:
  GemmTarget target(std::size_t most_columns = 64) {
    return {.runtime = &runtime_, .gemm = &products_, .most_columns = most_columns, .least_columns = 32};
  }
  void expect_same_as_cpu(const Problem& problem, Options options, std::size_t most_columns = 64) {
    const Solution queued = solve_queued(problem, options, target(most_columns));
    EXPECT_EQ(device_.used, 0u);
    options.device = DeviceChoice::cpu();
    expect_same(solve(problem, options), queued);
  }

  HostDevice device_;
  HostRuntime runtime_{device_};
  HostGemm gemm_;
  HostGemmRuntime products_{gemm_};
};

Mlp small_net() { return mlp::random_mlp({3, 17, 3}, {ActivationKind::tanh}, 11); }
Problem small_ensemble(std::size_t count, double span = 0.2) {
  return uneven_ensemble(net(small_net()), {0.5, 0.2, -0.4}, {}, count, span, {0, 0.105, 0.5, 1});
}
Options options_for(std::string_view name, Precision precision) {
  return adaptive_or_fixed(name, precision, precision == Precision::f32 ? 1e-4 : 1e-6, 0.0323);
}

TEST_F(QueuedGemm, has_the_cpu_engines_bits_for_counts_above_and_below_the_columns) {
  for (const std::size_t count : {1u, 2u, 31u, 32u, 33u, 64u, 65u, 97u, 211u}) {
    SCOPED_TRACE(count);
    expect_same_as_cpu(small_ensemble(count), options_for("tsit5", Precision::f32), 128);
    expect_same_as_cpu(small_ensemble(count), options_for("dop853", Precision::f64), 32);
  }
}

TEST_F(QueuedGemm, halves_its_columns_when_half_of_them_are_idle) {
  Problem problem = small_ensemble(131);
  // A few that take ten times as long, spread over the columns.
  for (std::size_t i = 0; i < 131; i += 12) {
    problem.end_times[i] = problem.start_times[i] + 4;
    for (std::size_t s = 0; s < 4; ++s) problem.save_times[4 * i + s] = problem.start_times[i] + 0.9 * double(s);
  }
  expect_same_as_cpu(problem, options_for("tsit5", Precision::f64), 128);
  EXPECT_EQ(gemm_.compactions, 2);  // 128, 64, 32
  EXPECT_EQ(gemm_.fewest_columns, 32);
  gemm_.rounds = gemm_.compactions = 0;
  expect_same_as_cpu(small_ensemble(20), options_for("tsit5", Precision::f64), 128);
  EXPECT_EQ(gemm_.compactions, 0) << "few trajectories begin with few columns";
}

TEST_F(QueuedGemm, adds_up_terms_and_stops_at_events) {
  const Rhs rhs = sum(system("lorenz"), net(mlp::random_mlp({3, 9, 3}, {ActivationKind::silu}, 4)));
  expect_same_as_cpu(uneven_ensemble(rhs, {1, 2, 20}, {10, 28, 8.0 / 3}, 40, 0.1, {0, 1}),
                     options_for("tsit5", Precision::f64));
  Problem stopped = uneven_ensemble(net(small_net()), {0.4, 0.2, -0.3}, {}, 40, 2, {0, 0.3, 1});
  stopped.event = leaves_range(stopped.rhs, {std::vector<double>(3, -0.5), std::vector<double>(3, 0.55)});
  expect_same_as_cpu(stopped, options_for("tsit5", Precision::f32));
}

TEST_F(QueuedGemm, takes_one_solve_after_another_and_no_memory_for_them) {
  const Problem problem = small_ensemble(70);
  const Options options = options_for("tsit5", Precision::f64);
  std::size_t used = 0;
  const Solution twice = solve_queued(problem, options, target(), nullptr, [&](const auto& enqueue) {
    used = device_.used;
    enqueue();
    enqueue();
    EXPECT_EQ(device_.used, used);
  });
  expect_same(solve_queued(problem, options, target()), twice);
}

TEST_F(QueuedGemm, halves_columns_that_do_not_fit) {
  const Problem problem = small_ensemble(301);
  const Options options = options_for("tsit5", Precision::f64);
  const Solution expected = solve_queued(problem, options, target());
  gemm_ = {.failing_prepares = 2};
  expect_same(expected, solve_queued(problem, options, target(512)));
  EXPECT_EQ(gemm_.failing_prepares, 0);
  device_.memory = kWorkspaceBytes + kMostLevels * sizeof(GemmLaunch<double>) + 400'000;
  gemm_ = {};
  expect_same(expected, solve_queued(problem, options, target(4096)));
  EXPECT_LT(gemm_.fewest_columns, 4096);
  EXPECT_EQ(device_.used, 0u);
}

TEST_F(QueuedGemm, says_what_is_missing) {
  const Problem problem = small_ensemble(3);
  const Options options = options_for("tsit5", Precision::f32);
  const auto said = [&] { return message_of([&] { solve_queued(problem, options, target()); }); };
  device_.memory = 100'000;
  EXPECT_THAT(said(), HasSubstr("cuda memory: found too little for 32 columns"));
  device_.memory = std::size_t{1} << 30;
  gemm_ = {.failing_prepares = 1, .failures_are_memory = false};
  EXPECT_THAT(said(), HasSubstr("cuda cuBLASLt: found no algorithm"));
  gemm_ = {.graphs = false};
  const std::string no_graphs = said();
  EXPECT_THAT(no_graphs, HasSubstr("options.engine: found cuda_gemm, and no CUDA graphs here that repeat themselves"));
  EXPECT_THAT(no_graphs, HasSubstr("CUDA 12.4"));
  EXPECT_THAT(no_graphs, HasSubstr("ode::solve"));
}

// The class that programs use, which takes this engine where it is asked for and where solve() would.
class QueuedByName : public QueuedGemm {
 protected:
  QueuedByName() {
    Fault fault;
    loaded_.runtime = &runtime_;
    loaded_.devices = runtime_.devices(fault);
    replace_runtime(&loaded_);
    replace_gemm_runtime(&products_);
  }
  ~QueuedByName() override {
    replace_runtime(nullptr);
    replace_gemm_runtime(nullptr);
  }
  LoadedRuntime loaded_;
};

TEST_F(QueuedByName, is_taken_where_it_is_named_or_the_net_is_wide) {
  Options options = options_for("tsit5", Precision::f32);
  const auto kernel = [&](std::size_t width) {
    return DeviceSolver<float>(net(mlp::random_mlp({3, width, 3}, {ActivationKind::relu}, 5)), options, nullptr)
        .kernel();
  };
  EXPECT_EQ(kernel(300), "cuda_gemm, the host, 16384 columns");
  EXPECT_THAT(kernel(20), HasSubstr("general"));
  options.engine = EngineChoice::cuda_gemm;
  EXPECT_EQ(kernel(20), "cuda_gemm, the host, 16384 columns");
  options.engine = EngineChoice::cuda_fused;
  EXPECT_THAT(kernel(300), HasSubstr("general"));
  options.engine = EngineChoice::cuda_gemm;
  products_.missing_text = "no cuBLASLt on this machine";
  EXPECT_THAT(message_of([&] { kernel(20); }), HasSubstr("no cuBLASLt on this machine"));
  products_.missing_text.clear();
  EXPECT_THAT(message_of([&] { DeviceSolver<float>(system("lorenz"), options, nullptr); }),
              HasSubstr("expected a net"));
}

TEST_F(QueuedByName, reads_and_writes_arrays_in_any_layout_but_parameters) {
  Mlp mlp = mlp::random_mlp({5, 8, 3}, {ActivationKind::tanh}, 3);
  Options options = options_for("tsit5", Precision::f32);
  options.engine = EngineChoice::cuda_gemm;
  DeviceSolver<float> solver(net(mlp), options, nullptr);
  constexpr std::size_t n = 37;
  Problem problem;
  problem.rhs = net(mlp);
  std::vector<float> together(3 * n), parameters;  // [component][trajectory]
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      problem.initial_states.push_back(static_cast<float>(0.01 * double(i + c)));
      together[c * n + i] = static_cast<float>(problem.initial_states.back());
    }
    for (const double p : {0.25, 0.5}) {
      problem.parameters.push_back(p * double(i % 3));
      parameters.push_back(static_cast<float>(problem.parameters.back()));
    }
  }
  const double start = 0, end = 0.5;
  problem.end_times = {end};
  DeviceEnsemble<float> ensemble{.trajectories = n,
                                 .initial_states = {together.data(), 1, n},
                                 .parameters = {parameters.data(), 2},
                                 .start_times = {&start},
                                 .end_times = {&end},
                                 .end_states = {together.data(), 1, n}};
  solver.enqueue(ensemble);
  options.engine = EngineChoice::automatic;
  options.device = DeviceChoice::cpu();
  const Solution expected = solve(problem, options);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(together[c * n + i], expected.end_states<float>()[3 * i + c]) << i;
  }
  ensemble.parameters = {parameters.data(), 1, n};
  EXPECT_THAT(message_of([&] { solver.enqueue(ensemble); }),
              HasSubstr("ensemble.parameters.component: found 37, expected 1 in the engine cuda_gemm"));
}

// With LOCKSTEP_TEST_DEVICE=cuda, on this machine's first GPU: as it is queued, as a part of a graph, and as solve()'s
// engine has it, all of them near the CPU's numbers, and the queued ones the same each time.
TEST(QueuedGemmOnACard, has_the_same_numbers_from_a_cuda_graph) {
  Runtime* const card = wanted_card();
  if (card == nullptr) GTEST_SKIP() << "LOCKSTEP_TEST_DEVICE is not cuda";
  GemmRuntime* const products = load_gemm_runtime();
  ASSERT_NE(products, nullptr);
  if (const std::string missing = products->missing(); !missing.empty()) GTEST_SKIP() << missing;
  const GemmTarget target{.runtime = card, .gemm = products};
  Problem problem;
  problem.rhs = net(mlp::random_mlp({3, 300, 3}, {ActivationKind::relu}, 5));
  for (int i = 0; i < 1000; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), {0.5 + 1e-4 * i, 0.2, -0.4});
    problem.end_times.push_back(0.25 * (1 + i % 9));
  }
  problem.start_times = {0};
  problem.save_times = {0, 0.125};
  Options options;
  options.method = "rk4";
  options.control = StepControl::fixed;
  options.dt = 0x1p-6;
  options.precision = Precision::f64;
  const Solution queued = solve_queued(problem, options, target);
  lockstep::cuda::testing::CardGraph graph;
  expect_same(queued, solve_queued(problem, options, target, graph.stream(), [&](const auto& enqueue) {
                graph.capture(enqueue);
                graph.launch_and_wait();
                graph.launch_and_wait();
              }));
  options.device = DeviceChoice::cpu();
  const Solution cpu = solve(problem, options);
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(queued.record(i).accepted, cpu.record(i).accepted) << i;
    // Sums of 300 products in another order: 300 2^-53 of numbers near 1 for each of at most 576 evaluations.
    for (std::size_t c = 0; c < 3; ++c) ASSERT_NEAR(queued.end_state(i, c), cpu.end_state(i, c), 1e-9) << i;
  }
}

}  // namespace
}  // namespace lockstep::ode::cuda

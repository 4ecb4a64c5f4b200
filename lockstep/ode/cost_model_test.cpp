// The cost model's choices, by simulation: where one engine overtakes another as an ensemble grows, and what moves
// that.
#include "lockstep/ode/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Lt;

const cuda::DeviceInfo kH200{.name = "H200", .major = 9, .multiprocessors = 132, .clock_ghz = 1.785};
const cuda::DeviceInfo kGaming{
    .name = "a gaming card", .major = 8, .minor = 9, .multiprocessors = 128, .clock_ghz = 2.5};

TEST(CostModel, prefers_the_cpu_for_little_work_and_a_gpu_for_much) {
  Work work{.trajectories = 1, .steps = 100, .operations = 300, .output_bytes = 1000, .precision = Precision::f64};
  bool cuda_won = false;
  for (double count = 1; count <= 1e9; count *= 4) {
    work.trajectories = count;
    const bool cuda_wins = predict_cuda_seconds(work, kH200) < predict_cpu_seconds(work, CpuTarget::avx512, 16);
    EXPECT_TRUE(cuda_wins || !cuda_won) << "one crossover, not at " << count;
    if (count <= 1e4) {
      EXPECT_FALSE(cuda_wins) << count;
    }
    cuda_won = cuda_wins;
  }
  EXPECT_TRUE(cuda_won);
}

TEST(CostModel, keeps_one_long_trajectory_on_the_cpu) {
  const Work work{.trajectories = 32, .steps = 1e8, .operations = 300, .precision = Precision::f64};
  EXPECT_LT(predict_cpu_seconds(work, CpuTarget::avx2, 2), predict_cuda_seconds(work, kH200));
}

TEST(CostModel, knows_that_few_cards_are_fast_in_float64) {
  Work work{.trajectories = 1e6, .steps = 1e4, .operations = 300, .precision = Precision::f64};
  EXPECT_GT(predict_cuda_seconds(work, kGaming), 10 * predict_cuda_seconds(work, kH200));
  work.precision = Precision::f32;
  EXPECT_LT(predict_cuda_seconds(work, kGaming), 2 * predict_cuda_seconds(work, kH200));
}

TEST(CostModel, counts_results_that_leave_the_device) {
  const Work work{.trajectories = 1e6, .steps = 1, .operations = 1, .output_bytes = 20e3};
  EXPECT_GT(predict_cuda_seconds(work, kH200), 1);  // 20 GB at 20 GB/s
}

// A net n - width - width - n as right-hand side, with its work.
Work net_work(std::size_t n, std::size_t width, double trajectories, Precision precision = Precision::f32) {
  Problem problem;
  problem.rhs = net(mlp::random_mlp({n, width, width, n}, {ActivationKind::relu}, 1));
  problem.initial_states.assign(n, 0.1);
  problem.end_times = {1};
  Options options;
  options.precision = precision;
  Work work = estimate_work(problem, options, 100);
  work.trajectories = trajectories;
  return work;
}

// Kernel times of benchmarks/results/h200-2026-11-28.json, steps as they were taken. The model's counts of operations
// are not those of machine code, and it knows no stalls: within a factor of two of an adaptive solve, of five where
// steps are fixed and little else is done.
TEST(CostModel, predicts_what_an_h200_took) {
  cuda::DeviceInfo device = kH200;
  device.clock_ghz = 1.98;
  const auto seconds = [&](const Problem& problem, const Options& options, double trajectories, double steps) {
    Work work = estimate_work(problem, options, steps);
    work.trajectories = trajectories;
    work.output_bytes = 0;
    Work none = work;
    none.trajectories = 0;
    return predict_cuda_seconds(work, device) - predict_cuda_seconds(none, device);
  };
  Problem lorenz;
  lorenz.rhs = system("lorenz");
  Options options;
  options.precision = Precision::f64;
  EXPECT_THAT(seconds(lorenz, options, 524288, 37.9) / 0.540e-3, AllOf(Gt(0.5), Lt(2)));
  EXPECT_THAT(seconds(lorenz, options, 524288, 91.04) / 1.241e-3, AllOf(Gt(0.5), Lt(2)));
  options.method = "dop853";
  EXPECT_THAT(seconds(lorenz, options, 524288, 23.82) / 0.828e-3, AllOf(Gt(0.5), Lt(2)));
  Problem neural;
  neural.rhs = net(mlp::random_mlp({3, 100, 3}, {ActivationKind::tanh}, 1));
  EXPECT_THAT(seconds(neural, {}, 1 << 20, 132.3) / 0.1208, AllOf(Gt(0.5), Lt(2)));
  options = {};
  options.method = "rk4";
  options.control = StepControl::fixed;
  EXPECT_THAT(seconds(lorenz, options, 1 << 23, 1000) / 18.06e-3, AllOf(Gt(0.5), Lt(5)));
}

enum class Winner { cpu, fused, gemm };
Winner winner(const Work& work, MatrixPrecision mode = MatrixPrecision::f32) {
  const double cpu = predict_cpu_seconds(work, CpuTarget::avx512, 16), fused = predict_cuda_seconds(work, kH200),
               gemm = predict_gemm_seconds(work, kH200, mode);
  return cpu <= std::min(fused, gemm) ? Winner::cpu : fused <= gemm ? Winner::fused : Winner::gemm;
}

TEST(CostModel, changes_engine_at_most_once_each_as_an_ensemble_grows) {
  for (const std::size_t width : {8u, 31u, 32u, 128u, 256u, 512u, 1024u}) {
    Winner last = Winner::cpu;
    Work work = net_work(32, width, 1);
    for (double count = 1; count <= 1e8; count *= 2) {
      work.trajectories = count;
      const Winner now = winner(work);
      EXPECT_GE(static_cast<int>(now), static_cast<int>(last)) << "width " << width << ", " << count;
      last = now;
    }
    EXPECT_NE(last, Winner::cpu) << width;
  }
}

TEST(CostModel, takes_tiles_to_256_wide_and_matrix_products_beyond) {
  EXPECT_EQ(net_work(32, 128, 1).cuda_kernel, CudaKernel::tiles);
  EXPECT_EQ(net_work(32, 257, 1).cuda_kernel, CudaKernel::general);
  EXPECT_EQ(winner(net_work(32, 128, 1)), Winner::cpu);
  EXPECT_EQ(winner(net_work(32, 128, 1e6)), Winner::fused);
  EXPECT_EQ(winner(net_work(32, 512, 1)), Winner::cpu);
  EXPECT_EQ(winner(net_work(32, 512, 1e6)), Winner::gemm);
}

TEST(CostModel, gains_by_tensor_cores_what_products_cost_and_no_more) {
  const Work wide = net_work(32, 1024, 1e5), narrow = net_work(32, 32, 1e5);
  const auto speedup = [](const Work& work, MatrixPrecision mode) {
    return predict_gemm_seconds(work, kH200) / predict_gemm_seconds(work, kH200, mode);
  };
  EXPECT_GT(speedup(wide, MatrixPrecision::tf32), 2);
  EXPECT_GT(speedup(wide, MatrixPrecision::bf16), speedup(wide, MatrixPrecision::tf32));
  EXPECT_LT(speedup(narrow, MatrixPrecision::bf16), speedup(wide, MatrixPrecision::bf16));
  EXPECT_EQ(speedup(wide, MatrixPrecision::f32), 1);
}

TEST(CostModel, has_small_ensembles_wait_for_a_whole_tile) {
  const Work one = net_work(32, 128, 1), tile = net_work(32, 128, 64), many = net_work(32, 128, 1e6);
  EXPECT_EQ(predict_cuda_seconds(one, kH200), predict_cuda_seconds(tile, kH200));
  EXPECT_GT(predict_cuda_seconds(many, kH200), predict_cuda_seconds(tile, kH200));
}

TEST(CostModel, counts_physics_beside_a_net) {
  const Mlp mlp = mlp::random_mlp({3, 32, 3}, {ActivationKind::tanh}, 1);
  Problem alone, both;
  alone.rhs = net(mlp);
  both.rhs = sum(system("lorenz"), net(mlp));
  for (Problem* problem : {&alone, &both}) problem->end_times = {1};
  both.parameters = {10, 28, 8.0 / 3};
  EXPECT_GT(estimate_work(both, {}, 1).operations, estimate_work(alone, {}, 1).operations);
  EXPECT_EQ(estimate_work(both, {}, 1).cuda_kernel, CudaKernel::tiles);
  EXPECT_EQ(estimate_work(alone, {}, 1).cuda_kernel, CudaKernel::one_shape);
}

// An mlp as a graph: what calls from equations are.
graph::Graph graph_of(const Mlp& mlp) {
  graph::Graph graph{.inputs = {{.name = "u", .value = 0, .width = mlp.inputs()}}, .nodes = {}, .outputs = {}};
  for (const DenseLayer& layer : mlp.layers) {
    const std::size_t last = graph.nodes.size();
    graph.nodes.push_back({"dense", graph::Dense{layer.inputs, layer.outputs, layer.weights, layer.bias}, {last}});
    graph.nodes.push_back({"activate", graph::Activate{layer.activation}, {last + 1}});
  }
  graph.outputs = {{.name = "du", .value = graph.nodes.size(), .width = mlp.outputs()}};
  return graph;
}

TEST(CostModel, counts_the_same_net_alike_as_a_stack_and_in_equations) {
  const Mlp mlp = mlp::random_mlp({3, 100, 100, 3}, {ActivationKind::tanh}, 1);
  Problem stack, equations, clamped, both;
  stack.rhs = net(mlp);
  equations.rhs = net(graph_of(mlp));
  clamped.rhs = clamp_to_range(equations.rhs, {.minimum = {-1, -1, -1}, .maximum = {1, 1, 1}});
  both.rhs = sum(system("lorenz"), equations.rhs);
  both.parameters = {10, 28, 8.0 / 3};
  for (Problem* problem : {&stack, &equations, &clamped, &both}) problem->end_times = {1};
  const auto operations = [](const Problem& problem) { return estimate_work(problem, {}, 1).operations; };
  EXPECT_NEAR(operations(equations), operations(stack), 0.05 * operations(stack));
  EXPECT_EQ(operations(clamped), operations(equations));
  EXPECT_GT(operations(both), operations(equations));
  EXPECT_LT(operations(both), 1.1 * operations(equations));
}

}  // namespace
}  // namespace lockstep::ode

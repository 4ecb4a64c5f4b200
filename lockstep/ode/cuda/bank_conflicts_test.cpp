// How often lanes of a warp wait for each other at a bank of shared memory, counted in every kernel that uses it: a
// count that grows is a failure, one that falls belongs into the table here and in docs/cuda.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "lockstep/kernels/cuda/device_graph_plan.h"
#include "lockstep/kernels/cuda/testing/bank_counter.h"
#include "lockstep/kernels/cuda/testing/simulate_evaluation.h"
#include "lockstep/kernels/cuda/testing/simulate_tensor.h"
#include "lockstep/kernels/cuda/testing/simulated_evaluation_runtime.h"
#include "lockstep/kernels/graph/testing/random_graph.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/gemm/round.cuh"
#include "lockstep/ode/cuda/tensor_tile.cuh"
#include "lockstep/ode/cuda/testing/run_shared_weights.h"
#include "lockstep/ode/cuda/testing/run_tiles.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/cuda/testing/uneven_ensemble.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode::cuda {

using lockstep::cuda::testing::BankCount;
using lockstep::cuda::testing::count_banks;
using lockstep::cuda::testing::simulate;

// The kernels of this program, in place of host_tiles.cpp's and host_runtime.cpp's.
bool run_tile_kernel(std::string_view name, const void* launch, std::size_t& trajectories) {
  if (name == "tiles_f32") {
    run_tiles_of<FmaTile<float>, OutsideDerivative<3, float>>(launch, trajectories);
  } else if (name == "tiles_f64") {
    run_tiles_of<FmaTile<double>, OutsideDerivative<3, double>>(launch, trajectories);
  } else if (name == "tiles_tf32") {
    run_tiles_of<TensorTile<lockstep::cuda::Tf32>, OutsideDerivative<3, float>>(launch, trajectories);
  } else if (name == "tiles_bf16") {
    run_tiles_of<TensorTile<lockstep::cuda::Bf16>, OutsideDerivative<3, float>>(launch, trajectories);
  } else {
    return false;
  }
  return true;
}

void run_listed_kernel(HostDevice&, std::string_view name, const void* arguments) {
  run_net3_tanh_tsit5_f32(name, arguments);
}

namespace {

using lockstep::cuda::WeightPlace;
using lockstep::cuda::testing::TensorRun;

void expect(const char* kernel, std::int64_t conflicts, const BankCount& found) {
  EXPECT_EQ(found.conflicts, conflicts) << kernel << ", beside " << found.phases << " phases; worst:\n"
                                        << ::testing::PrintToString(lockstep::cuda::testing::worst_places());
}

Mlp benchmarks_net() { return mlp::random_mlp({32, 128, 128, 31}, {ActivationKind::relu}, 5); }
Mlp short_net() { return mlp::random_mlp({32, 128, 31}, {ActivationKind::relu}, 5); }
Mlp wide_net() { return mlp::random_mlp({32, 200, 31}, {ActivationKind::tanh}, 5); }

// A tile of samples, row after row.
template <class T>
BankCount of_evaluation(const Mlp& mlp, int tile) {
  const auto samples = static_cast<std::size_t>(tile);
  std::vector<T> in(samples * mlp.inputs(), T(0.5)), out(samples * mlp.outputs());
  return count_banks([&] {
    EXPECT_TRUE(lockstep::cuda::testing::simulate_evaluation<T>(
        mlp, MatrixView<const T>::row_major(in.data(), samples, mlp.inputs()),
        MatrixView<T>::row_major(out.data(), samples, mlp.outputs()), tile, 1));
  });
}

template <class Format>
BankCount of_tensor_cores(const Mlp& mlp, int tile) {
  const auto samples = static_cast<std::size_t>(tile);
  lockstep::cuda::TensorWeights<Format> weights;
  const lockstep::cuda::BlockNet net = weights.add(mlp);
  std::vector<float> in(samples * mlp.inputs(), 0.5f), out(samples * mlp.outputs());
  return count_banks([&] {
    lockstep::cuda::testing::simulate_tensor<Format>(
        weights, net, MatrixView<const float>::row_major(in.data(), samples, mlp.inputs()),
        MatrixView<float>::row_major(out.data(), samples, mlp.outputs()),
        TensorRun{.tile = tile, .blocks = 1, .seed = 0, .place = WeightPlace::shared});
  });
}

TEST(BankConflicts, of_nets_for_a_batch) {
  expect("evaluate_128x128_f32", 0, of_evaluation<float>(benchmarks_net(), 128));
  expect("evaluate_64x256_f32", 0, of_evaluation<float>(wide_net(), 64));
  expect("evaluate_32x256_f32", 0, of_evaluation<float>(wide_net(), 32));
  expect("evaluate_64x128_f64", 256, of_evaluation<double>(short_net(), 64));
  expect("evaluate_32x256_f64", 128, of_evaluation<double>(wide_net(), 32));
}

TEST(BankConflicts, of_nets_for_a_batch_on_tensor_cores) {
  expect("tensor_128_tf32", 0, of_tensor_cores<lockstep::cuda::Tf32>(short_net(), 128));
  expect("tensor_64_tf32", 0, of_tensor_cores<lockstep::cuda::Tf32>(wide_net(), 64));
  expect("tensor_128_bf16", 72, of_tensor_cores<lockstep::cuda::Bf16>(short_net(), 128));
  expect("tensor_32_bf16", 0, of_tensor_cores<lockstep::cuda::Bf16>(short_net(), 32));
  expect("tensor_64_bf16", 36, of_tensor_cores<lockstep::cuda::Bf16>(wide_net(), 64));
}

// A net with a layer around which its input goes, normalised.
template <class T>
BankCount of_graph(int tile) {
  const auto samples = static_cast<std::size_t>(tile);
  graph::testing::Builder b;
  const std::size_t x = b.input(20), layer = b.add(b.dense(20, 20), {x});
  const std::size_t bent = b.add(graph::Activate{{ActivationKind::tanh}}, {layer});
  const std::size_t both = b.add(graph::Binary{graph::BinaryKind::add}, {x, bent});
  const std::size_t share = b.add(graph::Softmax{}, {both});
  b.output(b.add(b.dense(20, 17), {share}));
  lockstep::cuda::testing::SimulatedEvaluationRuntime runtime;
  runtime.multiprocessors = tile == 32 ? 2 : 1;  // small tiles keep more of them busy
  lockstep::cuda::replace_evaluation_runtime(&runtime);
  const auto plan = lockstep::cuda::DeviceGraphPlan<T>::compile(b.graph);
  std::vector<T> in(samples * 20, T(0.5)), out(samples * 17);
  const std::vector ins{MatrixView<const T>::row_major(in.data(), samples, 20)};
  const std::vector outs{MatrixView<T>::row_major(out.data(), samples, 17)};
  const BankCount count = count_banks([&] { plan.enqueue(nullptr, ins, outs); });
  EXPECT_EQ(runtime.last_tile, tile);
  lockstep::cuda::replace_evaluation_runtime(nullptr);
  return count;
}

TEST(BankConflicts, of_graphs_for_a_batch) {
  expect("graph_128_f32", 0, of_graph<float>(128));
  expect("graph_32_f32", 0, of_graph<float>(32));
  expect("graph_64_f64", 128, of_graph<double>(64));
  expect("graph_32_f64", 64, of_graph<double>(32));
}

BankCount of_solve(const Mlp& mlp, std::string_view method, Precision precision, MatrixPrecision matrices) {
  const Problem problem =
      uneven_ensemble(net(mlp), {0.5, 0.2, -0.4}, {}, precision == Precision::f32 ? 128 : 64, 0.1, {0.3, 1});
  Options options = adaptive_or_fixed(method, precision, 1e-2, 1);  // a step each by euler
  options.matrix_precision = matrices;
  return count_banks([&] {
    HostDevice device;
    solve_on(device, problem, options);
  });
}

TEST(BankConflicts, of_solves) {
  const Mlp mlp = mlp::random_mlp({3, 64, 3}, {ActivationKind::tanh}, 3);
  expect("tiles_f32", 0, of_solve(mlp, "euler", Precision::f32, MatrixPrecision::f32));
  expect("tiles_f64", 16, of_solve(mlp, "euler", Precision::f64, MatrixPrecision::f32));
  expect("tiles_tf32", 0, of_solve(mlp, "euler", Precision::f32, MatrixPrecision::tf32));
  expect("tiles_bf16", 0, of_solve(mlp, "euler", Precision::f32, MatrixPrecision::bf16));
  const Mlp narrow = mlp::random_mlp({3, 20, 3}, {ActivationKind::tanh}, 11);
  expect("net3_tanh_tsit5_f32", 0, of_solve(narrow, "tsit5", Precision::f32, MatrixPrecision::f32));
}

TEST(BankConflicts, of_plans_for_fewer_columns) {
  constexpr std::int32_t columns = 600, target = 300;
  std::vector<SavedTrajectory<float>> saved(columns, GemmTrajectory<float>::idle());
  for (std::size_t i = 0; i < saved.size(); i += 3) saved[i].wanted = Wanted::first;
  std::vector<std::int32_t> moves(2 * columns), numbers(kBusyNumbers);
  GemmLaunch<float> launch{};
  launch.saved = saved.data();
  launch.columns = columns;
  launch.pitch = columns;
  launch.moves = moves.data();
  launch.busy = numbers.data();
  expect("gemm_plan", 0, count_banks([&] {
           simulate(
               {.blocks = 1, .threads = kCompactionThreads, .shared_bytes = kCompactionSharedBytes},
               [&](unsigned char* shared) { plan_moves(launch, target, reinterpret_cast<std::int32_t*>(shared)); });
         }));
}

// The counter itself: lanes `stride` numbers of T apart.
template <class T>
std::int64_t conflicts_of_stride(int stride) {
  struct alignas(sizeof(T)) Number {
    T of;
  };
  return count_banks([&] {
           simulate({.blocks = 1, .threads = 32, .shared_bytes = 32 * 33 * sizeof(T)}, [&](unsigned char* shared) {
             reinterpret_cast<T*>(shared)[static_cast<int>(threadIdx.x) * stride] = T{};
           });
         })
      .conflicts;
}

TEST(BankCounter, counts_lanes_that_wait_for_a_bank) {
  EXPECT_EQ(conflicts_of_stride<float>(0), 0);  // one word for all
  EXPECT_EQ(conflicts_of_stride<float>(1), 0);
  EXPECT_EQ(conflicts_of_stride<float>(2), 1);
  EXPECT_EQ(conflicts_of_stride<float>(32), 31);
  EXPECT_EQ(conflicts_of_stride<float>(33), 0);
  EXPECT_EQ(conflicts_of_stride<double>(1), 0);  // two phases
  EXPECT_EQ(conflicts_of_stride<double>(2), 2);  // each of 16 lanes, two to a bank
  EXPECT_EQ(conflicts_of_stride<double>(16), 2 * 15);
  using Four = lockstep::cuda::Numbers<float, 4>;
  EXPECT_EQ(conflicts_of_stride<Four>(1), 0);  // four phases
  EXPECT_EQ(conflicts_of_stride<Four>(8), 4 * 7);
  EXPECT_EQ(conflicts_of_stride<Four>(9), 0);
}

}  // namespace
}  // namespace lockstep::ode::cuda

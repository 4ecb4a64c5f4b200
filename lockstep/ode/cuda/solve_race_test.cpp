// The kernels of whole solves under ThreadSanitizer, to which each thread of a block is one of its own: results are the
// CPU engine's, no race, and each barrier is needed. Kernels without a barrier, a thread for each trajectory or column,
// share nothing but counters.
#include <gtest/gtest.h>

#include "lockstep/kernels/cuda/testing/needed_barriers.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/gemm/round.cuh"
#include "lockstep/ode/cuda/tensor_tile.cuh"
#include "lockstep/ode/cuda/testing/run_shared_weights.h"
#include "lockstep/ode/cuda/testing/run_tiles.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/cuda/testing/uneven_ensemble.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode::cuda {

using lockstep::cuda::testing::expect_every_barrier_to_be_needed;
using lockstep::cuda::testing::simulate;

// The kernels of this program, in place of host_tiles.cpp's and host_runtime.cpp's: one for each source.
bool run_tile_kernel(std::string_view name, const void* launch, std::size_t& trajectories) {
  if (name == "tiles_f32") {
    run_tiles_of<FmaTile<float>, OutsideDerivative<3, float>>(launch, trajectories);
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

Problem ensemble(Rhs rhs, std::size_t count) {
  return uneven_ensemble(std::move(rhs), {0.5, 0.2, -0.4}, {}, count, 0.1, {0.3, 1});
}

void expect_no_race_and_needed_barriers(const Problem& problem, const Options& options) {
  expect_every_barrier_to_be_needed([&] {
    HostDevice device;
    const Solution solution = solve_on(device, problem, options);
    if (options.matrix_precision == MatrixPrecision::f32) expect_same(solve(problem, options), solution);
  });
}

TEST(SolveRaces, of_trajectories_that_read_weights_in_shared_memory) {
  const Mlp mlp = mlp::random_mlp({3, 20, 3}, {ActivationKind::tanh}, 11);
  expect_no_race_and_needed_barriers(ensemble(net(mlp), 70), adaptive_or_fixed("tsit5", Precision::f32, 1e-2, 1));
}

TEST(SolveRaces, of_tiles) {
  Mlp first = mlp::random_mlp({3, 33, 3}, {ActivationKind::tanh}, 3);
  first.input_scaling = {std::vector<double>(3, 0.1), std::vector<double>(3, 1.7)};
  const Mlp second = mlp::random_mlp({3, 5, 3}, {ActivationKind::relu}, 4);
  const Problem problem = ensemble(sum(net(first), net(second)), 130);  // both of two tiles full
  Options options = adaptive_or_fixed("euler", Precision::f32, 1, 1);   // a step each
  expect_no_race_and_needed_barriers(problem, options);
  options.matrix_precision = MatrixPrecision::bf16;
  expect_no_race_and_needed_barriers(problem, options);
}

TEST(SolveRaces, of_plans_for_fewer_columns) {
  constexpr std::int32_t columns = 600, target = 300;
  std::vector<GemmTrajectory<float>::Saved> saved(columns, GemmTrajectory<float>::idle());
  for (std::size_t i = 0; i < saved.size(); i += 3) saved[i].wanted = decltype(saved[i].wanted)(1);
  std::vector<std::int32_t> moves(2 * columns), numbers(kBusyNumbers);
  GemmLaunch<float> launch{};
  launch.saved = saved.data();
  launch.columns = columns;
  launch.pitch = columns;
  launch.moves = moves.data();
  launch.busy = numbers.data();
  expect_every_barrier_to_be_needed([&] {
    simulate({.blocks = 1, .threads = kCompactionThreads, .shared_bytes = kCompactionSharedBytes},
             [&](unsigned char* shared) { plan_moves(launch, target, reinterpret_cast<std::int32_t*>(shared)); });
    EXPECT_EQ(numbers[kMoveCount], 100);
  });
}

}  // namespace
}  // namespace lockstep::ode::cuda

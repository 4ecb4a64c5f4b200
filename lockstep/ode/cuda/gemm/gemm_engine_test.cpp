// The engine cuda_gemm through its host double, whose matrix products sum in the contract's order: the same bits as the
// CPU engine over methods, sizes, refills, compaction, events and failures. What cuBLASLt makes of a product is not
// tested here.
#include "lockstep/ode/cuda/gemm/gemm_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/gemm/gemm_workspace.h"
#include "lockstep/ode/cuda/gemm/testing/host_gemm.h"
#include "lockstep/ode/cuda/testing/impulses.h"
#include "lockstep/ode/cuda/testing/moved_jumps.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/cuda/testing/uneven_ensemble.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode::cuda {
namespace {

using ::testing::HasSubstr;

struct Setting {
  std::size_t most_columns = 64, least_columns = 32, budget = std::size_t{1} << 28;
};

Solution solve_by_gemm(const Problem& problem, const Options& options, HostGemm& gemm, HostDevice& device,
                       Setting setting = {}) {
  Solution solution(options.precision, problem.trajectories(), problem.rhs->components(), problem.save_times,
                    problem.save_times_per_trajectory);
  CountingSink sink(solution);
  HostRuntime host(device);
  HostGemmRuntime products(gemm);
  const GemmTarget target{&host, &products, 0, setting.budget, setting.most_columns, setting.least_columns};
  const Summary summary = options.precision == Precision::f32
                              ? advance_gemm<float>(problem, options, target, sink, {})
                              : advance_gemm<double>(problem, options, target, sink, {});
  EXPECT_EQ(sink.committed, problem.trajectories());
  std::size_t counted = 0;
  for (const std::size_t count : summary.count_of) counted += count;
  EXPECT_EQ(counted, problem.trajectories());
  return solution;
}

HostGemm expect_same_as_cpu(const Problem& problem, Options options, Setting setting = {}) {
  HostGemm gemm;
  HostDevice device;
  const Solution other = solve_by_gemm(problem, options, gemm, device, setting);
  EXPECT_EQ(device.used, 0u);
  options.device = DeviceChoice::cpu();
  expect_same(solve(problem, options), other);
  return gemm;
}

Problem ensemble(Rhs rhs, const std::vector<double>& u0, const std::vector<double>& parameters, std::size_t count,
                 double span) {
  return uneven_ensemble(std::move(rhs), u0, parameters, count, span, {0, 0.105, 0.5, 1});
}

Options options_for(std::string_view name, Precision precision) {
  return adaptive_or_fixed(name, precision, precision == Precision::f32 ? 1e-4 : 1e-6, 0.0323);
}

Mlp small_net(ActivationKind kind = ActivationKind::tanh) { return mlp::random_mlp({3, 17, 3}, {kind}, 11); }
Problem small_ensemble(std::size_t count, double span = 0.2) {
  return ensemble(net(small_net()), {0.5, 0.2, -0.4}, {}, count, span);
}

TEST(GemmEngine, has_the_cpu_engines_bits_for_every_method_where_products_sum_in_order) {
  for (const std::string_view name : explicit_method_names()) {
    SCOPED_TRACE(name);
    expect_same_as_cpu(small_ensemble(7), options_for(name, Precision::f32));
    expect_same_as_cpu(small_ensemble(7), options_for(name, Precision::f64));
  }
  Options fixed = options_for("tsit5", Precision::f32);
  fixed.control = StepControl::fixed;
  fixed.dt = 0.0173;
  expect_same_as_cpu(small_ensemble(7), fixed);
}

TEST(GemmEngine, refills_columns_for_every_count_of_trajectories) {
  for (const std::size_t count : {0u, 1u, 2u, 31u, 32u, 33u, 97u}) {
    SCOPED_TRACE(count);
    expect_same_as_cpu(small_ensemble(count), options_for("tsit5", Precision::f32), {.most_columns = 32});
    expect_same_as_cpu(small_ensemble(count), options_for("tsit5", Precision::f64), {.most_columns = 64});
  }
}

TEST(GemmEngine, runs_nets_of_any_width_and_depth) {
  for (const std::size_t width : {1u, 257u, 300u, 512u, 1031u}) {
    SCOPED_TRACE(width);
    const Mlp mlp = mlp::random_mlp({3, width, 3}, {ActivationKind::relu}, 5);
    expect_same_as_cpu(ensemble(net(mlp), {0.5, 0.2, -0.4}, {}, 3, 0.1), options_for("bs3", Precision::f32));
  }
  const Mlp deep = mlp::random_mlp({3, 9, 11, 16, 5, 3}, {ActivationKind::silu}, 6);
  expect_same_as_cpu(ensemble(net(deep), {0.5, 0.2, -0.4}, {}, 5, 0.3), options_for("tsit5", Precision::f64));
  const Mlp twenty_layers = mlp::random_mlp(std::vector<std::size_t>(21, 2), {ActivationKind::tanh}, 6);
  expect_same_as_cpu(ensemble(net(twenty_layers), {0.5, 0.2}, {}, 3, 0.3), options_for("bs3", Precision::f32));
  const Mlp one_layer = mlp::random_mlp({64, 64}, {ActivationKind::tanh}, 7);
  expect_same_as_cpu(ensemble(net(one_layer), std::vector<double>(64, 0.3), {}, 3, 0.2),
                     options_for("tsit5", Precision::f64));
}

TEST(GemmEngine, adds_up_systems_and_nets_with_parameters_time_scalings_and_bounds) {
  Mlp scaled = mlp::random_mlp({7, 19, 3}, {ActivationKind::tanh}, 3);
  scaled.input_scaling = {std::vector<double>(7, 0.1), std::vector<double>(7, 1.7)};
  scaled.output_scaling = {std::vector<double>(3, 0.9), std::vector<double>(3, 0.2)};
  const Mlp other = mlp::random_mlp({3, 5, 3}, {ActivationKind::silu}, 4);
  const Rhs rhs = sum(sum(system("lorenz"), net(scaled, {"net", true})), net(other));
  const Problem problem = ensemble(rhs, {1, 2, 20}, {10, 28, 8.0 / 3, 0.3, 0.2, -0.1}, 9, 0.1);
  expect_same_as_cpu(problem, options_for("tsit5", Precision::f32));
  expect_same_as_cpu(problem, options_for("dop853", Precision::f64));

  const Range range{std::vector<double>(3, -0.5), std::vector<double>(3, 0.55)};
  const Problem clamped = ensemble(clamp_to_range(net(small_net()), range), {0.4, 0.2, -0.3}, {}, 9, 2);
  expect_same_as_cpu(clamped, options_for("tsit5", Precision::f64));
  Problem stopped = ensemble(net(small_net()), {0.4, 0.2, -0.3}, {}, 9, 2);
  stopped.event = leaves_range(stopped.rhs, range);
  expect_same_as_cpu(stopped, options_for("tsit5", Precision::f32));
  expect_same_as_cpu(stopped, options_for("dop853", Precision::f64));
}

TEST(GemmEngine, ends_steps_at_stops_as_the_cpu_engine_does) {
  const Problem problem = ensemble(net(jumping_net(3, 17), {"net", true}), {0.5, 0.2, -0.4}, {}, 23, 0.25);
  for (const std::string_view name : {"bs3", "tsit5", "dop853"}) {
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      expect_same_as_cpu(problem, with_stops(options_for(name, precision)));
      expect_same_as_cpu(problem, with_fixed_stops(options_for(name, precision)));
    }
  }
}

TEST(GemmEngine, ends_steps_at_stops_that_parameters_move) {
  const Problem problem = ensemble(moved_jumps(3, 17), {0.5, 0.2, -0.4}, {1}, 71, 0.25);
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    const Options options = options_for("tsit5", precision);
    expect_same_as_cpu(problem, options);
    expect_same_as_cpu(problem, options, {.most_columns = 32, .least_columns = 32, .budget = 1});
  }
}

TEST(GemmEngine, changes_states_at_once_as_the_cpu_engine_does) {
  const Problem problem = small_ensemble(71);
  for (const auto& with : {with_impulses, with_own_impulses}) {
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      expect_same_as_cpu(with(problem), options_for("tsit5", precision));
      Options fixed = adaptive_or_fixed("rk4", precision, 0, 0.01);
      expect_same_as_cpu(with(problem), fixed, {.most_columns = 32, .least_columns = 32});
    }
    expect_same_as_cpu(with(problem), options_for("tsit5", Precision::f32),
                       {.most_columns = 32, .least_columns = 32, .budget = 1});
  }
}

TEST(GemmEngine, ends_trajectories_as_the_cpu_engine_does) {
  Problem problem = ensemble(net(small_net(ActivationKind::square)), {0.5, 0.2, -0.4}, {}, 9, 1);
  problem.initial_states[3] = 1e200;  // infinite in float32; beyond repair in float64 after a stage
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    Options options = options_for("tsit5", precision);
    expect_same_as_cpu(problem, options);
    options.max_steps = 3;
    expect_same_as_cpu(problem, options);
    options.initial_step = 0.01;
    options.max_step = 0.02;
    options.max_steps = 100;
    options.component_atol = {1e-2, 1e-4, 3e-6};
    expect_same_as_cpu(problem, options);
  }
  Problem shared;
  shared.rhs = net(small_net());
  for (int i = 0; i < 5; ++i) shared.initial_states.insert(shared.initial_states.end(), {0.1 * i, 0.2, 0.3});
  shared.end_times = {0.5};
  expect_same_as_cpu(shared, options_for("tsit5", Precision::f64));  // nothing saved, one span for all
  shared.end_times = {0};
  expect_same_as_cpu(shared, options_for("tsit5", Precision::f64));
}

TEST(GemmEngine, moves_the_last_trajectories_into_fewer_columns) {
  Problem problem = small_ensemble(97);
  // A few that take ten times as long, spread over the columns.
  for (std::size_t i = 0; i < 97; i += 12) {
    problem.end_times[i] = problem.start_times[i] + 4;
    for (std::size_t s = 0; s < 4; ++s) problem.save_times[4 * i + s] = problem.start_times[i] + 0.9 * double(s);
  }
  for (const std::string_view name : {"tsit5", "dop853"}) {
    const HostGemm gemm =
        expect_same_as_cpu(problem, options_for(name, Precision::f64), {.most_columns = 128, .least_columns = 32});
    EXPECT_GE(gemm.compactions, 1);
    EXPECT_EQ(gemm.fewest_columns, 32);
  }
  EXPECT_EQ(
      expect_same_as_cpu(problem, options_for("tsit5", Precision::f64), {.most_columns = 128, .least_columns = 128})
          .compactions,
      0);
}

// Notes how many rounds had been made when each batch was handed over.
class RoundsSink : public SolutionSink {
 public:
  RoundsSink(Solution& solution, const HostGemm& gemm) : solution_(solution), gemm_(gemm) {}
  SolutionBlock acquire(std::size_t first, std::size_t count) override { return solution_.block(first, count); }
  void commit(const SolutionBlock&) override { rounds.push_back(gemm_.rounds); }
  std::vector<std::int64_t> rounds;

 private:
  Solution& solution_;
  const HostGemm& gemm_;
};

TEST(GemmEngine, copies_a_batch_and_hands_it_over_while_the_next_one_computes) {
  const Problem problem = small_ensemble(70);
  const Options options = options_for("tsit5", Precision::f64);
  Solution solution(options.precision, 70, 3, problem.save_times, problem.save_times_per_trajectory);
  HostDevice device;
  HostGemm gemm, first;
  HostRuntime host(device);
  HostGemmRuntime products(gemm), products_of_first(first);
  RoundsSink sink(solution, gemm);
  std::vector<std::int64_t> arrivals;
  device.arrival = [&] { arrivals.push_back(gemm.rounds); };
  // Batches of 32, 32 and 6.
  advance_gemm<double>(problem, options, {&host, &products, 0, 1, 32, 32}, sink, {});
  std::vector<std::size_t> rows(32);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  Solution alone(options.precision, 32, 3, std::vector<double>(4 * 32), true);
  RoundsSink sink_of_first(alone, first);
  device.arrival = {};
  advance_gemm<double>(problem.selection(rows), options, {&host, &products_of_first, 0, 1, 32, 32}, sink_of_first, {});
  ASSERT_EQ(sink.rounds.size(), 3u);
  EXPECT_GT(sink.rounds[0], first.rounds);
  // States, end states and records of each: those of the first come after the second's rounds were queued, not before.
  ASSERT_EQ(arrivals.size(), 9u);
  EXPECT_EQ(arrivals.front(), sink.rounds[0]);
  EXPECT_GT(sink.rounds[1], sink.rounds[0]);
  EXPECT_EQ(sink.rounds[1], gemm.rounds);  // with the last batch done, too: least_columns asks for no compaction
  EXPECT_EQ(sink.rounds[2], gemm.rounds);
  expect_same(solve(problem, options), solution);
}

TEST(GemmEngine, halves_what_does_not_fit_with_the_same_bits) {
  const Problem problem = small_ensemble(301);
  const Options options = options_for("tsit5", Precision::f64);
  const Solution expected = solve(problem, options);
  const std::size_t workspace = kWorkspaceBytes + kMostLevels * sizeof(GemmLaunch<double>);
  HostGemm gemm;
  HostDevice small;
  small.memory = workspace + 100'000;
  expect_same(expected, solve_by_gemm(problem, options, gemm, small, {.most_columns = 512}));
  EXPECT_EQ(small.used, 0u);
  EXPECT_LT(gemm.fewest_columns, 320);
  HostGemm failing{.failing_prepares = 2};
  HostDevice device;
  expect_same(expected, solve_by_gemm(problem, options, failing, device, {.most_columns = 512}));
  HostGemm narrow;
  expect_same(expected, solve_by_gemm(problem, options, narrow, device, {.most_columns = 512, .budget = 50'000}));
}

std::string message_of(const Problem& problem, const Options& options, HostGemm gemm, std::size_t memory) {
  HostDevice device;
  device.memory = memory;
  return lockstep::message_of([&] { solve_by_gemm(problem, options, gemm, device); });
}

TEST(GemmErrors, say_what_is_missing_and_what_to_try) {
  const Options options = options_for("tsit5", Precision::f32);
  const std::size_t plenty = std::size_t{1} << 30;
  EXPECT_THAT(message_of(small_ensemble(3), options, {}, 1000), HasSubstr("cuda memory"));
  const std::string failure =
      message_of(small_ensemble(3), options, {.failing_prepares = 1, .failures_are_memory = false}, plenty);
  EXPECT_THAT(failure, HasSubstr("cuda cuBLASLt: found no algorithm"));
  EXPECT_THAT(failure, HasSubstr("--device cpu"));
  Problem lorenz = ensemble(system("lorenz"), {1, 2, 20}, {10, 28, 8.0 / 3}, 3, 0.1);
  EXPECT_THAT(message_of(lorenz, options, {}, plenty), HasSubstr("expected a net"));
  Mlp large = small_net();
  large.layers[0].weights[0] = 1e5;
  Options half = options;
  half.matrix_precision = MatrixPrecision::fp16;
  EXPECT_THAT(message_of(ensemble(net(large), {0, 0, 0}, {}, 3, 1), half, {}, plenty), HasSubstr("fits in fp16"));
}

// du/dt = w u by one explicit Euler step of 1: u + w u.
float euler_step(float w, float u, MatrixPrecision mode, bool epilogues = true) {
  Mlp mlp;
  mlp.layers = {{1, 1, {w}, {0}, {ActivationKind::identity}}};
  Problem problem;
  problem.rhs = net(mlp);
  problem.initial_states = {u};
  problem.end_times = {1};
  Options options;
  options.method = "euler";
  options.control = StepControl::fixed;
  options.dt = 1;
  options.matrix_precision = mode;
  HostGemm gemm{.epilogues = epilogues};
  HostDevice device;
  return solve_by_gemm(problem, options, gemm, device).end_states<float>()[0];
}

TEST(GemmModes, round_factors_to_what_they_are_named_after) {
  // 1 + 2^-9 is a number of tf32 and fp16 (10 bits of fraction), not of bf16 (7); 1 + 2^-12 is one of float32 alone.
  const float nine = 1 + 0x1p-9f, twelve = 1 + 0x1p-12f;
  EXPECT_EQ(euler_step(nine, 1, MatrixPrecision::f32), 1 + nine);
  EXPECT_EQ(euler_step(nine, 1, MatrixPrecision::tf32), 1 + nine);
  EXPECT_EQ(euler_step(nine, 1, MatrixPrecision::fp16), 1 + nine);
  EXPECT_EQ(euler_step(nine, 1, MatrixPrecision::bf16), 2);
  EXPECT_EQ(euler_step(twelve, 1, MatrixPrecision::f32), 1 + twelve);
  EXPECT_EQ(euler_step(twelve, 1, MatrixPrecision::tf32), 2);
  EXPECT_EQ(euler_step(twelve, 1, MatrixPrecision::fp16), 2);
  // The state is a factor, too, but keeps its own bits: u + round(u).
  EXPECT_EQ(euler_step(1, twelve, MatrixPrecision::bf16), twelve + 1);
}

TEST(GemmModes, make_biases_and_activations_by_a_kernel_where_there_is_no_epilogue) {
  // Three layers, so that hidden values are rounded to the mode twice. The bias is added last instead of first: with
  // one input and numbers of few bits all sums are exact, and the bits are the same.
  Mlp mlp;
  mlp.layers = {{1, 2, {0.5, -2}, {0.25, 1}, {ActivationKind::relu}},
                {2, 1, {1, 0.75}, {-0.5}, {ActivationKind::tanh}},
                {1, 1, {3}, {0.125}, {ActivationKind::identity}}};
  Problem problem;
  problem.rhs = net(mlp);
  for (int i = 0; i < 37; ++i) problem.initial_states.push_back(i / 8.0 - 2);
  problem.end_times = {1};
  Options options;
  options.method = "euler";
  options.control = StepControl::fixed;
  options.dt = 1;
  for (const MatrixPrecision mode :
       {MatrixPrecision::f32, MatrixPrecision::tf32, MatrixPrecision::bf16, MatrixPrecision::fp16}) {
    SCOPED_TRACE(to_string(mode));
    options.matrix_precision = mode;
    HostGemm fused, apart{.epilogues = false};
    HostDevice device;
    expect_same(solve_by_gemm(problem, options, fused, device), solve_by_gemm(problem, options, apart, device));
  }
}

TEST(Compaction, moves_every_busy_column_to_a_free_one_and_no_other) {
  std::mt19937 random(20);
  for (const std::int32_t columns : {32, 64, 255, 256, 257, 1031}) {
    for (const std::int32_t target : {columns / 2, columns / 3, columns - 1}) {
      SCOPED_TRACE(std::to_string(columns) + " to " + std::to_string(target));
      // As many busy ones as fit, or fewer, anywhere.
      std::vector<char> busy(static_cast<std::size_t>(columns), 0);
      const std::int32_t count =
          target - static_cast<std::int32_t>(random() % 3 == 0 ? random() % unsigned(target) : 0);
      std::fill_n(busy.begin(), count, 1);
      std::shuffle(busy.begin(), busy.end(), random);
      std::vector<GemmTrajectory<float>::Saved> saved;
      for (const char one : busy) {
        auto state = GemmTrajectory<float>::idle();
        if (one != 0) state.wanted = decltype(state.wanted)(1);
        saved.push_back(state);
      }
      std::vector<std::int32_t> moves(2 * busy.size(), -1), numbers(kBusyNumbers, 0);
      GemmLaunch<float> launch{};
      launch.saved = saved.data();
      launch.columns = columns;
      launch.pitch = columns;
      launch.moves = moves.data();
      launch.busy = numbers.data();
      plan_moves_on_host(launch, target, 7);
      auto after = busy;
      for (std::int32_t i = 0; i < numbers[kMoveCount]; ++i) {
        const auto to = static_cast<std::size_t>(moves[static_cast<std::size_t>(i)]);
        const auto from = static_cast<std::size_t>(moves[static_cast<std::size_t>(columns + i)]);
        ASSERT_LT(to, static_cast<std::size_t>(target));
        ASSERT_GE(from, static_cast<std::size_t>(target));
        ASSERT_EQ(after[to], 0);
        ASSERT_EQ(after[from], 1);
        std::swap(after[to], after[from]);
      }
      EXPECT_EQ(std::count(after.begin(), after.begin() + target, 1), count);
      EXPECT_EQ(std::count(after.begin() + target, after.end(), 1), 0);
    }
  }
}

}  // namespace
}  // namespace lockstep::ode::cuda

// The kernels' own source, run by the host, against the CPU engine: the same bits over methods, sizes, save points,
// events and failures; and the engine's batches through little memory. With LOCKSTEP_TEST_DEVICE=cuda the same problems
// run on this machine's first GPU (scripts/gpu_check.sh).
#include "lockstep/ode/cuda/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/cuda/testing/on_both.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/cuda/testing/threshold.h"
#include "lockstep/ode/cuda/testing/uneven_ensemble.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/testing/plain_function.h"

namespace lockstep::ode::cuda {
namespace {

using ::testing::HasSubstr;

class OnTheDevice : public ::testing::TestWithParam<std::tuple<std::string_view, Precision>> {};

TEST_P(OnTheDevice, every_method_has_the_bits_of_the_cpu_engine) {
  const auto [name, precision] = GetParam();
  const Options options = set_for(name, precision);
  const std::string suffix = precision == Precision::f32 ? "_f32" : "_f64";
  const bool compiled = name == "rk4" || name == "tsit5" || name == "dop853";
  EXPECT_EQ(expect_same_on_both(lorenz(71), options),
            compiled ? "lorenz_" + std::string(name) + suffix : "general_small" + suffix);
  expect_same_on_both(lorenz(37), fixed(options, 0.01));
  expect_same_on_both(lorenz(5), fixed(options, 0.0173));
}

TEST_P(OnTheDevice, every_method_has_the_same_bits_from_its_table) {
  const auto [name, precision] = GetParam();
  // No kernel of its own knows this sum.
  const Mlp mlp = mlp::random_mlp({3, 20, 3}, {ActivationKind::tanh}, 7);
  const Problem problem = uneven(sum(system("lorenz"), net(mlp)), {1, 2, 20}, {10, 28, 8.0 / 3}, 13, 0.2);
  const Options options = set_for(name, precision);
  EXPECT_THAT(expect_same_on_both(problem, options), HasSubstr("general_small"));
  expect_same_on_both(problem, fixed(options, 0.01));
}

std::string test_name(const ::testing::TestParamInfo<OnTheDevice::ParamType>& info) {
  return std::string(std::get<0>(info.param)) + (std::get<1>(info.param) == Precision::f32 ? "_f32" : "_f64");
}
INSTANTIATE_TEST_SUITE_P(methods, OnTheDevice,
                         ::testing::Combine(::testing::ValuesIn(explicit_method_names()),
                                            ::testing::Values(Precision::f32, Precision::f64)),
                         test_name);

TEST(DeviceKernels, have_the_same_bits_for_every_count_of_trajectories) {
  for (const std::size_t count : {0u, 1u, 2u, 31u, 32u, 33u, 101u}) {
    SCOPED_TRACE(count);
    expect_same_on_both(lorenz(count), set_for("tsit5", Precision::f32));
    expect_same_on_both(lorenz(count), set_for("tsit5", Precision::f64));
  }
}

TEST(DeviceKernels, have_the_same_bits_for_every_built_in_system) {
  for (const std::string_view name : system_names()) {
    SCOPED_TRACE(name);
    const SystemInfo& info = system_info(name);
    const Problem problem = uneven(system(name), info.default_initial_state, info.default_parameters, 5,
                                   std::min(0.05, info.default_end_time));
    expect_same_on_both(problem, set_for("tsit5", Precision::f32));
    expect_same_on_both(problem, set_for("dop853", Precision::f64));
  }
}

TEST(DeviceKernels, fold_a_net_of_one_hidden_layer_with_the_same_bits) {
  std::size_t turn = 0;
  for (const std::size_t width : {1u, 3u, 31u, 100u, 129u}) {
    SCOPED_TRACE(width);
    for (const std::size_t n : {2u, 3u}) {
      Mlp mlp = mlp::random_mlp({n, width, n}, {ActivationKind::tanh}, static_cast<unsigned>(width));
      const auto run = [&](Precision precision) {
        if (!is_tried(turn++, 3)) return;
        const Problem problem = uneven(net(mlp), std::vector<double>(n, 0.5), {}, 11, 2);
        EXPECT_EQ(expect_same_on_both(problem, set_for("tsit5", precision)),
                  "net" + std::to_string(n) + (precision == Precision::f32 ? "_tanh_tsit5_f32" : "_tanh_tsit5_f64"));
      };
      run(Precision::f32);
      run(Precision::f64);
      mlp.input_scaling = {std::vector<double>(n, 0.1), std::vector<double>(n, 1.7)};
      run(Precision::f32);
      mlp.output_scaling = {std::vector<double>(n, 0.9), {}};
      run(Precision::f32);
      mlp.input_scaling = {};
      run(Precision::f64);
    }
  }
}

TEST(DeviceKernels, run_nets_of_any_depth_activation_parameters_and_time) {
  std::size_t turn = 0;
  for (const Activation& activation : all_activations()) {
    SCOPED_TRACE(to_string(activation));
    const Mlp mlp = mlp::random_mlp({7, 31, 9, 3}, activation, 3);
    const Problem problem = uneven(net(mlp, {"net", true}), {0.5, 0.2, -0.4}, {0.3, 0.2, -0.1}, 5, 1);
    if (is_tried(turn++, 3)) {
      EXPECT_EQ(expect_same_on_both(problem, set_for("tsit5", Precision::f32)), "general_small_f32");
    }
    if (is_tried(turn++, 3)) expect_same_on_both(problem, set_for("bs3", Precision::f64));
  }
  const Mlp widest = mlp::random_mlp({3, 257, 3}, {ActivationKind::relu}, 5);
  EXPECT_EQ(expect_same_on_both(uneven(net(widest), {0.5, 0.2, -0.4}, {}, 3, 1), set_for("tsit5", Precision::f32)),
            "general_f32");
}

// Runs of fixed steps among which nothing happens: up to save points, ends, limits and failures; at times that do not
// tell one step from the next.
TEST(DeviceKernels, take_runs_of_fixed_steps_as_the_cpu_engine_does) {
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    Options options = fixed(set_for("rk4", precision), 0.003);
    const Problem problem = lorenz(23);
    EXPECT_EQ(expect_same_on_both(problem, options), precision == Precision::f32 ? "lorenz_rk4_f32" : "lorenz_rk4_f64");
    for (options.max_steps = 1; options.max_steps < 110; ++options.max_steps) expect_same_on_both(problem, options);
    Problem ends = problem;
    ends.save_times.clear();
    ends.save_times_per_trajectory = false;
    expect_same_on_both(ends, set_for("rk4", precision));
    ends.end_times.assign(ends.trajectories(), 60);
    expect_same_on_both(ends, fixed(options, 0.2));
    EXPECT_EQ(solve(ends, fixed(set_for("rk4", precision), 0.2)).record(0).status, Status::not_finite);
    Problem late = problem;
    for (std::vector<double>* times : {&late.start_times, &late.end_times, &late.save_times})
      for (double& time : *times) time = 1.7e9 + 1e-3 * time;
    expect_same_on_both(late, fixed(set_for("rk4", precision), 1e-7));
  }
}

// A net of the widths that blocks of threads evaluate together.
Mlp wide_net(std::size_t inputs, std::size_t outputs, ActivationKind kind = ActivationKind::tanh) {
  return mlp::random_mlp({inputs, 33, outputs}, {kind}, 11);
}

TEST(TilesOnTheDevice, have_the_bits_of_the_cpu_engine_for_every_method) {
  const Problem problem = uneven(net(wide_net(3, 3, ActivationKind::silu)), {0.5, 0.2, -0.4}, {}, 7, 0.2);
  std::size_t turn = 0;
  for (const std::string_view name : explicit_method_names()) {
    SCOPED_TRACE(name);
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      if (!is_tried(turn++, 5)) continue;
      EXPECT_EQ(expect_same_on_both(problem, set_for(name, precision)),
                precision == Precision::f32 ? "tiles_f32" : "tiles_f64");
    }
  }
  expect_same_on_both(problem, fixed(set_for("tsit5", Precision::f32), 0.0173));
}

TEST(TilesOnTheDevice, refill_for_every_count_of_trajectories) {
  std::size_t turn = 0;
  for (const std::size_t count : {0u, 1u, 2u, 31u, 33u, 64u, 65u, 211u}) {
    SCOPED_TRACE(count);
    const Problem problem = uneven(net(wide_net(2, 2, ActivationKind::elu)), {0.5, 0.2}, {}, count, 0.2);
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      if (is_tried(turn++, 7)) expect_same_on_both(problem, set_for("tsit5", precision));
    }
  }
}

TEST(TilesOnTheDevice, run_every_width_of_layers) {
  std::size_t turn = 0;
  for (const std::size_t width : {32u, 100u, 128u, 129u, 256u}) {
    SCOPED_TRACE(width);
    const Mlp mlp = mlp::random_mlp({3, width, 9, 3}, {ActivationKind::relu}, 5);
    const Problem problem = uneven(net(mlp), {0.5, 0.2, -0.4}, {}, 3, 0.1);
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      if (!is_tried(turn++, 9)) continue;
      EXPECT_EQ(expect_same_on_both(problem, set_for("bs3", precision)),
                precision == Precision::f32 ? "tiles_f32" : "tiles_f64");
    }
  }
  // As many components as there may be.
  const Problem large = uneven(net(wide_net(64, 64)), std::vector<double>(64, 0.3), {}, 3, kSanitized ? 0.05 : 0.2);
  EXPECT_EQ(expect_same_on_both(large, set_for("tsit5", Precision::f64)), "tiles_f64");
}

TEST(TilesOnTheDevice, add_up_systems_and_nets_with_parameters_time_and_scalings) {
  Mlp scaled = wide_net(7, 3);
  scaled.input_scaling = {std::vector<double>(7, 0.1), std::vector<double>(7, 1.7)};
  scaled.output_scaling = {std::vector<double>(3, 0.9), std::vector<double>(3, 0.2)};
  const Mlp other = mlp::random_mlp({3, 5, 3}, {ActivationKind::silu}, 4);
  const Rhs rhs = sum(sum(system("lorenz"), net(scaled, {"net", true})), net(other));
  const Problem problem = uneven(rhs, {1, 2, 20}, {10, 28, 8.0 / 3, 0.3, 0.2, -0.1}, 9, 0.1);
  EXPECT_EQ(expect_same_on_both(problem, set_for("tsit5", Precision::f32)), "tiles_f32");
  EXPECT_EQ(expect_same_on_both(problem, set_for("dop853", Precision::f64)), "tiles_f64");
}

TEST(TilesOnTheDevice, end_trajectories_as_the_cpu_engine_does) {
  const double span = kSanitized ? 0.2 : 1;
  Problem problem = uneven(net(wide_net(3, 3, ActivationKind::square)), {0.5, 0.2, -0.4}, {}, 9, span);
  problem.initial_states[3] = 1e200;  // infinite in float32; beyond repair in float64 after a stage
  std::size_t turn = 0;
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    const Options adaptive = set_for("tsit5", precision);
    Options stopped = adaptive;
    stopped.max_steps = 7;
    Options limited = adaptive;
    limited.initial_step = 0.01;
    limited.max_step = 0.02;
    limited.max_steps = 100;
    for (const Options& options : {adaptive, fixed(adaptive, 0.01), stopped, limited}) {
      if (is_tried(turn++, 5)) expect_same_on_both(problem, options);
    }
  }
  problem.save_times.clear();
  problem.save_times_per_trajectory = false;
  problem.end_times[4] = problem.start_times[4];  // an empty span
  expect_same_on_both(problem, set_for("tsit5", Precision::f64));
}

TEST(DeviceKernels, end_where_a_step_of_a_run_is_not_finite) {
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    // On its axis Lorenz's z grows by 2.71 a step: each is too large a step later than the one before, or two.
    Problem problem;
    problem.rhs = system("lorenz");
    problem.parameters = {10, 28, -20};
    const double first = precision == Precision::f32 ? 80 : 700;
    for (int i = 0; i < 150; ++i)
      problem.initial_states.insert(problem.initial_states.end(), {0, 0, std::exp(first - 1.01 * i)});
    problem.end_times = {9};
    const Options options = fixed(set_for("rk4", precision), 0.05);
    expect_same_on_both(problem, options);
    std::set<std::int64_t> places;  // in 64 steps and the one after
    const Solution solution = solve(problem, options);
    for (const TrajectoryRecord& record : solution.records()) {
      EXPECT_EQ(record.status, Status::not_finite);
      places.insert(record.accepted % 65);
    }
    EXPECT_GT(places.size(), 60u);
    problem.save_times = {0, 0.7, 1.4, 2.5, 2.55, 7.3, 9};
    expect_same_on_both(problem, options);
  }
}
TEST(DeviceKernels, share_inputs_that_the_problem_shares) {
  Problem problem;
  problem.rhs = system("lorenz");
  for (int i = 0; i < 40; ++i) problem.initial_states.insert(problem.initial_states.end(), {1.0 + i, 1, 1});
  problem.parameters = {10, 28, 8.0 / 3};
  problem.end_times = {0.5};
  expect_same_on_both(problem, set_for("tsit5", Precision::f64));  // nothing saved
  problem.save_times = {0, 0.1, 0.25, 0.5};
  expect_same_on_both(problem, set_for("tsit5", Precision::f64));
  expect_same_on_both(problem, set_for("rk4", Precision::f32));
}

TEST(DeviceKernels, end_broken_trajectories_as_the_cpu_engine_does) {
  Problem problem = lorenz(9);
  problem.initial_states[3] = 1e200;  // blows up at once
  problem.initial_states[6] = 1e30;   // infinite in float32 after a stage
  Problem unsaved = problem;
  unsaved.save_times.clear();
  unsaved.end_times[4] = unsaved.start_times[4];  // an empty span
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    Options options = set_for("tsit5", precision);
    expect_same_on_both(problem, options);
    expect_same_on_both(problem, fixed(options, 0.01));
    expect_same_on_both(unsaved, options);
    expect_same_on_both(unsaved, fixed(options, 0.01));
    options.max_steps = 7;
    expect_same_on_both(problem, options);
    options.max_steps = 1;
    options.initial_step = 0.01;
    expect_same_on_both(problem, options);
    options.max_steps = 100;
    options.max_step = 0.02;
    expect_same_on_both(problem, options);
    expect_same_on_both(problem, fixed(options, 0.001));
  }
  // A pole: the step shrinks until time stands still.
  Mlp square;
  square.layers = {{1, 1, {1}, {0}, {ActivationKind::square}}};
  const Problem pole = uneven(net(square), {1}, {}, 4, 1.5);
  expect_same_on_both(pole, set_for("tsit5", Precision::f64));
  expect_same_on_both(pole, set_for("dop853", Precision::f32));
}

TEST(DeviceKernels, scale_errors_by_the_tolerance_of_each_component) {
  const Mlp folded = mlp::random_mlp({3, 20, 3}, {ActivationKind::tanh}, 7);
  const auto lorenz_end = [](const Options& options) { return solve(lorenz(3), options).end_state(0, 0); };
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    for (const std::string_view name : {"tsit5", "dop853", "bs3"}) {
      Options options = set_for(name, precision);
      const double even = lorenz_end(options);
      options.component_atol = {1e-2, 1e-4, 3e-6};
      EXPECT_NE(lorenz_end(options), even);  // or the tolerances would not matter here
      expect_same_on_both(lorenz(33), options);
      expect_same_on_both(uneven(net(folded), {1, 2, 3}, {}, 5, 0.5), options);
      expect_same_on_both(uneven(sum(system("lorenz"), net(folded)), {1, 2, 20}, {10, 28, 8.0 / 3}, 5, 0.2), options);
      expect_same_on_both(uneven(net(wide_net(3, 3)), {0.5, 0.2, -0.4}, {}, 5, 0.2), options);
    }
  }
}

TEST(DeviceKernels, stop_at_events_where_the_cpu_engine_does) {
  for (const auto direction :
       {TerminalEvent::Direction::either, TerminalEvent::Direction::rising, TerminalEvent::Direction::falling}) {
    for (const std::string_view name : {"tsit5", "dop853", "bs3"}) {
      Problem problem = lorenz(23);
      problem.event = {threshold(3, 3, 0, 6.5), direction};
      expect_same_on_both(problem, set_for(name, Precision::f64));
      expect_same_on_both(problem, set_for(name, Precision::f32));
      expect_same_on_both(problem, fixed(set_for(name, Precision::f32), 0.01));
    }
  }
}

// Thresholds close to an oscillator's largest values, passed and come back over within a step.
TEST(DeviceKernels, find_turns_within_steps_as_the_cpu_engine_does) {
  for (const double level : {0.98, 0.7}) {
    for (const auto direction : {TerminalEvent::Direction::rising, TerminalEvent::Direction::falling}) {
      for (const std::string_view name : {"tsit5", "vern7", "rk4", "rkc8"}) {
        Problem problem = uneven(system("harmonic_oscillator"), {0.1, 1}, {1}, 33, 12);
        problem.event = {threshold(2, 1, 0, level), direction};
        for (const Precision precision : {Precision::f64, Precision::f32}) {
          Options options = set_for(name, precision);
          if (!method(name).error.empty()) options.rtol = options.atol = 1e-3;
          expect_same_on_both(problem, options);
          expect_same_on_both(problem, fixed(options, 0.7));
        }
      }
    }
  }
}

TEST(TilesOnTheDevice, stop_at_events_where_the_cpu_engine_does) {
  std::size_t turn = 0;
  for (const std::string_view name : {"tsit5", "dop853", "bs3"}) {
    Problem problem = uneven(net(wide_net(3, 3, ActivationKind::silu)), {0.5, 0.2, -0.4}, {}, 11, 1);
    problem.event = {threshold(3, 0, 0, 0.45), TerminalEvent::Direction::either};
    for (const Precision precision : {Precision::f64, Precision::f32}) {
      if (is_tried(turn++, 5)) expect_same_on_both(problem, set_for(name, precision));
      // Values that the component comes to between the ends of one long step.
      for (const double level : {0.49, 0.505, 0.51, 0.52}) {
        problem.event = {threshold(3, 0, 0, level), TerminalEvent::Direction::falling};
        if (is_tried(turn++, 5)) expect_same_on_both(problem, fixed(set_for(name, precision), 1));
      }
    }
  }
}

TEST(DeviceBatches, halve_until_they_fit_with_the_same_bits) {
  const Problem problem = lorenz(301);
  const Options options = set_for("tsit5", Precision::f64);
  const Solution expected = solve(problem, options);
  HostDevice device;
  device.memory = 60'000;
  Summary summary;
  expect_same(expected, solve_on(device, problem, options, std::size_t{1} << 28, &summary));
  EXPECT_GT(device.batches.size(), 2u);
  EXPECT_EQ(summary.count_of[0], 301u);
  EXPECT_EQ(device.used, 0u);
  HostDevice tight;
  expect_same(expected, solve_on(tight, problem, options, 30'000));  // a small budget instead
  EXPECT_GT(tight.batches.size(), 2u);
  HostDevice failing;
  failing.failing_launches = 2;  // memory that a launch itself needs
  expect_same(expected, solve_on(failing, problem, options));
  EXPECT_LT(failing.batches.front(), 301u);
}

TEST(DeviceBatches, are_small_beside_a_large_ensemble) {
  Problem problem;
  problem.rhs = system("lorenz");
  problem.parameters = {10, 28, 8.0 / 3};
  problem.end_times = {0.01};
  for (std::size_t i = 0; i < 70'000; ++i)
    problem.initial_states.insert(problem.initial_states.end(), {1 + 1e-5 * static_cast<double>(i), 1, 20});
  const Options options = fixed(set_for("rk4", Precision::f32), 0.01);
  HostDevice device;
  expect_same(solve(problem, options), solve_on(device, problem, options));
  EXPECT_THAT(device.batches, ::testing::ElementsAre(65'536, 4464));
}

// Where each guard acts: no component starts outside, each would leave in time.
Range narrow_range(std::size_t components, std::size_t parameters) {
  Range range{std::vector<double>(components, -0.5), std::vector<double>(components, 0.55)};
  range.minimum[1] = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < parameters; ++i) {
    range.minimum.push_back(-0.05);
    range.maximum.push_back(0.1);
  }
  return range;
}

TEST(DeviceKernels, guard_the_training_range_as_the_cpu_engine_does) {
  std::size_t turn = 0;
  for (const std::size_t width : {20u, 33u}) {  // by threads and by tiles
    const Mlp mlp = mlp::random_mlp({7, width, 3}, {ActivationKind::tanh}, 3);
    const Rhs rhs = net(mlp, {"net", true});
    Problem stopped = uneven(rhs, {0.4, 0.2, -0.3}, {0.3, 0.2, -0.1}, 9, 2);
    Problem clamped = stopped;
    stopped.event = leaves_range(rhs, narrow_range(3, 3));
    clamped.rhs = clamp_to_range(rhs, narrow_range(3, 3));
    Problem sums = clamped;
    sums.rhs = sum(clamped.rhs, net(mlp::random_mlp({3, 5, 3}, {ActivationKind::silu}, 4)));
    const Mlp plain_net = mlp::random_mlp({3, width, 3}, {ActivationKind::tanh}, 3);
    const Problem folded = uneven(clamp_to_range(net(plain_net), narrow_range(3, 0)), {0.4, 0.2, -0.3}, {}, 9, 2);
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      const Options options = set_for("tsit5", precision);
      const std::string precise = precision == Precision::f32 ? "_f32" : "_f64";
      const std::string kernel = (width == 20 ? "general_small" : "tiles") + precise;
      for (const Problem& problem : {stopped, clamped, sums, folded}) {
        if (!is_tried(turn++, 5)) continue;
        EXPECT_EQ(expect_same_on_both(problem, options), kernel);
      }
    }
    const Options options = set_for("tsit5", Precision::f64);
    const auto ended = [](const TrajectoryRecord& record) { return record.status == Status::terminated; };
    const Solution at_the_edge = solve(stopped, options);
    EXPECT_TRUE(std::any_of(at_the_edge.records().begin(), at_the_edge.records().end(), ended));
    Problem unclamped = clamped;
    unclamped.rhs = rhs;
    EXPECT_NE(solve(clamped, options).state(0, 4, 0), solve(unclamped, options).state(0, 4, 0));
  }
}

std::string message_of(HostDevice& device, const Problem& problem, const Options& options) {
  return lockstep::message_of([&] { solve_on(device, problem, options); });
}

TEST(DeviceErrors, name_the_kernel_and_say_what_to_try) {
  HostDevice device;
  device.failing_launches = 1;
  device.failures_are_memory = false;
  const std::string text = message_of(device, lorenz(40), set_for("tsit5", Precision::f64));
  EXPECT_THAT(text, HasSubstr("cuda kernel lorenz_tsit5_f64: found an illegal memory access was encountered"));
  EXPECT_THAT(text, HasSubstr("--device cpu"));
  HostDevice tiny;
  tiny.memory = 1000;
  EXPECT_THAT(message_of(tiny, lorenz(40), set_for("tsit5", Precision::f64)), HasSubstr("cuda memory"));
}

TEST(DeviceErrors, refuse_what_the_kernels_cannot_run) {
  HostDevice device;
  Problem problem = lorenz(4);
  Options options = set_for("tsit5", Precision::f64);
  options.control = StepControl::common;
  EXPECT_THAT(message_of(device, problem, options), HasSubstr("options.control: found common"));
  options.control = StepControl::per_trajectory;
  problem.event = {testing::plain_event(3, 3, [](double, auto u, auto, auto out) { out(0) = u(0); })};
  EXPECT_THAT(message_of(device, problem, options), HasSubstr("problem.event"));
  problem.event.reset();
  problem.rhs = testing::plain_function(3, 3, [](double, auto u, auto, auto du) { du(0) = du(1) = du(2) = u(0); });
  EXPECT_THAT(message_of(device, problem, options), HasSubstr("your own code"));
  const Mlp wide = mlp::random_mlp({3, 600, 3}, {ActivationKind::tanh}, 1);
  problem = uneven(net(wide), {0, 0, 0}, {}, 3, 1);
  EXPECT_THAT(message_of(device, problem, options), HasSubstr("a net 600 wide"));
}

}  // namespace
}  // namespace lockstep::ode::cuda

// Ensembles that lie on the device already (here the host stands in for one): the bits of solve() in every layout, no
// memory taken by a solve, and arrays that are missing.
#include "lockstep/ode/device_solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/cuda/testing/card_graph.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/compile.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/cuda/program_derivative.h"
#include "lockstep/ode/cuda/testing/host_runtime.h"
#include "lockstep/ode/cuda/testing/moved_jumps.h"
#include "lockstep/ode/methods/tsit5.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

using ::testing::HasSubstr;

class OnDevice : public ::testing::Test {
 protected:
  OnDevice() : runtime_(device_) {
    cuda::Fault fault;
    loaded_.runtime = &runtime_;
    loaded_.devices = runtime_.devices(fault);
    cuda::replace_runtime(&loaded_);
  }
  ~OnDevice() override { cuda::replace_runtime(nullptr); }

  cuda::HostDevice device_;
  cuda::HostRuntime runtime_;
  cuda::LoadedRuntime loaded_;
};

Options options_for(Precision precision) {
  Options options;
  options.precision = precision;
  options.rtol = options.atol = 1e-5;
  options.stops = {0.2, 0.3};
  return options;
}

Problem problem_of(Rhs rhs, std::size_t count) {
  Problem problem;
  const std::size_t n = rhs->components(), m = rhs->parameters();
  problem.rhs = std::move(rhs);
  const double usual[] = {10, 28, 8.0 / 3};
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t c = 0; c < n; ++c)
      problem.initial_states.push_back(static_cast<float>(0.5 + 0.01 * static_cast<double>(i + c)));
    for (std::size_t p = 0; p < m; ++p)
      problem.parameters.push_back(static_cast<float>(usual[p % 3] + 0.01 * static_cast<double>(i)));
    problem.end_times.push_back(0.5 + 0.01 * static_cast<double>(i));
  }
  problem.save_times = {0, 0.25, 0.5};
  return problem;
}

// An ensemble in one layout or the other, solved twice by one solver; its numbers against solve()'s.
template <class T>
void expect_the_bits_of_solve(const Problem& problem, bool trajectories_together, const cuda::HostDevice& device) {
  const std::size_t count = problem.trajectories(), n = problem.rhs->components(), m = problem.rhs->parameters();
  const std::size_t saves = problem.save_points();
  const auto at = [&](std::size_t i, std::size_t c, std::size_t width) {
    return trajectories_together ? c * count + i : i * width + c;
  };
  std::vector<T> u0(count * n), p(count * m + 1), states(count * saves * n), end(count * n);
  std::vector<TrajectoryRecord> records(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t c = 0; c < n; ++c) u0[at(i, c, n)] = static_cast<T>(problem.initial_states[i * n + c]);
    for (std::size_t c = 0; c < m; ++c) p[at(i, c, m)] = static_cast<T>(problem.parameters[i * m + c]);
  }
  const auto array = [&](auto* data, std::size_t width) {
    return DeviceArray<std::remove_pointer_t<decltype(data)>>{
        data, static_cast<std::int64_t>(trajectories_together ? 1 : width),
        static_cast<std::int64_t>(trajectories_together ? count : 1)};
  };
  DeviceEnsemble<T> ensemble{.trajectories = static_cast<std::int64_t>(count),
                             .initial_states = array(static_cast<const T*>(u0.data()), n),
                             .parameters = array(static_cast<const T*>(p.data()), m),
                             .start_times = {problem.start_times.data()},
                             .end_times = {problem.end_times.data(), 1},
                             .save_times = {problem.save_times.data()},
                             .save_points = static_cast<std::int32_t>(saves),
                             .states = array(states.data(), saves * n),
                             .end_states = array(end.data(), n),
                             .records = records.data()};
  ensemble.states.time = static_cast<std::int64_t>(trajectories_together ? n * count : n);
  Options options = options_for(kPrecisionOf<T>);
  DeviceSolver<T> solver(problem.rhs, options, nullptr);
  const std::size_t used = device.used;
  solver.enqueue(ensemble);
  std::fill(states.begin(), states.end(), T(0));
  solver.enqueue(ensemble);
  EXPECT_EQ(device.used, used) << "a solve takes no memory";

  options.device = DeviceChoice::cpu();
  const Solution expected = solve(problem, options);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(records[i].accepted, expected.record(i).accepted);
    for (std::size_t c = 0; c < n; ++c) {
      ASSERT_EQ(end[at(i, c, n)], expected.end_states<T>()[i * n + c]);
      for (std::size_t s = 0; s < saves; ++s) {
        const std::size_t place = trajectories_together ? (s * n + c) * count + i : (i * saves + s) * n + c;
        ASSERT_EQ(states[place], expected.states<T>()[(i * saves + s) * n + c]) << i << " " << s << " " << c;
      }
    }
  }
}

TEST_F(OnDevice, has_the_bits_of_solve_in_either_layout) {
  const Mlp mlp = mlp::random_mlp({3, 20, 3}, {ActivationKind::tanh}, 7);
  // Kernels of one shape, and the general one, which reads parameters where they lie.
  for (const Rhs& rhs : {system("lorenz"), net(mlp), sum(system("lorenz"), net(mlp))}) {
    for (const bool together : {false, true}) {
      expect_the_bits_of_solve<float>(problem_of(rhs, 37), together, device_);
      expect_the_bits_of_solve<double>(problem_of(rhs, 5), together, device_);
    }
  }
}

template <class T>
using OscillatorBody =
    cuda::KernelBody<T, cuda::CompiledScheme<Tsit5>, cuda::SystemDerivative<systems::HarmonicOscillator, T>>;
template <class T>
using NetBody = cuda::KernelBody<T, cuda::CompiledScheme<Tsit5>, cuda::FoldedNetDerivative<4, ActivationKind::relu, T>>;

TEST_F(OnDevice, takes_a_kernel_of_the_problems_own_shape_where_it_can_be_had) {
  const auto cache = std::filesystem::path(::testing::TempDir()) / ("lockstep_special_" + std::to_string(::getpid()));
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const auto keep = [&](const cuda::KernelSource& source) {
    cuda::keep_kernel(cuda::kept_kernel_path(source, loaded_.devices[0]), {'c', 'o', 'd', 'e'});
    return source.name;
  };
  const Mlp mlp = mlp::random_mlp({4, 12, 4}, {ActivationKind::relu}, 7);
  const std::string oscillator = keep(cuda::make_system_source("harmonic_oscillator", 2, "tsit5", Precision::f64));
  const std::string relu = cuda::make_folded_net_source(4, ActivationKind::relu, 0, "tsit5", Precision::f64).name;
  keep(cuda::make_folded_net_source(4, ActivationKind::relu, 0, "tsit5", Precision::f64));
  Options options = options_for(Precision::f64);
  // No device can load it: the general one serves.
  EXPECT_EQ(DeviceSolver<double>(system("harmonic_oscillator"), options, nullptr).kernel(), "general_small_f64");
  device_.sources[oscillator] = [](cuda::HostDevice& device, const void* launch) {
    cuda::run_body<OscillatorBody<double>>(device, "harmonic_oscillator", launch);
  };
  device_.sources[relu] = [](cuda::HostDevice& device, const void* launch) {
    cuda::run_body<NetBody<double>>(device, "relu", launch);
  };
  EXPECT_EQ(DeviceSolver<double>(system("harmonic_oscillator"), options, nullptr).kernel(), oscillator);
  EXPECT_EQ(DeviceSolver<double>(net(mlp), options, nullptr).kernel(), relu);
  for (const bool together : {false, true}) {
    expect_the_bits_of_solve<double>(problem_of(system("harmonic_oscillator"), 37), together, device_);
    expect_the_bits_of_solve<double>(problem_of(net(mlp), 5), together, device_);
  }
  // Three solvers, each with a solve of nothing; two of them solve twice.
  EXPECT_EQ(device_.launches["harmonic_oscillator"], 7);
  EXPECT_EQ(device_.launches["relu"], 7);
  unsetenv("XDG_CACHE_HOME");
  std::filesystem::remove_all(cache);
}

TEST_F(OnDevice, may_write_end_states_over_initial_ones_and_leave_records_out) {
  const Problem problem = problem_of(system("lorenz"), 33);
  std::vector<float> state(problem.initial_states.begin(), problem.initial_states.end());
  const std::vector<float> parameters(problem.parameters.begin(), problem.parameters.end());
  DeviceSolver<float> solver(problem.rhs, options_for(Precision::f32), nullptr);
  EXPECT_EQ(solver.kernel(), "lorenz_tsit5_f32");
  solver.enqueue({.trajectories = 33,
                  .initial_states = {state.data(), 3},
                  .parameters = {parameters.data(), 3},
                  .start_times = {problem.start_times.data()},
                  .end_times = {problem.end_times.data(), 1},
                  .end_states = {state.data(), 3}});
  Options options = options_for(Precision::f32);
  options.device = DeviceChoice::cpu();
  const Solution expected = solve(problem, options);
  EXPECT_TRUE(std::ranges::equal(state, expected.end_states<float>()));
}

TEST_F(OnDevice, names_the_array_or_option_that_is_wrong) {
  const Options options = options_for(Precision::f32);
  DeviceSolver<float> solver(system("lorenz"), options, nullptr);
  solver.enqueue({});  // nothing to do
  std::vector<float> numbers(30);
  const double time = 1;
  DeviceEnsemble<float> ensemble{.trajectories = 2};
  const auto said = [&] { return message_of([&] { solver.enqueue(ensemble); }); };
  EXPECT_THAT(said(), HasSubstr("ensemble.initial_states: found a null pointer"));
  ensemble.initial_states = {numbers.data(), 3};
  ensemble.start_times = ensemble.end_times = {&time};
  ensemble.end_states = {numbers.data(), 3};
  EXPECT_THAT(said(), HasSubstr("ensemble.parameters: found a null pointer"));
  ensemble.parameters = {numbers.data()};
  ensemble.save_points = 2;
  EXPECT_THAT(said(), HasSubstr("ensemble.save_times"));
  ensemble.save_times = {&time};
  ensemble.states = {numbers.data(), 6};
  EXPECT_THAT(said(), HasSubstr("ensemble.states: found strides 6 (trajectory), 0 (time) and 1 (component), with"));
  ensemble.states.time = 2;  // save points that overlap
  EXPECT_THAT(said(), HasSubstr("ensemble.states: found strides 6 (trajectory), 2 (time)"));
  ensemble.states.time = 3;
  ensemble.end_states = {numbers.data(), 0};
  EXPECT_THAT(said(), HasSubstr("ensemble.end_states: found strides 0 (trajectory)"));
  ensemble.trajectories = -1;
  EXPECT_THAT(said(), HasSubstr("ensemble.trajectories: found -1"));

  EXPECT_THAT(message_of([&] { DeviceSolver<double>(system("lorenz"), options, nullptr); }),
              HasSubstr("options.precision: found f32"));
  Options elsewhere = options;
  elsewhere.device = DeviceChoice::cpu();
  EXPECT_THAT(message_of([&] { DeviceSolver<float>(system("lorenz"), elsewhere, nullptr); }),
              HasSubstr("expected one GPU"));
  EXPECT_THAT(message_of([&] { DeviceSolver<float>(nullptr, options, nullptr); }), HasSubstr("rhs: found null"));
  const Rhs moved = cuda::moved_jumps(2, 9);
  EXPECT_THAT(message_of([&] { DeviceSolver<float>(moved, options, nullptr); }),
              HasSubstr("rhs: found one that jumps or bends at times that parameters or spans tell, which lie on the device"));
  Options passing = options;
  passing.stop_at_knots = false;
  EXPECT_NO_THROW(DeviceSolver<float>(moved, passing, nullptr));
  device_.failing_launches = 1;
  device_.failures_are_memory = false;
  ensemble = {.trajectories = 1,
              .initial_states = {numbers.data(), 3},
              .parameters = {numbers.data()},
              .start_times = {&time},
              .end_times = {&time},
              .end_states = {numbers.data() + 9, 3}};
  EXPECT_THAT(said(), HasSubstr("kernel lorenz_tsit5_f32: found an illegal memory access"));
  // A device that cannot run the kernel says so before anything is queued.
  device_.failing_launches = 1;
  EXPECT_THAT(message_of([&] { DeviceSolver<float>(system("lorenz"), options, nullptr); }),
              HasSubstr("kernel lorenz_tsit5_f32: found an illegal memory access"));
}

// With LOCKSTEP_TEST_DEVICE=cuda, on this machine's first GPU and its default stream.
TEST(DeviceSolverOnACard, has_the_bits_of_solve_also_from_a_cuda_graph) {
  const char* const wanted = std::getenv("LOCKSTEP_TEST_DEVICE");
  if (wanted == nullptr || std::string_view(wanted) != "cuda") GTEST_SKIP() << "LOCKSTEP_TEST_DEVICE is not cuda";
  const cuda::LoadedRuntime& loaded = cuda::load_runtime();
  ASSERT_NE(loaded.runtime, nullptr) << loaded.missing;
  const int device = loaded.devices.front().index;
  cuda::Fault fault;
  const auto stream = loaded.runtime->borrow_stream(device, nullptr, fault);
  ASSERT_NE(stream, nullptr) << fault.text;
  const Problem problem = problem_of(system("lorenz"), 1000);
  const auto upload = [&]<class T>(const std::vector<double>& numbers, T) {
    const std::size_t bytes = numbers.size() * sizeof(T);
    T* const pinned = static_cast<T*>(stream->allocate_pinned(bytes));
    std::ranges::transform(numbers, pinned, [](double x) { return static_cast<T>(x); });
    T* const memory = static_cast<T*>(stream->allocate(bytes));
    stream->upload(memory, pinned, bytes);
    return memory;
  };
  float* const state = upload(problem.initial_states, float());
  float* const end_state = upload(problem.initial_states, float());
  const DeviceEnsemble<float> ensemble{.trajectories = 1000,
                                       .initial_states = {state, 3},
                                       .parameters = {upload(problem.parameters, float()), 3},
                                       .start_times = {upload(problem.start_times, double())},
                                       .end_times = {upload(problem.end_times, double()), 1},
                                       .end_states = {end_state, 3}};
  DeviceSolver<float> solver(problem.rhs, options_for(Precision::f32), nullptr);
  solver.enqueue(ensemble);
  auto* const result = static_cast<float*>(stream->allocate_pinned(3000 * sizeof(float)));
  const auto download = [&] {
    stream->download(result, end_state, 3000 * sizeof(float));
    return stream->wait();
  };
  ASSERT_FALSE(download().happened);
  Options options = options_for(Precision::f32);
  options.device = DeviceChoice::cpu();
  const Solution expected = solve(problem, options);
  EXPECT_TRUE(std::ranges::equal(std::span(result, 3000), expected.end_states<float>()));

  lockstep::cuda::testing::CardGraph graph;
  DeviceSolver<float> captured(problem.rhs, options_for(Precision::f32), graph.stream());
  graph.capture([&] { captured.enqueue(ensemble); });
  for (int launch = 0; launch < 2; ++launch) {
    stream->clear(end_state, 3000 * sizeof(float));
    ASSERT_FALSE(stream->wait().happened);
    graph.launch_and_wait();
    ASSERT_FALSE(download().happened);
    EXPECT_TRUE(std::ranges::equal(std::span(result, 3000), expected.end_states<float>())) << "from a graph";
  }
}

TEST(OnNoDevice, says_what_is_missing) {
  const cuda::LoadedRuntime none{nullptr, {}, "no CUDA driver on this machine"};
  cuda::replace_runtime(&none);
  EXPECT_THAT(message_of([] { DeviceSolver<float>(system("lorenz"), options_for(Precision::f32), nullptr); }),
              HasSubstr("no CUDA driver"));
  cuda::replace_runtime(nullptr);
}

}  // namespace
}  // namespace lockstep::ode

// Sums with terms that come as text, and events that do: what a kernel compiled from them does, run by the host, has
// the bits of the CPU engine; and NVRTC, where it is installed, compiles the texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/compile.h"
#include "lockstep/ode/cuda/nvrtc.h"
#include "lockstep/ode/cuda/program_derivative.h"
#include "lockstep/ode/cuda/testing/run_tiles.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/cuda/testing/texts.h"
#include "lockstep/ode/methods/tsit5.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode::cuda {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// A machine whose only device is the host, and a cache that holds code for whatever is asked for.
class SumsWithText : public ::testing::Test {
 protected:
  SumsWithText() : runtime_(device_) {
    folder_ = fs::path(::testing::TempDir()) / ("lockstep_sums_" + std::to_string(::getpid()));
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~SumsWithText() override {
    unsetenv("XDG_CACHE_HOME");
    fs::remove_all(folder_);
  }

  // Both engines; `stand_in` is what the text compiles to.
  template <class T>
  void expect_same_on_both(const Problem& problem, const std::string& kernel,
                           std::function<void(HostDevice&, const void*)> stand_in) {
    Options options;
    options.precision = sizeof(T) == 4 ? Precision::f32 : Precision::f64;
    options.rtol = options.atol = sizeof(T) == 4 ? 1e-5 : 1e-8;
    options.device = DeviceChoice::cpu();
    options.method = method_;
    options.max_steps = 300;
    const Lowered<T> lowered = lower_problem<T>(problem, options);
    ASSERT_TRUE(lowered.source);
    EXPECT_EQ(lowered.kernel, kernel + ", " + method_ + ", " + std::string(to_string(options.precision)));
    Runtime* const card = wanted_card();
    if (card == nullptr) {
      Fault fault;
      keep_kernel(kept_kernel_path(*lowered.source, runtime_.devices(fault).front()), {'c', 'o', 'd', 'e'});
      device_.sources[lowered.kernel] = std::move(stand_in);
    } else if (!load_nvrtc().missing.empty()) {
      GTEST_SKIP() << load_nvrtc().missing;
    }
    const Solution cpu = solve(problem, options);
    for (const TrajectoryRecord& record : cpu.records()) ++ended_[record.status];
    expect_same(cpu, solve_on(device_, problem, options, std::size_t{1} << 28, nullptr, card));
    EXPECT_EQ(std::any_of(cpu.records().begin(), cpu.records().end(), ended_by_event), problem.event.has_value());
  }
  static bool ended_by_event(const TrajectoryRecord& record) { return record.status == Status::terminated; }

  template <class Derivative, class T>
  void expect_same_by_threads(const Problem& problem, const std::string& kernel) {
    using Body = KernelBody<T, CompiledScheme<Tsit5>, Derivative>;
    expect_same_on_both<T>(problem, kernel,
                           [](HostDevice& device, const void* launch) { run_body<Body>(device, "text", launch); });
  }
  template <class Derivative, class Terms, class T>
  void expect_same_by_tiles(const Problem& problem, const std::string& kernel) {
    expect_same_on_both<T>(problem, kernel, [](HostDevice& device, const void* launch) {
      std::size_t trajectories = 0;
      run_tiles<T, Derivative, Terms>(launch, trajectories);
      device.batches.push_back(trajectories);
    });
  }

  HostDevice device_;
  HostRuntime runtime_;
  fs::path folder_;
  std::string method_ = "tsit5";
  std::map<Status, int> ended_;  // trajectories of all solves
};

Problem ensemble(Rhs rhs, std::size_t count) {
  Problem problem;
  problem.rhs = std::move(rhs);
  const bool lorenz = problem.rhs->parameters() > 2;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i % 13) / 13;
    problem.initial_states.insert(problem.initial_states.end(), {1 + x, 0.5, lorenz ? 20 : 0.3});
    if (lorenz) problem.parameters.insert(problem.parameters.end(), {10, 28 - x, 8.0 / 3});
    problem.parameters.insert(problem.parameters.end(), {1.5 + x, 0.4});
  }
  problem.end_times = {0.6};
  problem.save_times = {0, 0.31, 0.6};
  return problem;
}

// A tile's threads take turns, slowly under the sanitizers: fewer trajectories then, and shorter ones.
Problem in_tiles(Rhs rhs, std::size_t count) {
  Problem problem = ensemble(std::move(rhs), kSanitized ? 5 : count);
  if (kSanitized) problem.end_times = {0.1}, problem.save_times = {0, 0.03, 0.1};
  return problem;
}

Rhs small_net() { return net(mlp::random_mlp({3, 20, 3}, {ActivationKind::tanh}, 7)); }
Rhs wide_net() { return net(mlp::random_mlp({3, 33, 3}, {ActivationKind::silu}, 7)); }

TEST_F(SumsWithText, of_a_system_and_a_text_have_the_bits_of_the_cpu_engine) {
  const Problem problem = ensemble(sum(system("lorenz"), force()), 33);
  expect_same_by_threads<ProgramDerivative<3, 0, float, ForceAfterLorenz<float>>, float>(problem,
                                                                                         "lorenz + source force");
  expect_same_by_threads<ProgramDerivative<3, 0, double, ForceAfterLorenz<double>>, double>(problem,
                                                                                            "lorenz + source force");
}

TEST_F(SumsWithText, with_a_net_have_the_bits_of_the_cpu_engine) {
  const Problem problem = ensemble(sum(force(), small_net()), 7);
  expect_same_by_threads<ProgramDerivative<3, 20, float, ForceFirst<float>>, float>(problem, "source force + net");
  expect_same_by_threads<ProgramDerivative<3, 20, double, ForceFirst<double>>, double>(problem, "source force + net");
}

TEST_F(SumsWithText, with_a_wide_net_run_in_tiles_with_the_same_bits) {
  Problem problem = in_tiles(sum(force(), wide_net()), 71);
  expect_same_by_tiles<OutsideDerivative<3, float>, ForceFirst<float>, float>(problem, "source force + net");
  problem = in_tiles(sum(sum(system("lorenz"), force()), wide_net()), 5);
  expect_same_by_tiles<OutsideDerivative<3, double>, ForceAfterLorenz<double>, double>(problem,
                                                                                       "lorenz + source force + net");
}

TEST_F(SumsWithText, stop_at_events_that_come_as_text) {
  Problem problem = ensemble(sum(force(), wide_net()), kSanitized ? 5 : 33);
  problem.event = distance();
  const std::string with_event = ", event distance";
  using Outside = WithEvent<OutsideDerivative<3, float>, EventInKernel<float>, float>;
  expect_same_by_tiles<Outside, ForceFirst<float>, float>(problem, "source force + net" + with_event);
  problem = ensemble(force(), 33);
  problem.event = distance();
  using Source = SourceDerivative<ForceInKernel<double>, 3, 2, double>;
  expect_same_by_threads<WithEvent<Source, EventInKernel<double>, double>, double>(problem,
                                                                                   "source force" + with_event);
}

TEST_F(SumsWithText, the_texts_of_events_that_are_graphs_are_those_compiled_here) {
  for (const bool of_state : {false, true}) {
    const std::string file = of_state ? "graph_event_of_state_body.inc" : "graph_event_body.inc";
    const std::string text = text_of_graph(of_state);
    const bool same = text == text_of(file);
    if (!same) std::ofstream(::testing::TempDir() + file) << text;
    EXPECT_TRUE(same) << "the new one is in " << ::testing::TempDir() << file;
  }
}

TEST_F(SumsWithText, stop_at_events_that_are_graphs_beside_trajectories_that_fail) {
  Problem problem = ensemble(force(), 101);
  for (std::size_t i = 0; i < 101; i += 7) problem.initial_states[3 * i] = 30;         // too far
  for (std::size_t i = 1; i < 101; i += 7) problem.initial_states[3 * i + 2] = 1e200;  // many steps
  for (std::size_t i = 2; i < 101; i += 7) problem.initial_states[3 * i + 2] = -1.5;   // the event is no number
  for (std::size_t i = 3; i < 101; i += 7) problem.initial_states[3 * i] = problem.parameters[2 * i] = 1e200;
  problem.event = distance_of_graph();
  using Source = SourceDerivative<ForceInKernel<double>, 3, 2, double>;
  const std::string kernel = "source force" + event_name(*problem.event);
  expect_same_by_threads<WithEvent<Source, GraphInKernel<double>, double>, double>(problem, kernel);
  EXPECT_GT(ended_[Status::terminated], 30);
  EXPECT_GT(ended_[Status::success], 20);
  EXPECT_GT(ended_[Status::too_many_steps], 10);
  EXPECT_GT(ended_[Status::not_finite], 10);
}

TEST_F(SumsWithText, in_tiles_stop_at_events_that_are_graphs) {
  Problem problem = ensemble(sum(force(), wide_net()), kSanitized ? 5 : 97);
  problem.event = distance_of_graph();
  using Outside = WithEvent<OutsideDerivative<3, double>, GraphInKernel<double>, double>;
  const std::string kernel = "source force + net" + event_name(*problem.event);
  if (!kSanitized) expect_same_by_tiles<Outside, ForceFirst<double>, double>(problem, kernel);
  method_ = "dop853";  // whose interpolant has stages of its own
  expect_same_by_tiles<Outside, ForceFirst<double>, double>(problem, kernel);
}

TEST_F(SumsWithText, systems_and_folded_nets_stop_at_events_that_are_graphs) {
  Problem problem = ensemble(sum(system("lorenz"), force()), 33);
  problem.rhs = system("lorenz");
  problem.parameters = {10, 28, 8.0 / 3};
  for (std::size_t i = 0; i < 33; ++i) problem.initial_states[3 * i + 2] = 1;
  problem.event = distance_of_graph(true, 3);
  problem.event->direction = TerminalEvent::Direction::rising;
  using Lorenz = SystemDerivative<systems::Lorenz, float>;
  expect_same_by_threads<WithEvent<Lorenz, GraphOfStateInKernel<float>, float>, float>(
      problem, "lorenz" + event_name(*problem.event));
  problem.rhs = small_net();
  problem.parameters.clear();
  problem.event = distance_of_graph(true, 0);
  using Folded = FoldedNetDerivative<3, ActivationKind::tanh, double>;
  expect_same_by_threads<WithEvent<Folded, GraphOfStateInKernel<double>, double>, double>(
      problem, "net 3 tanh" + event_name(*problem.event));
}

TEST_F(SumsWithText, with_events_that_are_graphs_are_compiled_by_nvrtc) {
  if (kSanitized) GTEST_SKIP() << "NVRTC reads the same text without sanitizers";
  if (!load_nvrtc().missing.empty()) GTEST_SKIP() << load_nvrtc().missing;
  Problem problem;
  for (const Rhs& rhs : {system("lorenz"), small_net()}) {
    problem.rhs = rhs;
    problem.event = distance_of_graph(true, rhs->parameters());
    EXPECT_GT(load_nvrtc().compile(*lower_problem<float>(problem, Options{}).source, 90).size(), 1000u);
  }
}

// Once by threads and once by tiles: a kernel of tiles takes NVRTC some ten seconds, and many more where a sanitizer takes
// its allocations.
TEST_F(SumsWithText, are_compiled_by_nvrtc) {
  if (kSanitized) GTEST_SKIP() << "NVRTC reads the same text without sanitizers";
  if (!load_nvrtc().missing.empty()) GTEST_SKIP() << load_nvrtc().missing;
  for (const Rhs& learned : {small_net(), wide_net()}) {
    Problem problem = ensemble(sum(force(), learned), 1);
    problem.event = distance();
    EXPECT_GT(load_nvrtc().compile(*lower_problem<float>(problem, Options{}).source, 90).size(), 1000u);
  }
}

TEST_F(SumsWithText, an_event_text_is_no_derivative_and_a_function_of_many_outputs_no_event) {
  EXPECT_THROW(with_cuda_event_source(force(), "force", "return u[0];"), Error);
  EXPECT_THROW(with_cuda_event_source(nullptr, "none", "return u[0];"), Error);
  EXPECT_THROW(with_cuda_event_source(distance().function, "empty", ""), Error);
  const auto value = [](auto, const auto& u, const auto&) { return u[0]; };
  Problem problem = ensemble(force(), 2);
  problem.rhs = with_cuda_event_source(event_function<1>("value", value), "value", "return u[0];");
  const auto found = obstacle(problem, Options{});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->found, "an event's function");
}

}  // namespace
}  // namespace lockstep::ode::cuda

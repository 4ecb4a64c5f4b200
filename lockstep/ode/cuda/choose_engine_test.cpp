// Which GPU engine runs what, and what is said where none can; with hosts that play device and cuBLASLt.
#include "lockstep/ode/cuda/choose_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/compile.h"
#include "lockstep/ode/cuda/gemm/gemm_program.h"
#include "lockstep/ode/cuda/gemm/testing/host_gemm.h"
#include "lockstep/ode/cuda/nvrtc.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/detail/device_plan.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode::cuda {
namespace {

using ::testing::HasSubstr;

Problem net_problem(std::size_t width) {
  Problem problem;
  problem.rhs = net(mlp::random_mlp({3, width, 3}, {ActivationKind::relu}, 5));
  problem.initial_states = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
  problem.end_times = {0.1};
  return problem;
}

// This process's GPU is the host while it lives.
class GpuOfTests {
 public:
  explicit GpuOfTests(const std::string& missing = {}) {
    products_.missing_text = missing;
    Fault fault;
    loaded_.runtime = &runtime_;
    loaded_.devices = runtime_.devices(fault);
    replace_runtime(&loaded_);
    replace_gemm_runtime(&products_);
  }
  ~GpuOfTests() {
    replace_runtime(nullptr);
    replace_gemm_runtime(nullptr);
  }
  HostGemm gemm;

 private:
  HostDevice device_;
  HostRuntime runtime_{device_};
  HostGemmRuntime products_{gemm};
  LoadedRuntime loaded_;
};

Summary run(const Problem& problem, const Options& options, Solution* kept = nullptr) {
  Solution solution(options.precision, problem.trajectories(), problem.rhs->components(), {}, false);
  MemorySink sink(solution);
  Summary summary = solve(problem, options, sink);
  if (kept != nullptr) *kept = std::move(solution);
  return summary;
}

Options on_cuda() {
  Options options;
  options.device = DeviceChoice::cuda();
  return options;
}

std::string message_of(const Problem& problem, const Options& options) {
  return lockstep::message_of([&] { run(problem, options); });
}

TEST(ChoiceOfEngine, gives_nets_wider_than_256_to_cuda_gemm_and_says_so) {
  GpuOfTests gpu;
  EXPECT_EQ(run(net_problem(256), on_cuda()).engine, "cuda_fused");
  const Summary wide = run(net_problem(257), on_cuda());
  EXPECT_EQ(wide.engine, "cuda_gemm");
  EXPECT_THAT(wide.reason, HasSubstr("cuBLASLt, whose bits are its own"));
  EXPECT_THAT(wide.kernel, HasSubstr("cuda gemm, the host"));
  EXPECT_GT(gpu.gemm.rounds, 0);
}

TEST(ChoiceOfEngine, follows_what_was_asked_for_by_name) {
  GpuOfTests gpu;
  Options options = on_cuda();
  options.engine = EngineChoice::cuda_gemm;
  EXPECT_EQ(run(net_problem(9), options).engine, "cuda_gemm");
  options.engine = EngineChoice::cuda_fused;
  EXPECT_EQ(run(net_problem(300), options).engine, "cuda_fused");
  // An engine is asked for: then the device is a GPU without saying so.
  options.device = {};
  options.engine = EngineChoice::cuda_gemm;
  const Summary summary = run(net_problem(9), options);
  EXPECT_EQ(summary.engine, "cuda_gemm");
  EXPECT_THAT(summary.reason, HasSubstr("asked for: cuda_gemm"));
  options.device = DeviceChoice::cpu();
  EXPECT_THAT(message_of(net_problem(9), options), HasSubstr("options.engine: found cuda_gemm on the CPU"));
}

TEST(ChoiceOfEngine, keeps_the_bits_of_an_ensemble_that_is_cut_between_devices) {
  GpuOfTests gpu;
  Options options;
  options.device = parse_device("cpu=50%,cuda=50%");
  EXPECT_EQ(run(net_problem(300), options).engine, "cpu + cuda_fused");
}

TEST(ChoiceOfEngine, takes_cuda_fused_where_cublaslt_is_missing_or_says_what_to_install) {
  GpuOfTests gpu("cuBLASLt 13 is not on this machine");
  const Summary fused = run(net_problem(300), on_cuda());
  EXPECT_EQ(fused.engine, "cuda_fused");
  EXPECT_THAT(fused.reason, HasSubstr("no cuda_gemm: cuBLASLt 13 is not on this machine"));
  EXPECT_THAT(message_of(net_problem(600), on_cuda()), HasSubstr("without cuBLASLt"));
  Options asked = on_cuda();
  asked.engine = EngineChoice::cuda_gemm;
  EXPECT_THAT(message_of(net_problem(9), asked), HasSubstr("LOCKSTEP_CUBLASLT_LIBRARY"));
}

// Without NVRTC while it lives, and with a cache of its own.
class NoCompiler {
 public:
  NoCompiler() {
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    replace_nvrtc(&none_);
  }
  ~NoCompiler() {
    replace_nvrtc(nullptr);
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(folder_);
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("lockstep_no_compiler_" + std::to_string(::getpid()));
  Nvrtc none_{.version = "", .missing = "NVRTC is not on this machine"};
};

graph::Graph x_of_three() {
  graph::Graph graph;
  graph.inputs = {{"u", 0, 3}};
  graph.nodes = {{"x", graph::Columns{{0}}, {0}}};
  graph.outputs = {{"value", 1, 1}};
  return graph;
}

// Large enough for `auto` to weigh a GPU, whose event comes as text.
Problem falling(std::size_t trajectories) {
  Problem problem;
  problem.rhs = system("lorenz");
  for (std::size_t i = 0; i < trajectories; ++i)
    problem.initial_states.insert(problem.initial_states.end(), {1, 1 + 0.5 / static_cast<double>(trajectories), 1});
  problem.parameters = {10, 28, 8.0 / 3};
  problem.end_times = {0.01};
  problem.event = TerminalEvent{graph_function(x_of_three(), 3, "x")};
  return problem;
}

TEST(ChoiceOfEngine, leaves_what_nobody_can_compile_to_the_cpu_or_says_what_to_install) {
  GpuOfTests gpu;
  NoCompiler none;
  const Problem problem = falling(1000000);
  Options options;
  options.cpu_target = CpuTarget::scalar;  // slow enough for a GPU to be worth it
  options.threads = 1;
  const detail::DevicePlan plan = detail::plan_devices(problem, options);
  EXPECT_EQ(plan.engine, "cpu");
  EXPECT_THAT(plan.reason, HasSubstr("a GPU cannot run this: kernel lorenz, event function "));
  EXPECT_THAT(plan.reason, HasSubstr("is code to be compiled, without NVRTC"));
  EXPECT_THAT(message_of(falling(3), on_cuda()), HasSubstr("NVRTC is not on this machine"));
  EXPECT_THAT(message_of(falling(3), on_cuda()), HasSubstr("pip install nvidia-cuda-nvrtc"));
}

TEST(ChoiceOfEngine, asks_for_a_compiler_for_cuda_gemm_too_where_an_event_comes_as_text) {
  GpuOfTests gpu;
  NoCompiler none;
  Problem problem = net_problem(300);
  problem.event = TerminalEvent{graph_function(x_of_three(), 0, "x")};
  EXPECT_THAT(message_of(problem, on_cuda()), HasSubstr("kernel net, event function"));
  EXPECT_THAT(message_of(problem, on_cuda()), HasSubstr("pip install nvidia-cuda-nvrtc"));
  Options options = on_cuda();
  keep_kernel(kept_kernel_path(*gemm_source(problem, options), load_runtime().devices.front()), {'c', 'o', 'd', 'e'});
  EXPECT_EQ(detail::plan_devices(problem, options).engine, "cuda_gemm");
}

TEST(ChoiceOfEngine, takes_a_gpu_for_what_was_compiled_before_and_where_there_is_a_compiler) {
  GpuOfTests gpu;
  const Problem problem = falling(1000000);
  Options options;
  options.cpu_target = CpuTarget::scalar;
  options.threads = 1;
  {
    NoCompiler none;
    const auto source = *lower_problem<float>(problem, options).source;
    keep_kernel(kept_kernel_path(source, load_runtime().devices.front()), {'c', 'o', 'd', 'e'});
    EXPECT_EQ(detail::plan_devices(problem, options).engine, "cuda_fused");
  }
  const Nvrtc there{.version = "13.0", .missing = ""};
  replace_nvrtc(&there);
  EXPECT_EQ(detail::plan_devices(problem, options).engine, "cuda_fused");
  replace_nvrtc(nullptr);
}

}  // namespace
}  // namespace lockstep::ode::cuda

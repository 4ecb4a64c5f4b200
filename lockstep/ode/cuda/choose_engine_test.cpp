// Which GPU engine runs what, and what is said where none can; with hosts that play device and cuBLASLt.
#include "lockstep/ode/cuda/choose_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/gemm/testing/host_gemm.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
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

}  // namespace
}  // namespace lockstep::ode::cuda

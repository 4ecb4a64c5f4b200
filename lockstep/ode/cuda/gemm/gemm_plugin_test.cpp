// The component's own code for the engine cuda_gemm, over a cuBLASLt and CUDA graphs that the host plays: how products
// are described, what is left to our kernels, and how rounds repeat. Not linked with CUDA; built where its headers are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/gemm/gemm_program.h"
#include "lockstep/ode/cuda/gemm/round.cuh"
#include "lockstep/ode/cuda/gemm/testing/fake_cublaslt.h"
#include "lockstep/ode/cuda/gemm/testing/gemm_bounds.h"
#include "lockstep/ode/cuda/gemm/testing/solve_queued.h"
#include "lockstep/ode/cuda/testing/kept_code.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/cuda/testing/threshold.h"

namespace lockstep::ode::cuda {
extern "C" GemmRuntime* lockstep_cuda_gemm(int version);
namespace {

using testing::fake_cublaslt;
using ::testing::HasSubstr;

class GemmComponent : public ::testing::Test {
 protected:
  GemmComponent() { fake_cublaslt() = {}; }
  ~GemmComponent() override { EXPECT_EQ(fake_cublaslt().open, 0); }  // all of it was given back

  void expect_bounds(const Mlp& mlp, MatrixPrecision mode, Precision precision = Precision::f32) {
    HostDevice device;
    HostRuntime host(device);
    expect_within_bounds(mlp, 101, mode, precision, &host, lockstep_cuda_gemm(kGemmRuntimeVersion));
  }
  // What a solve says of itself.
  std::string kernel_of(const Mlp& mlp, MatrixPrecision mode) {
    Problem problem;
    problem.rhs = net(mlp);
    problem.initial_states = {0.1, 0.2, 0.3};
    problem.end_times = {0.1};
    Options options;
    options.matrix_precision = mode;
    HostDevice device;
    HostRuntime host(device);
    Solution solution(Precision::f32, 1, 3, {}, false);
    MemorySink sink(solution);
    return advance_gemm<float>(problem, options, {&host, lockstep_cuda_gemm(kGemmRuntimeVersion)}, sink, {}).kernel;
  }
};

constexpr MatrixPrecision kModes[] = {MatrixPrecision::f32, MatrixPrecision::tf32, MatrixPrecision::bf16,
                                      MatrixPrecision::fp16};

Mlp net_of(ActivationKind kind) { return mlp::random_mlp({3, 33, 17, 3}, {kind}, 12); }

TEST_F(GemmComponent, describes_products_so_that_every_mode_keeps_its_bound) {
  for (const ActivationKind kind : {ActivationKind::relu, ActivationKind::tanh}) {
    for (const MatrixPrecision mode : kModes) expect_bounds(net_of(kind), mode);
    expect_bounds(net_of(kind), MatrixPrecision::f32, Precision::f64);
  }
  EXPECT_GT(fake_cublaslt().passes_by_graph, 0);
}

TEST_F(GemmComponent, leaves_to_a_kernel_what_cublaslt_does_not_have) {
  EXPECT_THAT(kernel_of(net_of(ActivationKind::relu), MatrixPrecision::f32), HasSubstr("3 of 3 layers in one kernel"));
  EXPECT_THAT(kernel_of(net_of(ActivationKind::tanh), MatrixPrecision::f32), HasSubstr("1 of 3 layers in one kernel"));
  EXPECT_THAT(kernel_of(net_of(ActivationKind::gelu_tanh), MatrixPrecision::f32), HasSubstr("1 of 3 layers"));
  // What hidden layers pass on is rounded by ours; those of 16 bits would have to have biases of 16 bits, too.
  for (const MatrixPrecision mode : {MatrixPrecision::tf32, MatrixPrecision::bf16, MatrixPrecision::fp16}) {
    for (const auto kind : {ActivationKind::identity, ActivationKind::relu, ActivationKind::gelu_tanh})
      EXPECT_THAT(kernel_of(net_of(kind), mode), HasSubstr("1 of 3 layers"));
  }
  EXPECT_EQ(fake_cublaslt().other_biases, 0);
  for (const MatrixPrecision mode : kModes) expect_bounds(net_of(ActivationKind::relu), mode);
  EXPECT_EQ(fake_cublaslt().cut_factors, 0);
  fake_cublaslt().epilogues = false;
  EXPECT_THAT(kernel_of(net_of(ActivationKind::relu), MatrixPrecision::f32), HasSubstr("0 of 3 layers"));
  for (const MatrixPrecision mode : kModes) expect_bounds(net_of(ActivationKind::relu), mode);
}

TEST_F(GemmComponent, counts_rounds_on_the_host_where_graphs_cannot_repeat_themselves) {
  fake_cublaslt().graphs = false;
  expect_bounds(net_of(ActivationKind::tanh), MatrixPrecision::f32);
  EXPECT_EQ(fake_cublaslt().passes_by_graph, 0);
  EXPECT_THAT(kernel_of(net_of(ActivationKind::tanh), MatrixPrecision::f32),
              HasSubstr("rounds counted by the host (operation not supported"));
}

TEST_F(GemmComponent, counts_rounds_on_the_host_where_products_cannot_be_captured) {
  fake_cublaslt().captured = false;
  expect_bounds(net_of(ActivationKind::tanh), MatrixPrecision::f32);
  EXPECT_EQ(fake_cublaslt().passes_by_graph, 0);
  EXPECT_THAT(kernel_of(net_of(ActivationKind::tanh), MatrixPrecision::f32),
              HasSubstr("rounds counted by the host (the fake's own trouble)"));
}

// By a kernel of the component's own and by one that came as text: where u[0] falls to 0.5.
TEST_F(GemmComponent, launches_a_kernel_that_came_as_text_in_place_of_its_own) {
  using Column = ColumnTrajectory<float, WithEvent<ProductDerivative<float, 3>, AboveHalf, float>, NoTerms>;
  KeptCode kept;
  HostDevice device;
  HostRuntime host(device);
  Problem problem;
  problem.rhs = net(net_of(ActivationKind::tanh));
  for (int i = 0; i < 40; ++i) problem.initial_states.insert(problem.initial_states.end(), {0.4 + 0.01 * i, 0.2, 0.3});
  problem.end_times = {1};
  const auto solve = [&](Rhs event) {
    problem.event = TerminalEvent{std::move(event)};
    Solution solution(Precision::f32, 40, 3, {}, false);
    MemorySink sink(solution);
    advance_gemm<float>(problem, {}, {&host, lockstep_cuda_gemm(kGemmRuntimeVersion)}, sink, {});
    return solution;
  };
  const Solution known = solve(threshold(3, 0, 0, 0.5));
  problem.event = half_as_text();
  const Rhs text = problem.event->function;
  kept.keep(host, *gemm_source(problem, {}), "code");
  EXPECT_THAT(lockstep::message_of([&] { solve(text); }), HasSubstr("kernel that came as text"));
  for (const bool graphs : {true, false}) {
    int launches = 0;
    fake_cublaslt().graphs = graphs;
    fake_cublaslt().source = [&](const void* launch, bool counts) {
      ++launches;
      advance_columns_as<Column>(*static_cast<const GemmLaunch<float>*>(launch), counts);
    };
    expect_same(known, solve(text));
    EXPECT_GT(launches, 0);
  }
  EXPECT_TRUE(std::any_of(known.records().begin(), known.records().end(),
                          [](const TrajectoryRecord& record) { return record.status == Status::terminated; }));
}

// A solve that is only queued: by graphs of its own, and as a part of the user's, for counts that begin with fewer
// columns and that leave them.
class QueuedComponent : public GemmComponent {
 protected:
  QueuedComponent() {
    for (int i = 0; i < 150; ++i) {
      problem_.initial_states.insert(problem_.initial_states.end(), {0.4 + 0.001 * i, 0.2, 0.3});
      problem_.end_times.push_back(0.25 * (1 + i % 9));
    }
    problem_.start_times = {0};
    problem_.save_times = {0, 0.125};
  }

  GemmTarget target() { return {&host_, lockstep_cuda_gemm(kGemmRuntimeVersion), 0, std::size_t{1} << 28, 128, 32}; }
  Solution expected(const Problem& problem, const Options& options) {
    Solution solution(options.precision, problem.trajectories(), 3, problem.save_times, false);
    MemorySink sink(solution);
    options.precision == Precision::f32 ? advance_gemm<float>(problem, options, target(), sink, {})
                                        : advance_gemm<double>(problem, options, target(), sink, {});
    return solution;
  }
  // What `work` called of CUDA.
  std::vector<std::string> calls(const std::function<void()>& work) {
    fake_cublaslt().calls.clear();
    work();
    std::vector<std::string> names;
    for (const auto& [name, count] : fake_cublaslt().calls) names.push_back(name);
    return names;
  }

  HostDevice device_;
  HostRuntime host_{device_};
  Problem problem_;
};

TEST_F(QueuedComponent, has_the_numbers_of_the_engine_that_asks_and_only_queues) {
  testing::UserStream stream;
  for (const std::size_t count : {150u, 20u}) {
    Problem problem = problem_;
    problem.initial_states.resize(3 * count);
    problem.end_times.resize(count);
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      for (const MatrixPrecision mode : kModes) {
        if (precision == Precision::f64 && mode != MatrixPrecision::f32) continue;
        problem.rhs = net(net_of(mode == MatrixPrecision::bf16 ? ActivationKind::relu : ActivationKind::tanh));
        Options options;
        options.precision = precision;
        options.matrix_precision = mode;
        options.rtol = options.atol = 1e-2;  // more than any mode's rounding
        SCOPED_TRACE(std::to_string(count) + " " + std::string(to_string(mode)));
        // The fake sums in one order whatever the number of columns, so that the bits are the same.
        const Solution known = expected(problem, options);
        const int passes = fake_cublaslt().passes_by_graph;
        expect_same(known, solve_queued(problem, options, target(), stream.native(), [&](const auto& enqueue) {
                      EXPECT_THAT(calls(enqueue),
                                  ::testing::IsSubsetOf({"cudaGetDevice", "cudaStreamIsCapturing", "cudaMemsetAsync",
                                                         "cudaLaunchKernel", "cudaGraphLaunch"}));
                      enqueue();
                    }));
        EXPECT_GT(fake_cublaslt().passes_by_graph, passes);
      }
    }
  }
}

TEST_F(QueuedComponent, becomes_a_part_of_the_users_graph) {
  problem_.rhs = net(net_of(ActivationKind::tanh));
  const Options options;
  const Solution known = expected(problem_, options);
  testing::UserStream stream;
  expect_same(known, solve_queued(problem_, options, target(), stream.native(), [&](const auto& enqueue) {
                const int passes = fake_cublaslt().passes_by_graph;
                std::vector<std::string> names;
                ASSERT_TRUE(stream.capture([&] { names = calls(enqueue); }));
                EXPECT_THAT(names,
                            ::testing::IsSubsetOf({"cudaGetDevice", "cudaStreamIsCapturing", "cudaMemsetAsync",
                                                   "cudaLaunchKernel", "cublasLtMatmul", "cudaStreamGetCaptureInfo",
                                                   "cudaGraphConditionalHandleCreate", "cudaGraphAddNode",
                                                   "cudaStreamBeginCaptureToGraph", "cudaStreamEndCapture",
                                                   "cudaStreamUpdateCaptureDependencies"}));
                EXPECT_EQ(fake_cublaslt().passes_by_graph, passes) << "nothing ran yet";
                for (int launch = 0; launch < 2; ++launch) EXPECT_TRUE(stream.launch());
              }));
}

TEST_F(QueuedComponent, cannot_be_where_graphs_do_not_repeat_themselves) {
  problem_.rhs = net(net_of(ActivationKind::tanh));
  fake_cublaslt().graphs = false;
  EXPECT_THAT(lockstep::message_of([&] { solve_queued(problem_, {}, target(), nullptr); }),
              HasSubstr("options.engine: found cuda_gemm, and no CUDA graphs here that repeat themselves: operation "
                        "not supported"));
}

TEST_F(GemmComponent, says_which_product_cublaslt_cannot_make) {
  fake_cublaslt().any_algorithm = false;
  try {
    kernel_of(net_of(ActivationKind::tanh), MatrixPrecision::f32);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cuda cuBLASLt 0.0: found no algorithm for a product of 40 x 8 x 32"));
  }
}

}  // namespace
}  // namespace lockstep::ode::cuda

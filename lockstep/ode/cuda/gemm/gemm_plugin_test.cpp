// The component's own code for the engine cuda_gemm, over a cuBLASLt and CUDA graphs that the host plays: how products
// are described, what is left to our kernels, and how rounds repeat. Not linked with CUDA; built where its headers are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/gemm/gemm_program.h"
#include "lockstep/ode/cuda/gemm/round.cuh"
#include "lockstep/ode/cuda/gemm/testing/fake_cublaslt.h"
#include "lockstep/ode/cuda/gemm/testing/gemm_bounds.h"
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
  EXPECT_THAT(kernel_of(net_of(ActivationKind::gelu_tanh), MatrixPrecision::bf16), HasSubstr("3 of 3 layers"));
  fake_cublaslt().epilogues_of_16_bits = false;
  EXPECT_THAT(kernel_of(net_of(ActivationKind::relu), MatrixPrecision::bf16), HasSubstr("1 of 3 layers"));
  for (const MatrixPrecision mode : kModes) expect_bounds(net_of(ActivationKind::relu), mode);
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

// Terms and events that come as text, in the engine cuda_gemm and in the modes of tensor cores: what kernels compiled
// from them do, run by the host, has the bits of the CPU engine on a net that rounds as they do. With
// LOCKSTEP_TEST_DEVICE=cuda what holds for any sums runs on this machine's first GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/gemm/gemm_engine.h"
#include "lockstep/ode/cuda/gemm/round.cuh"
#include "lockstep/ode/cuda/gemm/testing/host_gemm.h"
#include "lockstep/ode/cuda/nvrtc.h"
#include "lockstep/ode/cuda/tensor_tile.cuh"
#include "lockstep/ode/cuda/testing/kept_code.h"
#include "lockstep/ode/cuda/testing/run_tiles.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/cuda/testing/texts.h"
#include "lockstep/ode/cuda/testing/threshold.h"
#include "lockstep/ode/cuda/testing/uneven_ensemble.h"
#include "lockstep/ode/testing/rounded_net.h"

namespace lockstep::ode::cuda {
namespace {

using lockstep::cuda::Bf16;
using ::testing::HasSubstr;

TerminalEvent half() { return TerminalEvent{threshold(3, 0, 0, 0.5)}; }

Mlp small_net() { return mlp::random_mlp({3, 33, 3}, {ActivationKind::tanh}, 7); }

Problem ensemble(Rhs rhs, std::size_t count) {
  const bool lorenz = rhs->parameters() > 2;
  const std::vector<double> u0 = lorenz ? std::vector<double>{1, 2, 20} : std::vector<double>{1.2, 0.5, 0.3};
  const std::vector<double> parameters =
      lorenz ? std::vector<double>{10, 28, 8.0 / 3, 1.5, 0.4} : std::vector<double>{1.5, 0.4};
  return uneven_ensemble(std::move(rhs), u0, parameters, count, lorenz ? 0.1 : 0.8, {0, 0.31, 1});
}

template <class T>
Options options_for(std::string_view method) {
  return adaptive_or_fixed(method, sizeof(T) == 4 ? Precision::f32 : Precision::f64, sizeof(T) == 4 ? 1e-4 : 1e-6,
                           0.03);
}

class TextInModes : public ::testing::Test {
 protected:
  // By cuda_gemm, whose text compiles to Column.
  template <class Column>
  Solution solve_by_gemm(const Problem& problem, const Options& options, std::string* kernel = nullptr) {
    using T = typename Column::T;
    kept_.keep(runtime_, *gemm_source(problem, options), "column");
    gemm_.sources["column"] = [](const void* launch, bool counts) {
      advance_columns_as<Column>(*static_cast<const GemmLaunch<T>*>(launch), counts);
    };
    Solution solution(options.precision, problem.trajectories(), problem.rhs->components(), problem.save_times,
                      problem.save_times_per_trajectory);
    CountingSink sink(solution);
    HostGemmRuntime products(gemm_);
    const GemmTarget target{&runtime_, &products, 0, std::size_t{1} << 28, 64, 32};
    const Summary summary = advance_gemm<T>(problem, options, target, sink, {});
    if (kernel != nullptr) *kernel = summary.kernel;
    return solution;
  }
  template <class Column>
  void expect_gemm_as_cpu(const Problem& problem, std::string_view method) {
    SCOPED_TRACE(method);
    Options options = options_for<typename Column::T>(method);
    const Solution other = solve_by_gemm<Column>(problem, options);
    options.device = DeviceChoice::cpu();
    const Solution cpu = solve(problem, options);
    for (const TrajectoryRecord& record : cpu.records()) stopped_ += record.status == Status::terminated;
    trajectories_ += cpu.trajectories();
    expect_same(cpu, other);
  }
  // By a tile of bf16, whose text compiles to these.
  template <class Derivative, class Terms>
  Solution solve_by_tensor_tiles(const Problem& problem, Options options) {
    options.matrix_precision = MatrixPrecision::bf16;
    const Lowered<float> lowered = lower_problem<float>(problem, options);
    kept_.keep(runtime_, *lowered.source, "tile");
    EXPECT_THAT(lowered.kernel, HasSubstr(", f32, bf16"));
    device_.sources[lowered.kernel] = [](HostDevice& device, const void* launch) {
      std::size_t trajectories = 0;
      run_tiles_of<TensorTile<Bf16>, Derivative, Terms>(launch, trajectories);
      device.batches.push_back(trajectories);
    };
    return solve_on(device_, problem, options);
  }

  KeptCode kept_;
  HostDevice device_;
  HostRuntime runtime_{device_};
  HostGemm gemm_;
  std::size_t stopped_ = 0, trajectories_ = 0;
};

template <class T, class Event>
using WithText = WithEvent<ProductDerivative<T, 3>, Event, T>;

TEST_F(TextInModes, an_event_stops_cuda_gemm_where_it_stops_the_cpu_engine) {
  const std::size_t count = kSanitized ? 9 : 40;
  Problem problem = ensemble(sum(force(), net(small_net())), count);
  problem.event = distance();
  for (const std::string_view method : {"tsit5", "dop853"}) {  // the second's interpolant has stages of its own
    using F32 = ColumnTrajectory<float, WithText<float, EventInKernel<float>>, ForceFirst<float>>;
    using F64 = ColumnTrajectory<double, WithText<double, EventInKernel<double>>, ForceFirst<double>>;
    expect_gemm_as_cpu<F32>(problem, method);
    expect_gemm_as_cpu<F64>(problem, method);
  }
  problem.event = distance_of_graph();
  using Graph = ColumnTrajectory<double, WithText<double, GraphInKernel<double>>, ForceFirst<double>>;
  expect_gemm_as_cpu<Graph>(problem, "bs3");
  EXPECT_GT(stopped_, trajectories_ / 4);
  EXPECT_LT(stopped_, trajectories_);
}

TEST_F(TextInModes, terms_beside_systems_and_nets_have_the_cpu_engines_bits_in_cuda_gemm) {
  const Problem problem = ensemble(sum(sum(system("lorenz"), force()), net(small_net())), kSanitized ? 5 : 33);
  expect_gemm_as_cpu<ColumnTrajectory<float, ProductDerivative<float, 3>, ForceAfterLorenz<float>>>(problem, "tsit5");
  expect_gemm_as_cpu<ColumnTrajectory<double, ProductDerivative<double, 3>, ForceAfterLorenz<double>>>(problem, "rk4");
}

// Some of which pass the half.
Problem about_half(std::size_t count, TerminalEvent event) {
  Problem problem = uneven_ensemble(net(small_net()), {0.45, 0.5, 0.3}, {}, count, 0.8, {0, 0.31, 1});
  problem.event = std::move(event);
  return problem;
}

TEST_F(TextInModes, cuda_gemm_names_what_it_compiled) {
  const Problem problem = about_half(3, half_as_text());
  using Column = ColumnTrajectory<float, WithText<float, AboveHalf>, NoTerms>;
  std::string kernel;
  solve_by_gemm<Column>(problem, options_for<float>("tsit5"), &kernel);
  EXPECT_THAT(kernel, HasSubstr("cuda gemm, net, event half, f32, the host"));
}

TEST_F(TextInModes, an_event_and_a_term_have_the_cpu_engines_bits_on_tensor_cores) {
  const std::size_t count = kSanitized ? 5 : 71;
  Problem problem = ensemble(sum(force(), net(small_net())), count);
  problem.event = distance();
  Options options = options_for<float>("tsit5");
  using Derivative = WithEvent<OutsideDerivative<3, float>, EventInKernel<float>, float>;
  const Solution tiles = solve_by_tensor_tiles<Derivative, ForceFirst<float>>(problem, options);
  problem.rhs = sum(force(), testing::rounded_net<Bf16>(small_net()));
  options.device = DeviceChoice::cpu();
  const Solution cpu = solve(problem, options);
  expect_same(cpu, tiles);
  EXPECT_TRUE(std::any_of(cpu.records().begin(), cpu.records().end(),
                          [](const TrajectoryRecord& record) { return record.status == Status::terminated; }));
}

// Whatever the products' sums are, a text that says what a kernel's own event says stops at the same bits.
TEST_F(TextInModes, a_text_stops_where_the_same_event_of_the_kernels_own_does) {
  Runtime* const card = wanted_card();
  if (card != nullptr && !load_nvrtc().missing.empty()) GTEST_SKIP() << load_nvrtc().missing;
  GemmRuntime* const cards_products = card != nullptr ? load_gemm_runtime() : nullptr;
  const std::size_t count = kSanitized ? 9 : 40;
  const Problem problem = about_half(count, half()), as_text = about_half(count, half_as_text());
  Options options = options_for<float>("tsit5");
  options.matrix_precision = MatrixPrecision::bf16;
  const Solution known = solve_on(device_, problem, options, std::size_t{1} << 28, nullptr, card);
  EXPECT_TRUE(std::any_of(known.records().begin(), known.records().end(),
                          [](const TrajectoryRecord& record) { return record.status == Status::terminated; }));
  using Tile = WithEvent<OutsideDerivative<3, float>, AboveHalf, float>;
  expect_same(known, card != nullptr ? solve_on(device_, as_text, options, std::size_t{1} << 28, nullptr, card)
                                     : solve_by_tensor_tiles<Tile, NoTerms>(as_text, options));
  if (card != nullptr && (cards_products == nullptr || !cards_products->missing().empty()))
    GTEST_SKIP() << "no cuBLASLt";
  HostGemmRuntime hosts_products(gemm_);
  const auto by_gemm = [&](const Problem& of) {
    Solution solution(options.precision, of.trajectories(), 3, of.save_times, of.save_times_per_trajectory);
    CountingSink sink(solution);
    const GemmTarget target{card != nullptr ? card : &runtime_, card != nullptr ? cards_products : &hosts_products};
    advance_gemm<float>(of, options, target, sink, {});
    return solution;
  };
  const Solution by_products = by_gemm(problem);
  expect_same(by_products,
              card != nullptr
                  ? by_gemm(as_text)
                  : solve_by_gemm<ColumnTrajectory<float, WithText<float, AboveHalf>, NoTerms>>(as_text, options));
}

TEST_F(TextInModes, texts_are_compiled_by_nvrtc) {
  if (kSanitized) GTEST_SKIP() << "NVRTC reads the same text without sanitizers";
  if (!load_nvrtc().missing.empty()) GTEST_SKIP() << load_nvrtc().missing;
  Problem problem = ensemble(sum(force(), net(small_net())), 1);
  problem.event = distance();
  Options options = options_for<float>("tsit5");
  EXPECT_GT(load_nvrtc().compile(*gemm_source(problem, options), 90).size(), 1000u);
  options.matrix_precision = MatrixPrecision::bf16;
  EXPECT_GT(load_nvrtc().compile(*lower_problem<float>(problem, options).source, 90).size(), 1000u);
}

}  // namespace
}  // namespace lockstep::ode::cuda

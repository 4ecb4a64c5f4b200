// The kernels whose nets run on tensor cores, in the simulator of blocks, against the CPU engine on a right-hand side
// that rounds as they do: the same bits, steps and all. With LOCKSTEP_TEST_DEVICE=cuda what holds for any sums runs on
// this machine's first GPU, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/cuda/testing/tensor_reference.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/engine.h"
#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/cuda/testing/host_runtime.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/testing/plain_function.h"
#include "lockstep/ode/testing/rounded_net.h"

namespace lockstep::ode::cuda {
namespace {

using lockstep::cuda::Bf16;
using lockstep::cuda::Fp16;
using lockstep::cuda::Tf32;
using ::testing::HasSubstr;
using testing::rounded_net;

template <class Format>
constexpr MatrixPrecision kMode = MatrixPrecision::f32;
template <>
constexpr MatrixPrecision kMode<Tf32> = MatrixPrecision::tf32;
template <>
constexpr MatrixPrecision kMode<Bf16> = MatrixPrecision::bf16;
template <>
constexpr MatrixPrecision kMode<Fp16> = MatrixPrecision::fp16;
static_assert(factor_roundoff(kMode<Tf32>) == Tf32::kUnit && factor_roundoff(kMode<Bf16>) == Bf16::kUnit &&
              factor_roundoff(kMode<Fp16>) == Fp16::kUnit);

Solution solve_on_tensor_cores(const Problem& problem, Options options, MatrixPrecision mode, Runtime* runtime,
                               std::size_t budget = std::size_t{1} << 28) {
  options.matrix_precision = mode;
  Solution solution(Precision::f32, problem.trajectories(), problem.rhs->components(), problem.save_times,
                    problem.save_times_per_trajectory);
  MemorySink sink(solution);
  HostDevice device;
  HostRuntime host(device);
  const Summary summary =
      advance<float>(problem, options, DeviceTarget{runtime != nullptr ? runtime : &host, 0, budget}, sink, {});
  EXPECT_THAT(summary.kernel + (problem.trajectories() == 0 ? "tiles_" + std::string(to_string(mode)) : ""),
              HasSubstr("tiles_" + std::string(to_string(mode))));
  return solution;
}

void expect_same(const Solution& a, const Solution& b) {
  ASSERT_EQ(a.trajectories(), b.trajectories());
  for (std::size_t i = 0; i < a.trajectories(); ++i) {
    ASSERT_EQ(a.record(i).status, b.record(i).status) << i;
    ASSERT_EQ(a.record(i).accepted, b.record(i).accepted) << i;
    ASSERT_EQ(a.record(i).evaluations, b.record(i).evaluations) << i;
  }
  const auto x = a.states<float>(), y = b.states<float>();
  ASSERT_EQ(x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    ASSERT_EQ(std::memcmp(&x[i], &y[i], sizeof(float)), 0) << i << ": " << x[i] << " and " << y[i];
  }
}

Options options_for(std::string_view method) {
  Options options;
  options.method = method;
  options.rtol = options.atol = 1e-4;
  options.threads = 1;
  options.device = DeviceChoice::cpu();
  if (method == "rk4" || method == "euler") {
    options.control = StepControl::fixed;
    options.dt = 0.03;
  }
  return options;
}

// Trajectories that differ in where they start and how long they run.
Problem ensemble(Rhs rhs, const std::vector<double>& u0, const std::vector<double>& parameters, std::size_t count) {
  Problem problem;
  problem.rhs = std::move(rhs);
  problem.parameters = parameters;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i % 17) / 17;
    for (const double u : u0) problem.initial_states.push_back(u + 0.1 * x);
    problem.end_times.push_back(0.1 + 0.1 * static_cast<double>(i % 3));
    for (const double share : {0.0, 0.3, 1.0}) problem.save_times.push_back(share * problem.end_times.back());
  }
  if (count == 0) problem.end_times = {0.1};
  problem.save_times_per_trajectory = true;
  return problem;
}

template <class Format>
class TensorTiles : public ::testing::Test {};
// tensor_kernel_test runs every format under the sanitizers.
using Formats = std::conditional_t<kSanitized, ::testing::Types<Tf32>, ::testing::Types<Tf32, Bf16, Fp16>>;
TYPED_TEST_SUITE(TensorTiles, Formats);

template <class Format>
void expect_reference(const Mlp& mlp, std::string_view method, std::size_t count) {
  SCOPED_TRACE(::testing::Message() << method << ", " << count << " trajectories");
  std::vector<double> u0;
  for (std::size_t c = 0; c < mlp.outputs(); ++c) u0.push_back(0.5 - 0.2 * static_cast<double>(c % 4));
  const Options options = options_for(method);
  expect_same(solve_on_tensor_cores(ensemble(net(mlp), u0, {}, count), options, kMode<Format>, nullptr),
              solve(ensemble(rounded_net<Format>(mlp), u0, {}, count), options));
}

TYPED_TEST(TensorTiles, have_the_bits_of_the_cpu_engine_on_a_net_that_rounds_as_they_do) {
  const Mlp mlp = mlp::random_mlp({3, 33, 3}, {ActivationKind::tanh}, 11);
  std::size_t turn = 0;
  for (const std::size_t count : {0u, 1u, 31u, 33u, 83u}) {
    if (is_tried(turn++, 3)) expect_reference<TypeParam>(mlp, "tsit5", count);
  }
  expect_reference<TypeParam>(mlp, "rk4", 7);
  if (!kSanitized) expect_reference<TypeParam>(mlp, "dop853", 7);
}

TYPED_TEST(TensorTiles, run_every_width_of_layers) {
  std::size_t turn = 0;
  for (const std::size_t width : {16u, 31u, 100u, 128u, 129u, 256u}) {
    if (!is_tried(turn++, 4)) continue;
    SCOPED_TRACE(width);
    expect_reference<TypeParam>(mlp::random_mlp({3, width, 9, 3}, {ActivationKind::relu}, 5), "bs3", 3);
  }
  expect_reference<TypeParam>(mlp::random_mlp({40, 32, 40}, {ActivationKind::silu}, 5), "bs3", 3);
}

TYPED_TEST(TensorTiles, add_up_nets_with_parameters_time_and_scalings) {
  Mlp scaled = mlp::random_mlp({6, 20, 3}, {ActivationKind::tanh}, 3);
  scaled.input_scaling = {std::vector<double>(6, 0.1), std::vector<double>(6, 1.7)};
  scaled.output_scaling = {std::vector<double>(3, 0.9), std::vector<double>(3, 0.2)};
  const Mlp other = mlp::random_mlp({3, 150, 3}, {ActivationKind::silu}, 4);
  const auto plain = testing::plain_function(3, 2, [=](double t, auto u, auto p, auto out) {
    const auto at = [](auto x) { return static_cast<float>(x); };
    const std::vector<float> state{at(u(0)), at(u(1)), at(u(2))};
    const auto first = lockstep::cuda::testing::tensor_reference<TypeParam>(
        scaled, {state[0], state[1], state[2], at(p(0)), at(p(1)), at(t)});
    const auto second = lockstep::cuda::testing::tensor_reference<TypeParam>(other, state);
    for (std::size_t c = 0; c < 3; ++c) out(c) = first[c] + second[c];
  });
  const Rhs rhs = sum(net(scaled, {"net", true}), net(other));
  const Options options = options_for("tsit5");
  const std::size_t count = kSanitized ? 5 : 35;
  expect_same(solve_on_tensor_cores(ensemble(rhs, {1, 0.5, -1}, {0.3, 0.2}, count), options, kMode<TypeParam>, nullptr),
              solve(ensemble(plain, {1, 0.5, -1}, {0.3, 0.2}, count), options));
}

TYPED_TEST(TensorTiles, do_not_depend_on_how_the_ensemble_is_cut) {
  const Mlp mlp = mlp::random_mlp({3, 40, 30, 3}, {ActivationKind::tanh}, 2);
  const Problem problem = ensemble(net(mlp), {0.5, 0.2, -0.4}, {}, kSanitized ? 43 : 79);
  Runtime* const card = wanted_card();
  const Options options = options_for("tsit5");
  expect_same(solve_on_tensor_cores(problem, options, kMode<TypeParam>, card),
              solve_on_tensor_cores(problem, options, kMode<TypeParam>, card, 180 << 10));
}

// One step of Euler's method: u + dt f(u), f within its bound of float64, one rounding each of the product and the sum.
TYPED_TEST(TensorTiles, step_within_the_bound_of_a_nets_evaluation) {
  const Mlp mlp = mlp::random_mlp({3, 64, 64, 3}, {ActivationKind::tanh}, 8);
  Problem problem = ensemble(net(mlp), {0.5, 0.2, -0.4}, {}, 40);
  problem.end_times = {0.125};
  problem.save_times = {0.125};
  problem.save_times_per_trajectory = false;
  Options options = options_for("euler");
  options.dt = 0.125;
  const Solution solution = solve_on_tensor_cores(problem, options, kMode<TypeParam>, wanted_card());
  for (std::size_t i = 0; i < 40; ++i) {
    std::vector<float> u;
    for (std::size_t c = 0; c < 3; ++c) u.push_back(static_cast<float>(problem.initial_states[i * 3 + c]));
    const auto f = lockstep::cuda::testing::tensor_bound<TypeParam>(mlp, u);
    for (std::size_t c = 0; c < 3; ++c) {
      const double exact = u[c] + 0.125 * f[c].value;
      EXPECT_LE(std::fabs(solution.states<float>()[i * 3 + c] - exact),
                0.125 * f[c].error + 0x1p-23 * (std::fabs(u[c]) + std::fabs(exact)));
    }
  }
}

TEST(TensorModes, are_refused_where_no_kernel_has_them) {
  Options options = options_for("tsit5");
  options.matrix_precision = MatrixPrecision::bf16;
  const auto message = [&](const Rhs& rhs) {
    Problem problem;
    problem.rhs = rhs;
    const auto found = obstacle(problem, options);
    return found ? found->found + "; " + found->expected : std::string();
  };
  EXPECT_THAT(message(system("lorenz")), HasSubstr("bf16; f32: no net of plain layers multiplies matrices here"));
  EXPECT_THAT(message(net(mlp::random_mlp({3, 300, 3}, {ActivationKind::relu}, 1))),
              HasSubstr("bf16 with a net 300 wide; at most 256"));
  EXPECT_EQ(message(sum(system("lorenz"), net(mlp::random_mlp({3, 16, 3}, {ActivationKind::relu}, 1)))), "");
}

}  // namespace
}  // namespace lockstep::ode::cuda

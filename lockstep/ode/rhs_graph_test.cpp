// Nets that are no plain stacks as right-hand sides: what their ports take, and the bits of their plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/math/math.h"
#include "lockstep/ode/cuda/kernel_source.h"
#include "lockstep/ode/cuda/nvrtc.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

using graph::Binary;
using graph::BinaryKind;
using graph::Graph;
using ::testing::HasSubstr;

// du = A u + tanh(B u): a residual net of two components.
Graph residual() {
  Graph net;
  net.inputs = {{"x", 0, 2}};
  net.nodes = {{"a", graph::Dense{2, 2, {0, 1, -1, 0}, {0, 0}}, {0}},
               {"b", graph::Dense{2, 2, {-0.5, 0, 0.25, -0.5}, {0.125, 0}}, {0}},
               {"t", graph::Activate{{ActivationKind::tanh}}, {2}},
               {"s", Binary{BinaryKind::add}, {1, 3}}};
  net.outputs = {{"y", 4, 2}};
  return net;
}

// du = p u + t, its ports named and in an order of their own.
Graph driven(std::array<std::string, 3> names = {"t", "u", "p"}) {
  Graph net;
  net.inputs = {{names[0], 0, 1}, {names[1], 1, 2}, {names[2], 2, 1}};
  net.nodes = {{"pu", Binary{BinaryKind::multiply}, {1, 2}}, {"sum", Binary{BinaryKind::add}, {3, 0}}};
  net.outputs = {{"du", 4, 2}};
  return net;
}

TEST(RhsGraph, ports_take_state_parameters_and_time_by_their_names) {
  const Rhs rhs = net(driven());
  EXPECT_EQ(rhs->components(), 2u);
  EXPECT_EQ(rhs->parameters(), 1u);
  const auto tile_function = lower<double>(*rhs, best_cpu_target());
  AlignedBuffer<double> t(kTileLanes), u(2 * kTileLanes), p(kTileLanes), du(2 * kTileLanes);
  for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
    t[lane] = static_cast<double>(lane);
    u[lane] = 2;
    u[kTileLanes + lane] = 3;
    p[lane] = 10;
  }
  AlignedBuffer<std::byte> workspace(tile_function->workspace_bytes());
  tile_function->evaluate({t.data(), u.data(), p.data(), du.data(), kTileLanes}, workspace.data());
  for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
    EXPECT_EQ(du[lane], 20.0 + static_cast<double>(lane));
    EXPECT_EQ(du[kTileLanes + lane], 30.0 + static_cast<double>(lane));
  }
}

TEST(RhsGraph, ports_with_other_names_take_the_same_in_order) {
  const Rhs rhs = net(driven({"wind", "heat", "rate"}), {.with_time = true});
  EXPECT_EQ(rhs->components(), 2u);
  EXPECT_EQ(rhs->parameters(), 1u);
}

TEST(RhsGraph, a_solve_has_the_same_bits_alone_and_in_an_ensemble) {
  Problem problem;
  problem.rhs = net(residual());
  for (int i = 0; i < 70; ++i) {
    problem.initial_states.push_back(1 + 0.01 * i);
    problem.initial_states.push_back(-0.5);
  }
  problem.end_times = {2};
  problem.save_times = {0, 1, 2};
  const Solution all = solve(problem);
  ASSERT_EQ(all.trajectories(), 70u);
  problem.initial_states = {1 + 0.01 * 69, -0.5};
  const Solution one = solve(problem);
  for (std::size_t time = 0; time < 3; ++time) {
    for (std::size_t c = 0; c < 2; ++c) EXPECT_EQ(one.state(0, time, c), all.state(69, time, c));
  }
  EXPECT_NE(net(residual())->digest(), net(driven())->digest());
  EXPECT_THAT(net(residual())->description(), HasSubstr("2 -> 2, graph of 4 nodes"));
}

TEST(RhsGraph, nets_that_are_no_derivative_are_refused) {
  Graph two = residual();
  two.outputs.push_back({"z", 3, 2});
  EXPECT_THAT(message_of([&] { net(two); }), HasSubstr("found 2 output ports, expected one"));
  EXPECT_THAT(message_of([&] { net(driven({"t", "u", "q"})); }), HasSubstr("an input port \"q\""));
  EXPECT_THAT(message_of([&] { net(driven({"u", "t", "p"})); }), HasSubstr("input port \"u\" of 1 features"));
  Graph wide = residual();
  wide.nodes.push_back({"w", graph::Concatenate{}, {4, 4}});
  wide.outputs = {{"y", 5, 4}};
  EXPECT_THAT(message_of([&] { net(wide); }), HasSubstr("2 inputs and 4 outputs"));
}

// A stack written as a graph: two ways through different kernels, each of some 1e4 rounded operations a trajectory.
TEST(RhsGraph, gradients_of_a_stack_are_those_of_the_stack) {
  Mlp mlp;
  mlp.layers = {{3, 7, {}, {}, {ActivationKind::tanh}}, {7, 2, {}, {}, {}}};
  for (DenseLayer& layer : mlp.layers) {
    for (std::size_t i = 0; i < layer.inputs * layer.outputs; ++i) {
      layer.weights.push_back(0.4 - 0.125 * static_cast<double>(i * 5 % 7));
    }
    for (std::size_t i = 0; i < layer.outputs; ++i) layer.bias.push_back(0.0625 * static_cast<double>(i));
  }
  Graph graph;
  graph.inputs = {{"x", 0, 3}};
  graph.nodes = {{"a", graph::Dense{3, 7, mlp.layers[0].weights, mlp.layers[0].bias}, {0}},
                 {"t", graph::Activate{{ActivationKind::tanh}}, {1}},
                 {"b", graph::Dense{7, 2, mlp.layers[1].weights, mlp.layers[1].bias}, {2}}};
  graph.outputs = {{"y", 3, 2}};
  Problem problem;
  for (int i = 0; i < 37; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), {1 + 0.02 * i, -0.5});
    problem.parameters.push_back(0.01 * i);
  }
  problem.end_times = {2};
  problem.save_times = {0.5, 1, 2};
  const SquaredError loss{std::vector<double>(37 * 3 * 2, 0.25), {}, 1};
  Options options;
  options.precision = Precision::f64;
  problem.rhs = net(mlp);
  const Gradients expected = solve_with_gradients(problem, options, loss);
  problem.rhs = net(graph);
  ASSERT_EQ(problem.rhs->weights().size(), expected.weights.size());
  const Gradients found = solve_with_gradients(problem, options, loss);
  EXPECT_EQ(found.left_out, 0u);
  EXPECT_EQ(found.loss, expected.loss) << "states have the same bits";
  const auto near = [](const std::vector<double>& a, const std::vector<double>& b) {
    double largest = 0;
    for (const double number : b) largest = std::max(largest, std::abs(number));
    ASSERT_EQ(a.size(), b.size());
    ASSERT_GT(largest, 0.01);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-12 * largest) << i;
  };
  near(found.weights, expected.weights);
  near(found.initial_states, expected.initial_states);
  near(found.parameters, expected.parameters);
}

// Central differences of the loss over fixed steps with e = 1e-5: e^2 times third derivatives below 1e2, and rounding
// 1e-16 / e, are below 1e-7 of it.
TEST(RhsGraph, gradients_of_a_residual_net_are_the_limit_of_differences) {
  Problem problem;
  problem.rhs = net(residual());
  problem.initial_states = {1, -0.5, 0.25, 0.75};
  problem.end_times = {1};
  problem.save_times = {0.5, 1};
  Options options;
  options.precision = Precision::f64;
  options.method = "rk4";
  options.control = StepControl::fixed;
  options.dt = 0.05;
  const SquaredError loss{{1, 0, 0, 1, 0.5, 0.5, 0, 0}, {}, 1};
  GradientSolver solver(problem, options, loss);
  const std::vector<double> weights = problem.rhs->weights();
  ASSERT_EQ(weights.size(), 12u);
  const std::vector<double> gradient = solver.evaluate(weights).weights;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    std::vector<double> ahead = weights, behind = weights;
    ahead[i] += 1e-5;
    behind[i] -= 1e-5;
    const double after = solver.evaluate(ahead).loss, before = solver.evaluate(behind).loss;
    EXPECT_NEAR(gradient[i], (after - before) / 2e-5, 1e-7 * std::max(1.0, std::abs(gradient[i]))) << "weight " << i;
  }
  EXPECT_EQ(solver.evaluate(weights).weights, gradient);
}

template <class Number = double>
std::vector<Number> first(std::size_t n, std::vector<Number> all) {
  all.resize(n);
  return all;
}

// du of state u[n], one parameter and time through every operation, all added up by a dense layer; n is 5, or 1: then
// operations of one number are written otherwise.
Graph every_operation(std::size_t n) {
  Graph net;
  net.inputs = {{"u", 0, n}, {"p", 1, 1}, {"t", 2, 1}};
  const auto add = [&net](graph::Operation operation, std::vector<std::size_t> inputs) {
    net.nodes.push_back({"n" + std::to_string(net.nodes.size()), std::move(operation), std::move(inputs)});
    return 2 + net.nodes.size();
  };
  const auto numbers = [](std::size_t count, double from) {
    std::vector<double> result(count);
    for (std::size_t i = 0; i < count; ++i) result[i] = from + 0.125 * static_cast<double>((i * 5 + 3) % 7);
    return result;
  };
  const std::size_t u = 0, p = 1, t = 2;
  const std::size_t c = add(graph::Constant{first(n, {0.5, 2, -1, 3, 0.25})}, {}),
                    half = add(graph::Constant{{0.5}}, {});
  const std::size_t positive = add(graph::Unary{graph::UnaryKind::absolute}, {u});
  const std::size_t less = add(Binary{BinaryKind::less}, {u, c});
  std::vector<std::size_t> all = {c, half, positive, less, t};
  for (std::size_t kind = 0; kind < graph::kUnaryKinds; ++kind) {
    all.push_back(add(graph::Unary{static_cast<graph::UnaryKind>(kind)}, {kind == 0 || kind == 2 ? positive : u}));
  }
  for (std::size_t kind = 0; kind < graph::kBinaryKinds; ++kind) {
    all.push_back(add(Binary{static_cast<BinaryKind>(kind)}, {kind == 6 ? positive : u, c}));
    all.push_back(add(Binary{static_cast<BinaryKind>(kind)}, {kind == 6 ? half : p, u}));
  }
  for (const Activation& activation : all_activations()) {
    all.push_back(add(graph::Activate{activation}, {u}));
    all.push_back(add(graph::Chain{activation}, {u, c}));
  }
  all.push_back(add(graph::Clip{-0.5, 0.75}, {u}));
  all.push_back(add(graph::DeadZone{-0.5, 0.25, 0.125}, {u}));
  const graph::Interpolate table{{-1, -0.25, 0.5, 1.5}, 2, numbers(4 * 2 * 3, 0.75)};
  all.push_back(add(table, {add(graph::Columns{{0}}, {u})}));
  all.push_back(add(table, {t}));
  all.push_back(add(graph::Interpolate{{0, 1}, 1, {0.5, 2}}, {t}));
  all.push_back(add(graph::Choose{first<std::uint8_t>(n, {1, 0, 0, 1, 1})}, {u, p}));
  all.push_back(add(graph::Select{}, {less, u, p}));
  all.push_back(add(graph::Columns{{n - 1, 0, 0}}, {u}));
  all.push_back(add(graph::Columns{{n - 1}}, {u}));
  all.push_back(add(graph::Concatenate{}, {t, p, half}));
  for (int kind = 0; kind < 4; ++kind) all.push_back(add(graph::Reduce{static_cast<graph::ReduceKind>(kind)}, {u}));
  all.push_back(add(graph::Softmax{graph::SoftmaxKind::plain}, {u}));
  all.push_back(add(graph::Softmax{graph::SoftmaxKind::logarithm}, {u}));
  all.push_back(add(graph::LayerNormalise{numbers(n, 0.5), numbers(n, -0.25), 1e-3}, {u}));
  all.push_back(add(graph::Standardise{numbers(n, -0.5), numbers(n, 0.5)}, {u}));
  all.push_back(add(graph::Rescale{numbers(n, 0.5), numbers(n, -0.5)}, {u}));
  const std::size_t joined = add(graph::Concatenate{}, all);
  const std::size_t width = net.widths()[joined];
  net.outputs = {{"du", add(graph::Dense{width, n, numbers(n * width, -0.375), numbers(n, 0)}, {joined}), n}};
  return net;
}

// The texts as a kernel holds them.
template <class T, std::size_t n>
void run_text(double t, const T* u, const T* p, T* du) {
  if constexpr (n == 5) {
#include "lockstep/ode/testing/graph_body.inc"
  } else {
#include "lockstep/ode/testing/graph_body_of_one.inc"
  }
}

TEST(RhsGraph, the_texts_for_a_gpu_are_those_compiled_here) {
  for (const auto& [n, name] :
       {std::pair<std::size_t, std::string>{5, "graph_body.inc"}, {1, "graph_body_of_one.inc"}}) {
    const Rhs rhs = net(every_operation(n));
    const auto parts = rhs->parts();
    ASSERT_EQ(parts.size(), 1u);
    const std::string& text = *std::get<SourcePart>(parts[0].what).text;
    std::ifstream file(LOCKSTEP_ODE_TESTING "/" + name);
    const std::string compiled{std::istreambuf_iterator<char>(file), {}};
    if (text != compiled) std::ofstream(::testing::TempDir() + name) << text;
    EXPECT_TRUE(text == compiled) << "the new one is in " << ::testing::TempDir() << name;
  }
}

template <class T, std::size_t n>
void expect_bits_of_the_plan() {
  const auto tile_function = lower<T>(*net(every_operation(n)), best_cpu_target());
  AlignedBuffer<double> t(kTileLanes);
  AlignedBuffer<T> u(n * kTileLanes), p(kTileLanes), du(n * kTileLanes);
  for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
    t[lane] = 0.1 * static_cast<double>(lane);
    p[lane] = static_cast<T>(1.5 - 0.07 * static_cast<double>(lane));
    for (std::size_t c = 0; c < n; ++c) {
      u[c * kTileLanes + lane] = static_cast<T>(0.37 * static_cast<double>((lane * n + c) * 7 % 31) - 5.1);
    }
  }
  AlignedBuffer<std::byte> workspace(tile_function->workspace_bytes());
  tile_function->evaluate({t.data(), u.data(), p.data(), du.data(), kTileLanes}, workspace.data());
  for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
    T one[n], found[n] = {};
    for (std::size_t c = 0; c < n; ++c) one[c] = u[c * kTileLanes + lane];
    run_text<T, n>(t[lane], one, &p[lane], found);
    for (std::size_t c = 0; c < n; ++c) {
      ASSERT_EQ(std::memcmp(&found[c], &du[c * kTileLanes + lane], sizeof(T)), 0)
          << lane << ", " << c << ": " << found[c] << " and " << du[c * kTileLanes + lane];
      ASSERT_TRUE(std::isfinite(found[c]));
    }
  }
}

TEST(RhsGraph, the_text_for_a_gpu_has_the_bits_of_the_plan) {
  expect_bits_of_the_plan<float, 5>();
  expect_bits_of_the_plan<double, 5>();
}

TEST(RhsGraph, the_text_for_a_gpu_has_the_bits_of_the_plan_where_values_are_single_numbers) {
  expect_bits_of_the_plan<float, 1>();
  expect_bits_of_the_plan<double, 1>();
}

TEST(RhsGraph, the_text_for_a_gpu_compiles) {
  if (!cuda::load_nvrtc().missing.empty()) GTEST_SKIP() << cuda::load_nvrtc().missing;
  const Rhs rhs = net(residual());
  const auto parts = rhs->parts();
  const auto source = cuda::make_kernel_source(std::get<SourcePart>(parts[0].what), "tsit5", Precision::f32);
  EXPECT_GT(cuda::load_nvrtc().compile(source, 90).size(), 1000u);
}

TEST(RhsGraph, large_nets_have_no_text) {
  Graph large;
  large.inputs = {{"u", 0, 130}};
  large.nodes = {{"a", graph::Dense{130, 130, std::vector<double>(130 * 130), std::vector<double>(130)}, {0}},
                 {"b", Binary{BinaryKind::add}, {0, 1}}};
  large.outputs = {{"du", 2, 130}};
  EXPECT_TRUE(net(large)->parts().empty());
}

}  // namespace
}  // namespace lockstep::ode

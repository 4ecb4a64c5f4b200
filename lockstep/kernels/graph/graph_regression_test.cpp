// Loss and gradient of graphs over batches: RegressionPlan's for plain stacks, differences for others, the same bits
// whatever computes them.
#include "lockstep/kernels/graph/regression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/kernels/mlp/testing/reference.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

graph::Graph stack(const Mlp& mlp) {
  graph::Graph made{{{"x", 0, mlp.inputs()}}, {}, {}};
  std::size_t value = 0;
  for (const DenseLayer& layer : mlp.layers) {
    made.nodes.push_back({"dense", graph::Dense{layer.inputs, layer.outputs, layer.weights, layer.bias}, {value}});
    made.nodes.push_back({"activation", graph::Activate{layer.activation}, {++value}});
    ++value;
  }
  made.outputs = {{"y", value, mlp.outputs()}};
  return made;
}

// y = dense(softmax(dense(log x)) + log x): past the last sample x is 0, where nothing is finite.
graph::Graph residual_net() {
  const Mlp mlp = mlp::random_mlp({3, 3, 2}, {ActivationKind::tanh}, 5);
  const auto dense = [&](std::size_t i) {
    const DenseLayer& layer = mlp.layers[i];
    return graph::Dense{layer.inputs, layer.outputs, layer.weights, layer.bias};
  };
  return {{{"x", 0, 3}},
          {{"log", graph::Unary{graph::UnaryKind::log}, {0}},
           {"inner", dense(0), {1}},
           {"softmax", graph::Softmax{}, {2}},
           {"sum", graph::Binary{graph::BinaryKind::add}, {1, 3}},
           {"outer", dense(1), {4}}},
          {{"y", 5, 2}}};
}

template <class T>
struct Samples {
  std::vector<T> x, y, f;
  MatrixView<const T> in, targets, factors = {};
  Samples(std::size_t inputs, std::size_t outputs, std::size_t count, ResidualFactors with = ResidualFactors::none)
      : x(inputs * count), y(outputs * count) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> number(0.5, 2);
    for (T& value : x) value = static_cast<T>(number(random));
    for (T& value : y) value = static_cast<T>(number(random) - 1);
    in = MatrixView<const T>::row_major(x.data(), count, inputs);
    targets = MatrixView<const T>::row_major(y.data(), count, outputs);
    if (with == ResidualFactors::none) return;
    for (std::size_t i = 0; i < y.size(); ++i) f.push_back(i % 5 == 0 ? T(0) : static_cast<T>(number(random) / 2));
    factors = MatrixView<const T>::row_major(f.data(), count, outputs);
  }
};

template <class T>
struct Result {
  double loss;
  std::vector<T> gradient;
};

template <class T, class Plan>
Result<T> run(Plan plan, const Samples<T>& samples, int threads = 1, std::span<const std::uint32_t> rows = {}) {
  const ResidualFactors with = samples.f.empty() ? ResidualFactors::none : ResidualFactors::given;
  TiledSamples<T> tiles = plan.make_samples(samples.in.rows, with);
  plan.assign(tiles, samples.in, samples.targets, rows, samples.factors);
  const double scale = 1 / static_cast<double>(samples.in.rows);
  Result<T> result{0, std::vector<T>(plan.parameter_count())};
  result.loss = plan.loss_and_gradient(tiles, scale, result.gradient, threads);
  EXPECT_EQ(plan.loss(tiles, scale, threads), result.loss);
  return result;
}

// Sums of 43 terms of size 1 to 10, in another order: 1e-13 of them leaves a factor of ten.
TEST(GraphRegression, is_the_plain_stacks_for_every_residual) {
  const Mlp mlp = mlp::random_mlp({3, 17, 2}, {ActivationKind::tanh}, 4);
  for (int turn = 0; turn < 6; ++turn) {
    const Residual residual = std::array{Residual::squared, Residual::absolute, Residual::huber}[turn % 3];
    const Samples<double> samples(3, 2, 43, turn < 3 ? ResidualFactors::none : ResidualFactors::given);
    ResidualCost cost{residual, 0.75, {0.5, 2}};
    if (turn == 5) cost.deltas = {0.25, 1.5};
    const Result<double> expected = run<double>(RegressionPlan<double>::compile(mlp, cost), samples);
    const Result<double> found = run<double>(GraphRegressionPlan<double>::compile(stack(mlp), cost), samples);
    EXPECT_NEAR(found.loss, expected.loss, 1e-13 * expected.loss);
    ASSERT_EQ(found.gradient.size(), expected.gradient.size());
    for (std::size_t i = 0; i < found.gradient.size(); ++i) {
      EXPECT_NEAR(found.gradient[i], expected.gradient[i], 1e-12) << to_string(residual) << i;
    }
  }
}

// Differences of 1e-5 leave 1e-10 times third derivatives, and some 1e-16 over 1e-5.
TEST(GraphRegression, gradients_are_those_of_differences) {
  const graph::Graph net = residual_net();
  const Samples<double> samples(3, 2, 37);
  const Result<double> found = run<double>(GraphRegressionPlan<double>::compile(net), samples);
  std::vector<double> weights = graph::gather_weights(net);
  ASSERT_EQ(found.gradient.size(), weights.size());
  auto plan = GraphRegressionPlan<double>::compile(net);
  TiledSamples<double> tiles = plan.make_samples(37);
  plan.assign(tiles, samples.in, samples.targets);
  const auto loss = [&] {
    plan.set_parameters(weights);
    return plan.loss(tiles, 1 / 37.0);
  };
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double at = weights[i];
    weights[i] = at + 1e-5;
    const double above = loss();
    weights[i] = at - 1e-5;
    const double below = loss();
    weights[i] = at;
    EXPECT_NEAR(found.gradient[i], (above - below) / 2e-5, 1e-8) << i;
  }
}

template <class T>
class GraphRegressionBits : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GraphRegressionBits, Types);

TYPED_TEST(GraphRegressionBits, do_not_depend_on_threads_and_instruction_sets) {
  using T = TypeParam;
  for (const std::size_t count : {1, 32, 257, kSanitized ? 4099 : 20011}) {
    const Samples<T> samples(3, 2, count);
    const Result<T> expected = run<T>(GraphRegressionPlan<T>::compile(residual_net()), samples);
    for (const T g : expected.gradient) EXPECT_TRUE(std::isfinite(g));
    for (const CpuTarget target : available_cpu_targets()) {
      for (const int threads : {1, 2, 5}) {
        const Result<T> found = run<T>(GraphRegressionPlan<T>::compile(residual_net(), {}, target), samples, threads);
        EXPECT_EQ(found.loss, expected.loss) << count;
        EXPECT_EQ(found.gradient, expected.gradient) << count;
      }
    }
    std::vector<std::uint32_t> rows(count);
    std::iota(rows.begin(), rows.end(), 0u);
    EXPECT_EQ(run<T>(GraphRegressionPlan<T>::compile(residual_net()), samples, 1, rows).gradient, expected.gradient);
  }
}

// Layers that read one value, and layers whose cotangents go to one value or come from one: lowering merges some.
graph::Graph merging_net() {
  const Mlp mlp = mlp::random_mlp({3, 3, 5, 3, 3, 2}, {ActivationKind::tanh}, 6);
  const auto dense = [&](std::size_t i) {
    const DenseLayer& layer = mlp.layers[i];
    return graph::Dense{layer.inputs, layer.outputs, layer.weights, layer.bias};
  };
  const graph::Binary add{graph::BinaryKind::add};
  return {{{"x", 0, 3}},
          {{"a", dense(0), {0}},  // 1
           {"b", dense(1), {1}},  // 2
           {"c", dense(1), {1}},  // 3
           {"product", graph::Binary{graph::BinaryKind::multiply}, {2, 3}},
           {"d", dense(2), {4}},  // 5
           {"e", dense(3), {1}},  // 6
           {"f", dense(3), {5}},  // 7
           {"sum", add, {6, 7}},
           {"all", add, {8, 1}},
           {"y", dense(4), {9}}},
          {{"y", 10, 2}}};
}

// A plan whose weights were replaced computes as one that was made with them.
TYPED_TEST(GraphRegressionBits, are_those_of_a_plan_made_with_the_weights) {
  using T = TypeParam;
  for (const graph::Graph& net : {merging_net(), residual_net(), stack(mlp::random_mlp({3, 40, 2}, {}, 3))}) {
    const Samples<T> samples(3, 2, 300);
    std::vector<double> weights = graph::gather_weights(net);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = static_cast<T>(weights[i] + 0.1 * std::sin(static_cast<double>(i)));
    }
    graph::Graph other = net;
    graph::scatter_weights(weights, other);
    const std::vector<T> rounded(weights.begin(), weights.end());
    for (const CpuTarget target : available_cpu_targets()) {
      const Result<T> expected = run<T>(GraphRegressionPlan<T>::compile(other, {}, target), samples);
      auto plan = GraphRegressionPlan<T>::compile(net, {}, target);
      plan.set_parameters(rounded);
      const Result<T> found = run<T>(std::move(plan), samples);
      EXPECT_EQ(found.loss, expected.loss) << to_string(target);
      EXPECT_EQ(found.gradient, expected.gradient) << to_string(target);
    }
  }
}

TEST(GraphRegression, says_what_it_cannot_train) {
  const auto message = [](graph::Graph net) { return message_of([&] { GraphRegressionPlan<float>::compile(net); }); };
  graph::Graph two = residual_net();
  two.outputs.push_back(two.outputs[0]);
  EXPECT_THAT(message(two), HasSubstr("1 input ports, 2 output ports"));
  EXPECT_THAT(message({{{"x", 0, 1}}, {{"log", graph::Unary{graph::UnaryKind::log}, {0}}}, {{"y", 1, 1}}}),
              HasSubstr("no dense layer"));
}

}  // namespace
}  // namespace lockstep

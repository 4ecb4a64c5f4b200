// Copies of a layer are trained as the one that they are, and what came without a bias gets none.
#include "lockstep/nn/shared_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/core/random.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/nn/fit.h"
#include "lockstep/train/initialise.h"

namespace lockstep::nn {
namespace {

std::vector<double> draws(std::size_t count, std::uint64_t seed) {
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = Random(seed).uniform(i, 0) - 0.5;
  return numbers;
}

// 2 -> 3 -> 3 -> 3 -> 1, the middle one called twice.
Model called_twice() {
  const DenseLayer middle{3, 3, draws(9, 2), draws(3, 3), {ActivationKind::tanh}};
  Mlp mlp;
  mlp.layers = {{2, 3, draws(6, 1), draws(3, 1), {ActivationKind::tanh}}, middle, middle, {3, 1, draws(3, 4), {0}, {}}};
  return Model::from_mlp(mlp);
}

// y = W' tanh(W x), W' the transpose of W: the gradient of a function, whatever W is.
Model gradient_net() {
  Mlp mlp;
  mlp.layers = {{2, 3, draws(6, 1), std::vector<double>(3), {ActivationKind::tanh}, false},
                {3, 2, std::vector<double>(6), std::vector<double>(2), {}, false}};
  for (std::size_t i = 0; i < 6; ++i) mlp.layers[1].weights[i % 2 * 3 + i / 2] = mlp.layers[0].weights[i];
  return Model::from_mlp(mlp);
}

struct Samples {
  explicit Samples(std::size_t outputs) : x(draws(40, 7)), y(20 * outputs), width(outputs) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(3 * x[i % 40]) + 0.2;
  }
  RegressionData data() const {
    return {MatrixView<const double>::row_major(x.data(), 20, 2),
            MatrixView<const double>::row_major(y.data(), 20, width)};
  }
  std::vector<double> x, y;
  std::size_t width;
};

using Rule = decltype(train::Phase::rule);

FitOptions in_f64(Rule rule, std::int64_t iterations) {
  FitOptions options{.precision = Precision::f64};
  options.phases[0].iterations = iterations;
  options.phases[0].learning_rate.rate = 0.05;
  options.phases[0].rule = rule;
  return options;
}

const Dense& layer(const Model& model, const std::string& name) {
  for (const Node& node : model.nodes) {
    if (node.name == name) return std::get<Dense>(node.operation);
  }
  throw std::out_of_range(name);
}

TEST(SharedWeights, layers_of_the_same_numbers_are_one_and_all_others_stay_apart) {
  const SharedWeights shared(called_twice());
  EXPECT_EQ(shared.all(), 9u + 12 + 12 + 4);
  EXPECT_EQ(shared.trained(), 9u + 12 + 4);
  EXPECT_EQ(shared.groups(), std::vector<std::string>{"layers.1, layers.2"});
  Model changed = called_twice();
  std::get<Dense>(changed.nodes[2].operation).weights[8] += 1e-12;
  EXPECT_TRUE(SharedWeights(changed).is_none());
  // One layer and its transpose, without a bias.
  EXPECT_EQ(SharedWeights(gradient_net()).trained(), 6u);
  // Layers that are not trained yet hold zeros, and are no copies of each other.
  Mlp zeros;
  for (int i = 0; i < 2; ++i) zeros.layers.push_back({2, 2, std::vector<double>(4), std::vector<double>(2), {}});
  EXPECT_TRUE(SharedWeights(Model::from_mlp(zeros)).is_none());
}

// One step of gradient descent moves the shared numbers by the sum of the copies' gradients. All is rounded at numbers
// below 2, a few times: 1e-15.
TEST(SharedWeights, gradients_of_copies_add) {
  const Samples samples(1);
  const FitOptions options = in_f64(train::OptimiserOptions{.rule = train::Rule::sgd, .momentum = 0}, 1);
  const Model start = called_twice();
  const std::vector<double> before = graph::gather_weights(to_graph(start));
  std::vector<double> slopes(before.size());
  RegressionLoss<double> loss(to_mlp(start), samples.data(), options);
  loss(train::Place{}, before, slopes);
  Model model = start;
  fit(model, samples.data(), options);
  const std::vector<double> after = graph::gather_weights(to_graph(model));
  for (std::size_t i = 0; i < 12; ++i) {
    const double sum = slopes[9 + i] + slopes[21 + i];
    EXPECT_GT(std::fabs(sum - slopes[9 + i]), 1e-8) << i;
    EXPECT_NEAR(after[9 + i], before[9 + i] - 0.05 * sum, 1e-15) << i;
  }
  EXPECT_NEAR(after[0], before[0] - 0.05 * slopes[0], 1e-15);
}

TEST(SharedWeights, copies_stay_copies_and_no_bias_stays_none) {
  for (const Rule& rule : {Rule(train::OptimiserOptions{}), Rule(train::LbfgsOptions{})}) {
    Model twice = called_twice();
    const std::vector<double> first = layer(twice, "layers.1").weights;
    const Samples one(1), two(2);
    const double before = fit(twice, one.data(), in_f64(rule, 1)).loss;
    EXPECT_LT(fit(twice, one.data(), in_f64(rule, 60)).loss, 0.8 * before);
    EXPECT_NE(layer(twice, "layers.1").weights, first);
    EXPECT_EQ(layer(twice, "layers.1").weights, layer(twice, "layers.2").weights);
    EXPECT_EQ(layer(twice, "layers.1").bias, layer(twice, "layers.2").bias);

    Model gradient = gradient_net();
    fit(gradient, two.data(), in_f64(rule, 60));
    const Dense &in = layer(gradient, "layers.0"), &out = layer(gradient, "layers.1");
    EXPECT_NE(in.weights, layer(gradient_net(), "layers.0").weights);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(out.weights[i % 2 * 3 + i / 2], in.weights[i]) << i;
    EXPECT_EQ(in.bias, std::vector<double>(3));
    EXPECT_EQ(out.bias, std::vector<double>(2));
  }
}

}  // namespace
}  // namespace lockstep::nn

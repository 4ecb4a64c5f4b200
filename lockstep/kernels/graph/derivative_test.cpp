// Derivative graphs, evaluated by the plain reference: J v against complex steps, J^T w against J v.
#include "lockstep/kernels/graph/derivative.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "lockstep/core/error.h"
#include "lockstep/kernels/graph/detail/derivative_rules.h"
#include "lockstep/kernels/graph/testing/complex_reference.h"
#include "lockstep/kernels/graph/testing/random_graph.h"
#include "lockstep/kernels/graph/testing/reference.h"

namespace lockstep::graph {
namespace {

using testing::add_random_node;
using testing::Builder;
using ::testing::HasSubstr;
using Vectors = std::vector<std::vector<double>>;
constexpr std::size_t kManyWeights = 1000000;

Vectors random_vectors(const std::vector<Port>& ports, std::mt19937& random, double least = -2, double most = 2) {
  std::uniform_real_distribution<double> uniform(least, most);
  Vectors vectors;
  for (const Port& port : ports) {
    std::vector<double>& one = vectors.emplace_back(port.width);
    for (double& value : one) value = uniform(random);
  }
  return vectors;
}

Vectors joined(Vectors first, const Vectors& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Along two directions given as numbers, v and one that moves the first port's first feature alone: what J v is as
// expect_derivatives() finds it, and nothing where dependencies() tell of none.
void expect_directions(const Graph& graph, const Vectors& x, const Vectors& v, const std::vector<double>& expected,
                       double tolerance) {
  Graph one = graph;
  one.outputs = {graph.outputs[0]};
  const std::size_t n = one.outputs[0].width;
  Direction first(x.size());
  first[0].assign(x[0].size(), 0);
  first[0][0] = 1;
  const Vectors made = testing::reference<double>(*jvp_graph(one, {v, first}, kManyWeights), x);
  ASSERT_EQ(made.size(), 1u);
  ASSERT_EQ(made[0].size(), 2 * n);
  for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(made[0][i], expected[i], tolerance) << i;
  const std::vector<double> column = testing::complex_step(one, x, [&] {
    Vectors unit = v;
    for (std::vector<double>& port : unit) std::ranges::fill(port, 0.0);
    unit[0][0] = 1;
    return unit;
  }())[0];
  const auto read = dependencies(one);
  ASSERT_EQ(read.size(), n);
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_NEAR(made[0][n + i], column[i], tolerance * std::max(1.0, std::abs(column[i]))) << i;
    if (std::ranges::find(read[i], 0u) == read[i].end()) {
      ASSERT_EQ(made[0][n + i], 0) << i;
    }
  }
}

// Both ways, the Jacobian must have the columns that J times unit vectors is, and the outputs their bits.
void expect_jacobian(const Graph& graph, const Vectors& x, double tolerance) {
  const Vectors y = testing::reference<double>(graph, x);
  std::size_t rows = 0, columns = 0;
  for (const std::vector<double>& port : y) rows += port.size();
  for (const std::vector<double>& port : x) columns += port.size();
  const Vectors forward = testing::reference<double>(jacobian_along_inputs(graph), x);
  const Vectors reverse = testing::reference<double>(jacobian_from_outputs(graph), x);
  ASSERT_EQ(forward.size(), y.size() + 1);
  ASSERT_EQ(reverse.size(), y.size() + 1);
  for (std::size_t p = 0; p < y.size(); ++p) {
    ASSERT_EQ(forward[p], y[p]);
    ASSERT_EQ(reverse[p], y[p]);
  }
  ASSERT_EQ(forward.back().size(), rows * columns);
  ASSERT_EQ(reverse.back().size(), rows * columns);
  const Graph products = jvp_graph(graph);
  std::size_t column = 0;
  for (std::size_t port = 0; port < x.size(); ++port) {
    for (std::size_t feature = 0; feature < x[port].size(); ++feature, ++column) {
      Vectors unit = x;
      for (std::vector<double>& numbers : unit) std::ranges::fill(numbers, 0.0);
      unit[port][feature] = 1;
      const Vectors product = testing::reference<double>(products, joined(x, unit));
      std::size_t row = 0;
      for (std::size_t p = 0; p < y.size(); ++p) {
        double largest = 1;
        for (const double number : product[y.size() + p]) largest = std::max(largest, std::abs(number));
        for (const double expected : product[y.size() + p]) {
          ASSERT_EQ(forward.back()[row * columns + column], expected) << row << ", " << column;
          ASSERT_NEAR(reverse.back()[row * columns + column], expected, tolerance * largest) << row << ", " << column;
          ++row;
        }
      }
    }
  }
}

// The outputs must keep their bits, J v must agree with complex steps and w J v with v J^T w. Each of the two sides is
// a chain of at most some hundred rounded operations on numbers of size 1 to 10: 2^-53 x 100 x 10 = 1e-13, of the size
// of the terms, which is what each is compared with.
void expect_derivatives(const Graph& graph, const Vectors& x, std::mt19937& random) {
  constexpr double kTolerance = 1e-12;
  const Vectors v = random_vectors(graph.inputs, random), w = random_vectors(graph.outputs, random);
  const Graph forward = jvp_graph(graph), reverse = vjp_graph(graph);
  ASSERT_NO_THROW(forward.widths());
  ASSERT_NO_THROW(reverse.widths());
  const Vectors y = testing::reference<double>(graph, x);
  const Vectors y_dot = testing::reference<double>(forward, joined(x, v));
  const Vectors x_bar = testing::reference<double>(reverse, joined(x, w));
  const Vectors expected = testing::complex_step(graph, x, v);
  ASSERT_EQ(y_dot.size(), 2 * y.size());
  ASSERT_EQ(x_bar.size(), y.size() + x.size());
  double left = 0, right = 0, size = 0;
  for (std::size_t p = 0; p < y.size(); ++p) {
    EXPECT_EQ(y_dot[p], y[p]);
    EXPECT_EQ(x_bar[p], y[p]);
    double largest = 1;
    for (const double number : expected[p]) largest = std::max(largest, std::abs(number));
    for (std::size_t i = 0; i < y[p].size(); ++i) {
      const double found = y_dot[y.size() + p][i];
      ASSERT_NEAR(found, expected[p][i], kTolerance * largest) << "output " << p << "[" << i << "]";
      left += w[p][i] * found;
      size += std::abs(w[p][i] * found);
    }
  }
  for (std::size_t p = 0; p < x.size(); ++p) {
    for (std::size_t i = 0; i < x[p].size(); ++i) {
      right += v[p][i] * x_bar[y.size() + p][i];
      size += std::abs(v[p][i] * x_bar[y.size() + p][i]);
    }
  }
  EXPECT_NEAR(left, right, kTolerance * std::max(1.0, size));
  double largest = 1;
  for (const double number : expected[0]) largest = std::max(largest, std::abs(number));
  expect_directions(graph, x, v, expected[0], kTolerance * largest);
  if (y.size() < 10) expect_jacobian(graph, x, kTolerance);  // of more outputs it takes a while
}

// The tangent along the first port, of which J v is known, must itself have the derivatives of complex steps.
void expect_second_derivatives(const Graph& graph, const Vectors& x, std::mt19937& random) {
  const Vectors along = random_vectors({graph.inputs[0]}, random);
  Vectors v = along;
  for (std::size_t port = 1; port < x.size(); ++port) v.emplace_back(x[port].size());
  std::vector<bool> moved(x.size());
  moved[0] = true;
  for (const Port& port : graph.outputs) {
    Graph one = graph;
    one.outputs = {port};
    const Tangent tangent = tangent_graph(one, moved);
    ASSERT_EQ(tangent.graph.inputs.size(), x.size() + 1);
    const std::vector<double> found = testing::reference<double>(tangent.graph, joined(x, along))[0];
    const std::vector<double> expected = testing::complex_step(one, x, v)[0];
    double largest = 1;
    for (const double number : expected) largest = std::max(largest, std::abs(number));
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-12 * largest) << port.name;
    SCOPED_TRACE(port.name);
    expect_derivatives(tangent.graph, joined(x, along), random);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(DerivativeGraph, every_function_of_one_element) {
  Builder b;
  const std::size_t x = b.input(9), positive = b.input(4);
  for (std::size_t kind = 0; kind < kUnaryKinds; ++kind) {
    b.output(b.add(Unary{static_cast<UnaryKind>(kind)}, {kind < 3 ? positive : x}));
  }
  b.output(b.add(Clip{0, INFINITY}, {x}));
  b.output(b.add(Clip{-1, 0.75}, {x}));
  b.output(b.add(Clip{}, {x}));
  b.output(b.add(DeadZone{-INFINITY, 0.5, 0}, {x}));
  b.output(b.add(DeadZone{-0.5, 0.5, 0.25}, {x}));
  b.output(b.add(DeadZone{-INFINITY, INFINITY, 0.25}, {x}));
  for (const Activation& activation : all_activations()) b.output(b.add(Activate{activation}, {x}));
  b.output(b.add(Standardise{b.numbers(9), b.numbers(9, 1, 0.5)}, {x}));
  b.output(b.add(Rescale{b.numbers(9), b.numbers(9)}, {x}));
  std::mt19937 random(1);
  for (int repeat = 0; repeat < 20; ++repeat) {
    Vectors at = random_vectors(b.graph.inputs, random, -4, 4);
    for (double& value : at[1]) value = 0.1 + std::abs(value);
    expect_derivatives(b.graph, at, random);
    if (repeat < 4) expect_second_derivatives(b.graph, at, random);
    if (HasFatalFailure()) return;
  }
}

TEST(DerivativeGraph, tables_between_and_beyond_their_knots) {
  Builder b;
  const std::size_t x = b.input(1), moving = b.add(Rescale{{2}, {0.5}}, {x});
  for (const std::size_t knots : {1u, 2u, 3u, 9u}) {
    for (const std::size_t powers : {1u, 2u, 4u})
      b.output(b.add(b.table(knots, powers == 2 ? 3 : 1, powers), {moving}));
  }
  std::mt19937 random(3);
  for (int repeat = 0; repeat < 200; ++repeat) {
    expect_derivatives(b.graph, random_vectors(b.graph.inputs, random, -4, 4), random);
    if (HasFatalFailure()) return;
  }
}

TEST(DerivativeGraph, every_function_of_several_values_of_any_width) {
  Builder b;
  const std::size_t x = b.input(5), y = b.input(5), one = b.input(1);
  const std::size_t c = b.add(Constant{{0.5, 2, 1.5, 3, 0}}, {}), half = b.add(Constant{{0.5}}, {});
  const std::size_t two = b.add(Constant{{2}}, {}), shifted = b.add(Constant{{0.25, 1, 2, 3, 4}}, {});
  for (std::size_t kind = 0; kind < kBinaryKinds; ++kind) {
    const Binary op{static_cast<BinaryKind>(kind)};
    for (const auto& [left, right] : std::vector<std::pair<std::size_t, std::size_t>>{{x, y},
                                                                                      {x, c},
                                                                                      {shifted, x},
                                                                                      {x, half},
                                                                                      {half, x},
                                                                                      {x, one},
                                                                                      {one, x},
                                                                                      {one, c},
                                                                                      {shifted, half},
                                                                                      {x, x},
                                                                                      {x, two},
                                                                                      {one, one}}) {
      if ((op.kind == BinaryKind::divide || op.kind == BinaryKind::modulo) && right == c) continue;  // by zero
      b.output(b.add(op, {left, right}));
    }
  }
  for (const auto& [left, right] :
       std::vector<std::pair<std::size_t, std::size_t>>{{x, y}, {x, one}, {half, x}, {one, half}}) {
    b.output(b.add(Choose{{1, 0, 0, 1, 1}}, {left, right}));
  }
  const std::size_t less = b.add(Binary{BinaryKind::less}, {x, y}), sign = b.add(Binary{BinaryKind::less}, {one, half});
  b.output(b.add(Select{}, {less, x, y}));
  b.output(b.add(Select{}, {sign, x, c}));
  b.output(b.add(Select{}, {less, half, x}));
  b.output(b.add(Select{}, {less, one, x}));
  b.output(b.add(Concatenate{}, {x, c, one, x}));
  b.output(b.add(Columns{{4, 0, 0, 2, 0}}, {x}));
  b.output(b.add(Columns{{0, 0, 0}}, {one}));
  b.output(b.add(Columns{{1, 2}}, {y}));
  std::mt19937 random(2);
  for (int repeat = 0; repeat < 20; ++repeat) {
    expect_derivatives(b.graph, random_vectors(b.graph.inputs, random, 0.2, 2), random);
    if (HasFatalFailure()) return;
  }
}

TEST(DerivativeGraph, functions_of_all_features) {
  Builder b;
  for (const std::size_t width : {1, 2, 7, 20}) b.input(width);
  for (std::size_t x = 0; x < 4; ++x) {
    const std::size_t width = b.graph.inputs[x].width;
    for (int kind = 0; kind < 4; ++kind) b.output(b.add(Reduce{static_cast<ReduceKind>(kind)}, {x}));
    b.output(b.add(Softmax{SoftmaxKind::plain}, {x}));
    b.output(b.add(Softmax{SoftmaxKind::logarithm}, {x}));
    b.output(b.add(LayerNormalise{b.numbers(width), b.numbers(width), 1e-2}, {x}));
    b.output(b.add(b.dense(width, 6), {x}));
  }
  std::mt19937 random(3);
  for (int repeat = 0; repeat < 20; ++repeat) {
    expect_derivatives(b.graph, random_vectors(b.graph.inputs, random), random);
    if (HasFatalFailure()) return;
  }
}

// The gradient at kinks is stated in the header; equals share a reduction's.
TEST(DerivativeGraph, at_kinks_it_is_what_the_header_says) {
  Builder b;
  const std::size_t x = b.input(3);
  b.output(b.add(Activate{{ActivationKind::relu}}, {x}));
  b.output(b.add(Unary{UnaryKind::absolute}, {x}));
  b.output(b.add(Clip{0, 1}, {x}));
  b.output(b.add(Binary{BinaryKind::maximum}, {x, b.add(Constant{{0, 1, 2}}, {})}));
  b.output(b.add(Reduce{ReduceKind::maximum}, {b.add(Clip{0, 1}, {x})}));
  const Vectors dot = testing::reference<double>(jvp_graph(b.graph), {{0, 1, 2}, {1, 1, 1}});
  EXPECT_THAT(dot[5], testing::Vector<double>({0, 1, 1}));
  EXPECT_THAT(dot[6], testing::Vector<double>({0, 1, 1}));
  EXPECT_THAT(dot[7], testing::Vector<double>({1, 1, 0}));
  EXPECT_THAT(dot[8], testing::Vector<double>({1, 1, 1}));
  EXPECT_THAT(dot[9], testing::Vector<double>({0.5}));
}

TEST(DerivativeGraph, random_graphs_of_all_operations) {
  std::size_t tried = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Builder b;
    b.random.seed(seed);
    for (std::size_t i = 0; i < 1 + b.below(3); ++i) b.input(1 + b.below(9));
    const std::size_t nodes = 3 + b.below(12);
    while (b.graph.nodes.size() < nodes) add_random_node(b);
    const std::size_t values = b.widths().size();
    for (std::size_t i = 0; i < 1 + b.below(4); ++i) {
      b.output(b.below(3) == 0 ? b.below(values) : values - 1 - b.below(3));
    }
    std::mt19937 random(seed);
    const Vectors x = random_vectors(b.graph.inputs, random);
    // Quotients by numbers near zero and normalisations of nearly equal features amplify rounding without bound: a net
    // whose derivatives are large tells nothing here.
    double largest = 0;
    for (const auto& port : testing::complex_step(b.graph, x, random_vectors(b.graph.inputs, random))) {
      for (const double number : port) largest = std::isfinite(number) ? std::max(largest, std::abs(number)) : 1e300;
    }
    if (largest > 50) continue;
    ++tried;
    expect_derivatives(b.graph, x, random);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tried, 250u);
}

TEST(DerivativeGraph, a_tangent_has_derivatives_of_its_own) {
  Builder b;
  const std::size_t x = b.input(4), p = b.input(4);
  const std::size_t hidden = b.add(Activate{{ActivationKind::gelu}}, {b.add(b.dense(4, 6), {x})});
  const std::size_t normal = b.add(LayerNormalise{b.numbers(6), b.numbers(6), 1e-2}, {hidden});
  const std::size_t share = b.add(Softmax{}, {b.add(b.dense(6, 4), {normal})});
  for (const BinaryKind kind : {BinaryKind::multiply, BinaryKind::divide, BinaryKind::maximum})
    b.output(b.add(Binary{kind}, {share, b.add(Binary{BinaryKind::add}, {x, p})}));
  b.output(b.add(Binary{BinaryKind::power}, {share, p}));
  b.output(b.add(Reduce{ReduceKind::sum}, {b.add(Binary{BinaryKind::multiply}, {share, share})}));
  std::mt19937 random(7);
  for (int repeat = 0; repeat < 20; ++repeat) {
    expect_second_derivatives(b.graph, random_vectors(b.graph.inputs, random, 0.2, 2), random);
    if (HasFatalFailure()) return;
  }
}

TEST(DerivativeGraph, a_tangent_tells_whose_weights_its_layers_have) {
  Builder b;
  const std::size_t x = b.input(2), still = b.input(2);
  const std::size_t moving = b.add(b.dense(2, 3), {x}), constant = b.add(b.dense(2, 3), {still});
  b.output(b.add(b.dense(3, 2), {b.add(Binary{BinaryKind::multiply}, {moving, constant})}));
  const Tangent tangent = tangent_graph(b.graph, {true, false});
  ASSERT_EQ(tangent.layers.size(), 5u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(tangent.layers[i].of, i);
    EXPECT_FALSE(tangent.layers[i].of_direction);
  }
  EXPECT_EQ(tangent.layers[3].of, 0u);
  EXPECT_EQ(tangent.layers[4].of, 2u);
  EXPECT_TRUE(tangent.layers[3].of_direction && tangent.layers[4].of_direction);
}

// The first feature is read whole, among others, by itself, several times by one node, and all that in between.
TEST(DerivativeGraph, features_that_several_nodes_read) {
  Builder b;
  const std::size_t x = b.input(5);
  const std::size_t whole = b.add(Activate{{ActivationKind::tanh}}, {x});
  const std::size_t twice = b.add(Unary{UnaryKind::exp}, {b.add(Columns{{2, 2, 0}}, {x})});
  const std::size_t again = b.add(Activate{{ActivationKind::sigmoid}}, {x});
  const std::size_t alone = b.add(Unary{UnaryKind::cosine}, {b.add(Columns{{0}}, {x})});
  const std::size_t pair = b.add(Activate{{ActivationKind::sin}}, {b.add(Columns{{0, 4}}, {x})});
  b.output(b.add(Concatenate{}, {whole, twice, again, alone, pair}));
  std::mt19937 random(7);
  for (int i = 0; i < 10; ++i) expect_derivatives(b.graph, random_vectors(b.graph.inputs, random), random);
}

// Numbers that all values together hold: what an evaluation costs.
std::size_t numbers_of(const Graph& graph) {
  const std::vector<std::size_t> widths = graph.widths();
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0});
}

// An equation for each cell of a ring: u_i (u_i+1 - u_0) p.
Graph ring(std::size_t cells) {
  Builder b;
  const std::size_t u = b.input(cells), p = b.input(2);
  std::vector<std::size_t> rates;
  for (std::size_t i = 0; i < cells; ++i) {
    const std::size_t here = b.add(Columns{{i}}, {u}), right = b.add(Columns{{(i + 1) % cells}}, {u});
    const std::size_t first = b.add(Columns{{0}}, {u}), factor = b.add(Columns{{i % 2}}, {p});
    const std::size_t change = b.add(Binary{BinaryKind::subtract}, {right, first});
    rates.push_back(b.add(Binary{BinaryKind::multiply}, {factor, b.add(Binary{BinaryKind::multiply}, {here, change})}));
  }
  b.output(b.add(Concatenate{}, rates));
  return b.graph;
}

// Twice as many cells add twice as much: nothing grows by the square of their number.
TEST(DerivativeGraph, derivatives_of_many_equations_grow_as_their_number) {
  std::mt19937 random(11);
  const Graph small = ring(5);
  expect_derivatives(small, random_vectors(small.inputs, random), random);
  const auto growth = [](const auto& derivative, std::size_t from, std::size_t to) {
    return numbers_of(derivative(ring(to))) - numbers_of(derivative(ring(from)));
  };
  for (const auto& derivative :
       {+[](const Graph& graph) { return vjp_graph(graph); }, +[](const Graph& graph) { return jvp_graph(graph); }}) {
    EXPECT_EQ(growth(derivative, 200, 400), 2 * growth(derivative, 100, 200));
  }
}

// A layer's weight and bias gradients against complex steps along the weights: nudging W by h d is the same as adding
// h d x to what the layer makes, a direction that a constant input port can carry.
TEST(DerivativeGraph, layers_show_what_their_weight_gradients_are_made_of) {
  Builder b;
  const std::size_t x = b.input(3), nudge = b.input(5);
  const std::size_t first = b.add(b.dense(3, 5), {x});
  const std::size_t moved = b.add(Binary{}, {first, nudge});
  const std::size_t hidden = b.add(Activate{{ActivationKind::mish}}, {moved});
  const std::size_t constant = b.add(Constant{{0.5, -1}}, {});
  const std::size_t second = b.add(b.dense(2, 5), {constant});  // of no input: its weights still count
  b.output(b.add(b.dense(5, 2), {b.add(Binary{BinaryKind::multiply}, {hidden, second})}));
  const Vectors at = {{0.3, -0.7, 1.1}, {0, 0, 0, 0, 0}};
  const std::vector<double> w = {0.75, -1.25};
  const Vectors made = testing::reference<double>(layer_vjp_graph(b.graph).graph, joined(at, {w}));
  ASSERT_EQ(made.size(), 1 + 2 + 6u);
  EXPECT_EQ(made[3], at[0]);
  EXPECT_EQ(made[5], (std::vector<double>{0.5, -1}));
  for (std::size_t j = 0; j < 5; ++j) {
    Vectors along = {{0, 0, 0}, {0, 0, 0, 0, 0}};
    along[1][j] = 1;
    const auto dot = testing::complex_step(b.graph, at, along)[0];
    EXPECT_NEAR(made[4][j], w[0] * dot[0] + w[1] * dot[1], 1e-14) << "some ten operations of numbers below 10";
    EXPECT_NE(made[6][j], 0);
  }
  EXPECT_EQ(made[8], w);
}

// PyTorch and JAX have the same.
TEST(DerivativeGraph, a_power_of_exponent_0_has_slope_0_at_0_too) {
  Builder b;
  const std::size_t x = b.input(5), exponent = b.input(5);
  b.output(b.add(Binary{BinaryKind::power}, {x, exponent}));
  const std::vector<double> bases = {0, 0, 0, 2, 3}, exponents = {0, 1, 2, 0, 2}, slopes = {0, 1, 0, 0, 6},
                            none(5, 0.0), ones(5, 1.0);
  EXPECT_EQ(testing::reference<double>(jvp_graph(b.graph), {bases, exponents, ones, none})[1], slopes);
  EXPECT_EQ(testing::reference<double>(vjp_graph(b.graph), {bases, exponents, ones})[1], slopes);
}

TEST(DerivativeGraph, what_no_output_depends_on_is_zero_and_second_derivatives_are_refused) {
  Builder b;
  const std::size_t x = b.input(2), unused = b.input(3), c = b.add(Constant{{1, 2}}, {});
  (void)unused;
  b.output(x);
  b.output(c);
  EXPECT_EQ(testing::reference<double>(jvp_graph(b.graph), {{5, 6}, {0, 0, 0}, {7, 8}, {1, 1, 1}}),
            (Vectors{{5, 6}, {1, 2}, {7, 8}, {0, 0}}));
  EXPECT_EQ(testing::reference<double>(vjp_graph(b.graph), {{5, 6}, {0, 0, 0}, {7, 8}, {9, 9}}),
            (Vectors{{5, 6}, {1, 2}, {7, 8}, {0, 0, 0}}));
  EXPECT_EQ(jvp_graph(b.graph).inputs[3].name, "in1_dot");
  EXPECT_EQ(vjp_graph(b.graph).outputs[3].name, "in1_bar");
  Builder tanh;
  tanh.output(tanh.add(Activate{{ActivationKind::tanh}}, {tanh.input(1)}));
  try {
    jvp_graph(jvp_graph(tanh.graph));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("second derivatives are those of tangent_graph()"));
  }
}

}  // namespace
}  // namespace lockstep::graph

// ONNX operators one by one: every spelling and attribute, every shape that is read, and words for what is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "lockstep/nn/onnx.h"
#include "lockstep/nn/testing/onnx_graph.h"

namespace lockstep::nn {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Graph = testing::OnnxGraph;
using testing::activation_of;
using testing::outputs;
using testing::refusal_of;
using testing::shaped;

TEST(Onnx, gemm_with_every_attribute) {
  for (const bool transposed : {false, true}) {
    Graph graph;
    if (transposed) {
      graph.tensor("w", {3, 2}, {1, 4, 2, 5, 3, 6});
    } else {
      graph.tensor("w", {2, 3}, {1, 2, 3, 4, 5, 6});
    }
    graph.tensor("c", {1, 3}, {10, 20, 30});
    auto* node = graph.node("Gemm", {"x", "w", "c"}, "y");
    Graph::set(node, "alpha", 2.0F);
    Graph::set(node, "beta", 0.5F);
    Graph::set(node, "transB", std::int64_t{transposed});
    EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 1}), ElementsAre(15, 24, 33));
  }
  Graph without;
  without.tensor("w", {2, 1}, {3, 4});
  without.node("Gemm", {"x", "w"}, "y");
  EXPECT_THAT(outputs(read_onnx(without.save()), {1, 2}), ElementsAre(11));
}

TEST(Onnx, activation_operators_and_their_attributes) {
  const auto one = [](const std::string& op, std::vector<std::pair<std::string, float>> attributes = {}) {
    Graph graph;
    graph.around([&](Graph& g) {
      auto* node = g.node(op, {"h"}, "a");
      for (const auto& [name, value] : attributes) Graph::set(node, name, value);
    });
    return to_string(activation_of(graph));
  };
  EXPECT_EQ(one("Relu"), "relu");
  EXPECT_EQ(one("Tanh"), "tanh");
  EXPECT_EQ(one("Sigmoid"), "sigmoid");
  EXPECT_EQ(one("Softplus"), "softplus");
  EXPECT_EQ(one("Softsign"), "softsign");
  EXPECT_EQ(one("HardSwish"), "hard_swish");
  EXPECT_EQ(one("Mish"), "mish");
  EXPECT_EQ(one("Sin"), "sin");
  EXPECT_EQ(one("Selu"), "selu");
  EXPECT_EQ(one("Gelu"), "gelu");
  EXPECT_EQ(one("Elu"), "elu");
  EXPECT_EQ(one("Elu", {{"alpha", 0.5F}}), "elu(0.5)");
  EXPECT_EQ(one("Celu", {{"alpha", 2.0F}}), "celu(2)");
  EXPECT_EQ(one("LeakyRelu", {{"alpha", 0.25F}}), "leaky_relu(0.25)");
  EXPECT_EQ(one("HardSigmoid", {{"alpha", 1.0F / 6}}), "hard_sigmoid");
}

// y of a graph that one node makes of x, by the names "two", "slopes", ... of constants of two features.
std::vector<double> of_one_node(const std::string& op, const std::vector<double>& x,
                                const std::vector<std::pair<std::string, float>>& attributes = {},
                                const std::vector<std::string>& further = {}) {
  Graph graph;
  graph.tensor("slopes", {2}, {0.25F, 0.5F});
  std::vector<std::string> operands{"x"};
  operands.insert(operands.end(), further.begin(), further.end());
  auto* node = graph.node(op, operands, "y");
  for (const auto& [name, value] : attributes) Graph::set(node, name, value);
  return outputs(read_onnx(graph.save()), x);
}

TEST(Onnx, activations_of_several_steps_follow_the_standard) {
  const auto near = [](double a, double b) { return ElementsAre(DoubleNear(a, 1e-14), DoubleNear(b, 1e-14)); };
  EXPECT_THAT(of_one_node("HardSigmoid", {1, -9}), near(0.7, 0));
  EXPECT_THAT(of_one_node("HardSigmoid", {1, 9}, {{"alpha", 0.25F}, {"beta", 0.125F}}), near(0.375, 1));
  EXPECT_THAT(of_one_node("ThresholdedRelu", {1, 1.5}), near(0, 1.5));
  EXPECT_THAT(of_one_node("ThresholdedRelu", {-0.5, -2}, {{"alpha", -1.0F}}), near(-0.5, 0));
  EXPECT_THAT(of_one_node("Shrink", {0.5, -2}), near(0, -2));
  EXPECT_THAT(of_one_node("Shrink", {3, -3}, {{"lambd", 1.0F}, {"bias", 0.25F}}), near(2.75, -2.75));
  EXPECT_THAT(of_one_node("PRelu", {-4, -4}, {}, {"slopes"}), near(-1, -2));
  EXPECT_THAT(of_one_node("PRelu", {4, -4}, {}, {"slopes"}), near(4, -2));
  EXPECT_THAT(of_one_node("Selu", {2, -1}, {{"alpha", 2.0F}, {"gamma", 3.0F}}), near(6, 6 * std::expm1(-1.0)));
  EXPECT_THAT(of_one_node("Swish", {2, -1}), near(2 / (1 + std::exp(-2.0)), -1 / (1 + std::exp(1.0))));
  EXPECT_THAT(of_one_node("Swish", {2, -1}, {{"alpha", 0.5F}}),
              near(2 / (1 + std::exp(-1.0)), -1 / (1 + std::exp(0.5))));
  EXPECT_THAT(of_one_node("SwiGLU", {2, -1}, {}, {"x"}), near(4 / (1 + std::exp(-2.0)), 1 / (1 + std::exp(1.0))));
  EXPECT_THAT(of_one_node("SwiGLU", {2, -1}, {{"alpha", 0.5F}}, {"x"}),
              near(4 / (1 + std::exp(-1.0)), 1 / (1 + std::exp(0.5))));
  EXPECT_THAT(of_one_node("Softmax", {1, 3}), near(1 / (1 + std::exp(2.0)), 1 / (1 + std::exp(-2.0))));
  EXPECT_THAT(of_one_node("LogSoftmax", {1, 3}), near(-std::log1p(std::exp(2.0)), -std::log1p(std::exp(-2.0))));
  EXPECT_THAT(of_one_node("Hardmax", {1, 3}), ElementsAre(0, 1));
}

TEST(Onnx, hardmax_marks_the_first_of_the_largest) {
  Graph graph;
  Graph::set(graph.node("Concat", {"x", "x", "x"}, "six"), "axis", std::int64_t{1});
  Graph::set(graph.node("Hardmax", {"six"}, "y"), "axis", std::int64_t{-1});
  const Model model = read_onnx(graph.save());
  EXPECT_THAT(outputs(model, {1, 2}), ElementsAre(0, 1, 0, 0, 0, 0));
  EXPECT_THAT(outputs(model, {-3, -4}), ElementsAre(1, 0, 0, 0, 0, 0));
  EXPECT_THAT(outputs(model, {0, 0}), ElementsAre(1, 0, 0, 0, 0, 0));
  Graph across;
  Graph::set(across.node("Hardmax", {"x"}, "y"), "axis", std::int64_t{0});
  EXPECT_THAT(refusal_of(across), AllOf(HasSubstr("(Hardmax, opset 17)"), HasSubstr("axis 0")));
}

TEST(Onnx, activations_spelled_out_in_primitives) {
  const auto spelled = [](auto between) {
    Graph graph;
    graph.tensor("half", {}, {0.5F});
    graph.tensor("one", {1}, {1});
    graph.tensor("root2", {}, {1.4142135F});
    graph.tensor("three", {}, {3});
    graph.tensor("c", {}, {0.044715F});
    graph.tensor("k", {}, {0.7978846F});
    graph.tensor("zero", {}, {0});
    return to_string(activation_of(graph.around(between)));
  };
  EXPECT_EQ(spelled([](Graph& g) {
              g.node("Sigmoid", {"h"}, "s");
              g.node("Mul", {"h", "s"}, "a");
            }),
            "silu");
  EXPECT_EQ(spelled([](Graph& g) {
              g.node("Softplus", {"h"}, "p");
              g.node("Tanh", {"p"}, "t");
              g.node("Mul", {"h", "t"}, "a");
            }),
            "mish");
  EXPECT_EQ(spelled([](Graph& g) {  // PyTorch: x (1 + erf(x / sqrt 2)) 0.5
              g.node("Div", {"h", "root2"}, "d");
              g.node("Erf", {"d"}, "e");
              g.node("Add", {"e", "one"}, "p");
              g.node("Mul", {"h", "p"}, "m1");
              g.node("Mul", {"m1", "half"}, "a");
            }),
            "gelu");
  EXPECT_EQ(spelled([](Graph& g) {  // 0.5 x first
              g.node("Mul", {"half", "h"}, "x2");
              g.node("Div", {"h", "root2"}, "d");
              g.node("Erf", {"d"}, "e");
              g.node("Add", {"one", "e"}, "p");
              g.node("Mul", {"x2", "p"}, "a");
            }),
            "gelu");
  EXPECT_EQ(spelled([](Graph& g) {
              g.node("Pow", {"h", "three"}, "c3");
              g.node("Mul", {"c", "c3"}, "cc");
              g.node("Add", {"h", "cc"}, "in");
              g.node("Mul", {"in", "k"}, "u");
              g.node("Tanh", {"u"}, "t");
              g.node("Add", {"t", "one"}, "p");
              g.node("Mul", {"h", "p"}, "m1");
              g.node("Mul", {"half", "m1"}, "a");
            }),
            "gelu_tanh");
  EXPECT_EQ(spelled([](Graph& g) { g.node("Mul", {"h", "h"}, "a"); }), "square");
  EXPECT_EQ(spelled([](Graph& g) { g.node("Max", {"h", "zero"}, "a"); }), "relu");
  EXPECT_EQ(spelled([](Graph& g) { g.node("Clip", {"h", "zero"}, "a"); }), "relu");
  EXPECT_EQ(spelled([](Graph& g) {
              g.node("Identity", {"h"}, "i");
              g.node("Dropout", {"i"}, "d");
              g.node("Tanh", {"d"}, "a");
            }),
            "tanh");
}

TEST(Onnx, gemm_takes_what_was_transposed_before) {
  Graph graph;
  graph.tensor("w", {2, 1}, {3, 4});
  graph.node("Transpose", {"x"}, "t");
  Graph::set(graph.node("Gemm", {"t", "w"}, "y"), "transA", std::int64_t{1});
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 2}), ElementsAre(11));
  Graph wrong;
  wrong.tensor("w", {2, 1}, {3, 4});
  Graph::set(wrong.node("Gemm", {"x", "w"}, "y"), "transA", std::int64_t{1});
  EXPECT_THAT(refusal_of(wrong), HasSubstr("transA = 1 of [batch, features]"));
}

TEST(Onnx, shapes_computed_on_the_way_keep_the_batch) {
  Graph graph;  // PyTorch's x.view(x.size(0), -1), its shape put together from pieces
  graph.tensor("zero", {}, {0});
  graph.tensor("open", {1}, {-1});
  graph.tensor("w", {2, 1}, {3, 4});
  graph.node("Shape", {"x"}, "s");
  graph.node("Gather", {"s", "zero"}, "size");
  graph.node("Unsqueeze", {"size", "zero"}, "sizes");
  Graph::set(graph.node("Concat", {"sizes", "open"}, "shape"), "axis", std::int64_t{0});
  graph.node("Reshape", {"x", "shape"}, "r");
  graph.node("MatMul", {"r", "w"}, "y");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 2}), ElementsAre(11));
}

TEST(Onnx, integers_and_truth_values_are_what_the_standard_makes_of_them) {
  const auto whole = [](Graph& graph, const std::string& name, std::int64_t value) {
    auto* tensor = graph.proto().mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_int64_data(value);
  };
  const auto cast = [](Graph& graph, const std::string& from, const std::string& to, int type) {
    Graph::set(graph.node("Cast", {from}, to), "to", std::int64_t{type});
  };
  Graph quotient;  // -7 / 2 is -3, of integers
  whole(quotient, "seven", -7), whole(quotient, "two", 2);
  quotient.node("Div", {"seven", "two"}, "q");
  cast(quotient, "q", "three", onnx::TensorProto::FLOAT);
  quotient.node("Mul", {"x", "three"}, "y");
  EXPECT_THAT(outputs(read_onnx(quotient.save()), {1, 2}), ElementsAre(-3, -6));
  Graph cut;
  cut.tensor("number", {}, {-2.75F});
  cast(cut, "number", "integer", onnx::TensorProto::INT64);
  cast(cut, "integer", "two", onnx::TensorProto::FLOAT);
  cut.node("Mul", {"x", "two"}, "y");
  EXPECT_THAT(outputs(read_onnx(cut.save()), {1, 2}), ElementsAre(-2, -4));
  Graph truth;
  truth.tensor("half", {}, {0.5F});
  cast(truth, "x", "t", onnx::TensorProto::BOOL);
  cast(truth, "half", "h", onnx::TensorProto::BOOL);
  cast(truth, "t", "a", onnx::TensorProto::FLOAT);
  cast(truth, "h", "b", onnx::TensorProto::FLOAT);
  truth.node("Add", {"a", "b"}, "y");
  EXPECT_THAT(outputs(read_onnx(truth.save()), {-0.25, 0}), ElementsAre(2, 1));
}

TEST(Onnx, constants_of_another_shape_meet_other_features) {
  Graph column;  // [2, 1] beside [batch, 2, 2]
  column.tensor("c", {2}, {10, 100});
  column.tensor("w", {4, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  Graph::set(column.node("Concat", {"x", "x"}, "four"), "axis", std::int64_t{1});
  shaped(column, "Reshape", "four", {-1, 2, 2}, "square");
  shaped(column, "Unsqueeze", "c", {1}, "c1");
  column.node("Mul", {"square", "c1"}, "product");
  shaped(column, "Reshape", "product", {-1, 4}, "y");
  EXPECT_THAT(outputs(read_onnx(column.save()), {1, 2}), ElementsAre(10, 20, 100, 200));
  Graph one;  // [1, 1, 1] is one number where there are three dimensions, and makes three of two
  one.tensor("c", {1, 1, 1}, {3});
  shaped(one, "Reshape", "x", {-1, 2, 1}, "column");
  one.node("Pow", {"column", "c"}, "cubes");
  shaped(one, "Reshape", "cubes", {-1, 2}, "y");
  EXPECT_THAT(outputs(read_onnx(one.save()), {1, 2}), ElementsAre(1, 8));
  Graph more;
  more.tensor("c", {1, 1, 1}, {3});
  more.node("Pow", {"x", "c"}, "y");
  EXPECT_THAT(refusal_of(more), HasSubstr("a constant that differs along the batch"));
  Graph across;
  across.tensor("c", {2}, {10, 100});
  shaped(across, "Reshape", "c", {2, 1}, "c1");
  across.node("Mul", {"x", "c1"}, "y");
  EXPECT_THAT(refusal_of(across), HasSubstr("a constant that differs along the batch"));
  Graph matrix;  // four numbers in a row as weights, and the same number in all of them
  matrix.tensor("w", {4}, {1, 2, 3, 4});
  matrix.tensor("two", {2}, {2, 2});
  shaped(matrix, "Reshape", "w", {2, -1}, "w0");
  matrix.node("ConstantOfShape", {"two"}, "w1");
  matrix.node("MatMul", {"x", "w0"}, "m");
  matrix.node("MatMul", {"m", "w1"}, "n");
  matrix.node("Add", {"m", "n"}, "y");
  EXPECT_THAT(outputs(read_onnx(matrix.save()), {1, 2}), ElementsAre(7, 10));
  const auto refused = [](std::vector<float> shape) {
    Graph graph;
    graph.tensor("c", {2, 3}, {1, 2, 3, 4, 5, 6});
    shaped(graph, "Reshape", "c", std::move(shape), "d");
    graph.node("MatMul", {"x", "d"}, "y");
    return refusal_of(graph);
  };
  EXPECT_THAT(refused({3, 3}), HasSubstr("found [2, 3] as the shape asked for, expected a shape of as many numbers"));
  EXPECT_THAT(refused({4, -1}), HasSubstr("found [2, 3] as [4, 1]"));
  EXPECT_THAT(refused({-1, -1}), HasSubstr("as the shape asked for"));
  EXPECT_THAT(refused({2, -3}), HasSubstr("as the shape asked for"));
}

TEST(Onnx, a_constant_on_the_left_is_a_layer_of_features_by_batch) {
  Graph graph;  // W2 relu(W1 x + b1), samples as columns
  graph.tensor("w1", {3, 2}, {1, 2, 3, 4, -5, 6});
  graph.tensor("b1", {3, 1}, {1, 0, -10});
  graph.tensor("w2", {1, 3}, {1, 10, 100});
  graph.tensor("c", {1, 1}, {0.5F});
  graph.node("Transpose", {"x"}, "t");
  graph.node("MatMul", {"w1", "t"}, "m");
  graph.node("Add", {"m", "b1"}, "h");
  graph.node("Relu", {"h"}, "r");
  Graph::set(graph.node("Gemm", {"w2", "r", "c"}, "g"), "alpha", 2.0F);
  graph.node("Transpose", {"g"}, "y");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 2}), ElementsAre(2 * (6 + 110) + 0.5));
  EXPECT_THAT(outputs(read_onnx(graph.save()), {0, 2}), ElementsAre(2 * (5 + 80 + 200) + 0.5));

  Graph transposing;  // W x^T, all in one node
  transposing.tensor("w", {2, 2}, {1, 2, 3, 4});
  auto* gemm = transposing.node("Gemm", {"w", "x"}, "g");
  Graph::set(gemm, "transA", std::int64_t{1});
  Graph::set(gemm, "transB", std::int64_t{1});
  transposing.node("Transpose", {"g"}, "y");
  EXPECT_THAT(outputs(read_onnx(transposing.save()), {1, 10}), ElementsAre(31, 42));

  Graph mixing;
  mixing.tensor("w", {2, 2}, {1, 2, 3, 4});
  mixing.node("MatMul", {"w", "x"}, "y");
  EXPECT_THAT(refusal_of(mixing),
              AllOf(HasSubstr("node \"/y\" (MatMul, opset 17)"), HasSubstr("a constant W on the left"),
                    HasSubstr("give W on the right, transposed")));
  Graph beside;
  beside.tensor("row", {1, 2}, {1, 2});
  beside.node("Transpose", {"x"}, "t");
  beside.node("Add", {"t", "row"}, "a");
  beside.node("Transpose", {"a"}, "y");
  EXPECT_THAT(refusal_of(beside), HasSubstr("operands [2, batch] and [1, 2]"));
  Graph both;
  both.node("MatMul", {"x", "x"}, "y");
  EXPECT_THAT(refusal_of(both), HasSubstr("Mul and ReduceSum"));
}

TEST(Onnx, products_with_matrices_of_each_sample_are_layers_of_rows_or_columns) {
  Graph rows;                                           // [batch, 2, 2] w + b, the same layer on both rows
  rows.tensor("w0", {2, 4}, {1, 0, 0, 1, 0, 1, 1, 0});  // x -> (x0, x1, x1, x0)
  rows.tensor("w", {1, 2, 3}, {1, 2, 3, 4, 5, 6});
  rows.tensor("b", {3}, {0.5F, 0, -0.5F});
  rows.tensor("each", {2, 1}, {1, 10});
  rows.node("MatMul", {"x", "w0"}, "four");
  shaped(rows, "Reshape", "four", {0, 2, 2}, "square");
  rows.node("MatMul", {"square", "w"}, "p");
  rows.node("Add", {"p", "b"}, "q");
  rows.node("Mul", {"q", "each"}, "r");
  rows.node("Flatten", {"r"}, "y");
  EXPECT_THAT(outputs(read_onnx(rows.save()), {1, 2}), ElementsAre(9.5, 12, 14.5, 65, 90, 115));

  Graph columns;  // w [batch, 2, 2]: the layer of both columns
  columns.tensor("w0", {2, 4}, {1, 0, 0, 1, 0, 1, 1, 0});
  columns.tensor("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  columns.node("MatMul", {"x", "w0"}, "four");
  shaped(columns, "Reshape", "four", {0, 2, 2}, "square");
  columns.node("MatMul", {"w", "square"}, "p");  // [[x0, x1], [x1, x0]]
  columns.node("Flatten", {"p"}, "y");
  EXPECT_THAT(outputs(read_onnx(columns.save()), {1, 10}), ElementsAre(21, 12, 43, 34, 65, 56));

  Graph column;  // w [batch, 2, 1]
  column.tensor("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  shaped(column, "Unsqueeze", "x", {2}, "c");
  column.node("MatMul", {"w", "c"}, "p");
  shaped(column, "Squeeze", "p", {2}, "y");
  EXPECT_THAT(outputs(read_onnx(column.save()), {1, 10}), ElementsAre(21, 43, 65));

  Graph outer;  // [batch, 2, 1] times [batch, 1, 2], element by element
  shaped(outer, "Unsqueeze", "x", {2}, "c");
  shaped(outer, "Unsqueeze", "x", {1}, "r");
  outer.node("Mul", {"c", "r"}, "m");
  outer.node("Flatten", {"m"}, "y");
  EXPECT_THAT(outputs(read_onnx(outer.save()), {3, 10}), ElementsAre(9, 30, 30, 100));
}

// [batch, 2 places, 2 features] by one matrix, then the bias: added to all places alike it is the layer's, other
// numbers are none. The layer's own is zeros, which a training moves where there is a bias.
TEST(Onnx, a_layer_of_each_place_has_a_bias_where_the_same_is_added_to_all_places) {
  const auto has_bias = [](const std::vector<float>& added) {
    Graph graph;
    graph.tensor("w0", {2, 4}, {1, 0, 0, 1, 0, 1, 1, 0});
    graph.tensor("w", {2, 2}, {1, 2, 3, 4});
    graph.tensor("b", {2, 2}, added);
    graph.node("MatMul", {"x", "w0"}, "four");
    shaped(graph, "Reshape", "four", {0, 2, 2}, "p");
    graph.node("MatMul", {"p", "w"}, "m");
    graph.node("Add", {"m", "b"}, "s");
    graph.node("Flatten", {"s"}, "y");
    const Model model = read_onnx(graph.save());
    std::vector<bool> found;
    for (const Node& node : model.nodes) {
      if (const auto* dense = std::get_if<Dense>(&node.operation)) found.push_back(dense->has_bias);
    }
    return found;
  };
  EXPECT_THAT(has_bias({5, 6, 5, 6}), ElementsAre(false, true, true));
  EXPECT_THAT(has_bias({5, 6, 7, 8}), ElementsAre(false, false, false));
}

TEST(Onnx, slices_along_features_may_name_the_whole_batch) {
  const auto sliced = [](const std::vector<float>& starts, const std::vector<float>& ends) {
    Graph graph;
    graph.tensor("starts", {2}, starts);
    graph.tensor("ends", {2}, ends);
    graph.node("Slice", {"x", "starts", "ends"}, "y");
    return graph;
  };
  EXPECT_THAT(outputs(read_onnx(sliced({0, 1}, {2147483648.0F, 2}).save()), {3, 4}), ElementsAre(4));
  EXPECT_THAT(refusal_of(sliced({1, 1}, {2147483648.0F, 2})), HasSubstr("axis 0 of [batch, features]"));
}

TEST(Onnx, shapes_of_more_dimensions_on_the_way_change_no_number) {
  Graph graph;
  graph.tensor("w0", {2, 4}, {1, 0, 2, 0, 0, 1, 0, -2});
  graph.tensor("half", {}, {0.5F});
  graph.tensor("w1", {4, 1}, {1, 10, 100, 1000});
  shaped(graph, "Unsqueeze", "x", {1}, "row");  // [batch, 1, 2]
  graph.tensor("b0", {4}, {0, 1, 0, 2});
  graph.node("MatMul", {"row", "w0"}, "p");
  graph.node("Add", {"p", "b0"}, "h");
  graph.node("Relu", {"h"}, "r");
  shaped(graph, "Reshape", "r", {0, 2, -1}, "square");  // [batch, 2, 2]
  graph.node("Mul", {"square", "half"}, "m");
  graph.node("Add", {"m", "square"}, "a");
  shaped(graph, "Unsqueeze", "a", {-1, 1}, "five");  // [batch, 1, 2, 2, 1]
  shaped(graph, "Squeeze", "five", {1, 4}, "again");
  graph.node("Flatten", {"again"}, "flat");
  graph.node("MatMul", {"flat", "w1"}, "y");
  // 1.5 relu((1, 2, 2, -4) + (0, 1, 0, 2)) as one sum
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 2}), ElementsAre(1.5 + 45 + 300));
}

TEST(Onnx, what_mixes_dimensions_is_refused) {
  const auto refused = [](const auto& build) {
    Graph graph;
    graph.tensor("two", {2}, {1, 2});
    graph.tensor("w", {2, 2}, {1, 2, 3, 4});
    build(graph);
    return refusal_of(graph);
  };
  const auto column = [](Graph& graph) { shaped(graph, "Unsqueeze", "x", {2}, "c"); };  // [batch, 2, 1]
  EXPECT_THAT(refused([&](Graph& g) {
                column(g), g.node("Add", {"c", "x"}, "y");
              }),
              HasSubstr("operands [batch, 2, 1] and [batch, 2]"));
  EXPECT_THAT(refused([&](Graph& g) { column(g), g.node("Add", {"c", "two"}, "y"); }), HasSubstr("[batch, 2, 2]"));
  EXPECT_THAT(refused([&](Graph& g) { column(g), g.node("MatMul", {"c", "w"}, "y"); }), HasSubstr("[batch, 2, 1]"));
  EXPECT_THAT(refused([&](Graph& g) { column(g), g.node("Softmax", {"c"}, "y"); }), HasSubstr("[batch, 2, 1]"));
  EXPECT_THAT(refused([&](Graph& g) { column(g), g.node("Tanh", {"c"}, "y"); }), HasSubstr("of more than two"));
  EXPECT_THAT(refused([&](Graph& g) { column(g), shaped(g, "Squeeze", "c", {1}, "y"); }), HasSubstr("more than two"));
  EXPECT_THAT(refused([&](Graph& g) { shaped(g, "Unsqueeze", "x", {0}, "y"); }), HasSubstr("[1, batch, 2]"));
  EXPECT_THAT(refused([&](Graph& g) { shaped(g, "Reshape", "x", {-1, 2, 2}, "y"); }), HasSubstr("keep the batch"));
}

// Exporters leave such things behind: what nobody needs need not be understood.
TEST(Onnx, what_no_output_needs_is_not_read) {
  Graph graph;
  graph.tensor("w", {2, 1}, {3, 4});
  graph.tensor("words", {1}, {1})->set_data_type(onnx::TensorProto::STRING);
  graph.node("Det", {"x"}, "of_nothing");
  graph.node("Add", {"of_nothing", "words"}, "more");
  graph.node("Gemm", {"x", "w"}, "y");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 2}), ElementsAre(11));
  graph.node("Tanh", {"more"}, "z");
  graph.proto().mutable_graph()->add_output()->set_name("z");
  EXPECT_THAT(refusal_of(graph), HasSubstr("\"/of_nothing\" (Det"));
}

TEST(Onnx, what_is_not_known_is_named) {
  Graph unknown;
  unknown.around([](Graph& g) { g.node("Det", {"h"}, "a"); });
  EXPECT_THAT(refusal_of(unknown), AllOf(HasSubstr("(Det, opset 17)"), HasSubstr("not supported here")));
  Graph foreign;
  foreign.around([](Graph& g) { g.node("Tanh", {"h"}, "a")->set_domain("com.example"); });
  EXPECT_THAT(refusal_of(foreign), HasSubstr("the domain \"com.example\""));
  Graph across;
  across.around([](Graph& g) { Graph::set(g.node("Softmax", {"h"}, "a"), "axis", std::int64_t{0}); });
  EXPECT_THAT(refusal_of(across), AllOf(HasSubstr("axis 0 of [batch, features]"),
                                        HasSubstr("each sample for itself; write it another way")));
  Graph turned;
  turned.around([](Graph& g) {
    g.node("Transpose", {"h"}, "t");
    g.node("Tanh", {"t"}, "a");
  });
  EXPECT_THAT(refusal_of(turned), AllOf(HasSubstr("factors [3, batch] and [3, 1]"), HasSubstr("transpose one")));
  Graph added;
  added.tensor("w", {2, 2}, {1, 2, 3, 4});
  added.node("Transpose", {"x"}, "t");
  added.node("Gemm", {"x", "w", "t"}, "y");
  EXPECT_THAT(refusal_of(added), HasSubstr("batch and features exchanged"));
  Graph old;
  old.around([](Graph& g) { g.node("Tanh", {"h"}, "a"); }).proto().mutable_opset_import(0)->set_version(6);
  EXPECT_THAT(refusal_of(old), AllOf(HasSubstr("opset 6"), HasSubstr("opset_version=17")));
  old.proto().mutable_opset_import(0)->set_version(28);
  EXPECT_EQ(refusal_of(old), "no error");
  old.proto().mutable_opset_import(0)->set_version(29);
  EXPECT_THAT(refusal_of(old), HasSubstr("found opset 29, expected opset 7 to 28"));
}

}  // namespace
}  // namespace lockstep::nn

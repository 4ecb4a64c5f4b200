// Which numbers the operators of ONNX files compute: integers, infinities, bounds, constants of any type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "lockstep/nn/onnx.h"
#include "lockstep/nn/testing/onnx_graph.h"

namespace lockstep::nn {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;
using Graph = testing::OnnxGraph;
using Numbers = std::vector<double>;
using testing::outputs;
using testing::refusal_of;
using Type = onnx::TensorProto;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

void whole(Graph& graph, const std::string& name, std::vector<std::int64_t> values, bool one = false) {
  auto* tensor = graph.proto().mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(Type::INT64);
  if (!one) tensor->add_dims(static_cast<std::int64_t>(values.size()));
  for (const std::int64_t value : values) tensor->add_int64_data(value);
}
void cast(Graph& graph, const std::string& from, const std::string& to, int type) {
  Graph::set(graph.node("Cast", {from}, to), "to", std::int64_t{type});
}
Graph with_input_of(int type) {
  Graph graph;
  graph.proto().mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(type);
  return graph;
}
onnx::AttributeProto* list(onnx::NodeProto* node, const std::string& name) {
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  return attribute;
}

TEST(OnnxIntegers, of_inputs_are_cast_before_arithmetic) {
  Graph divided = with_input_of(Type::INT64);  // 7 / 2 is 3 there
  whole(divided, "two", {2}, true);
  divided.node("Div", {"x", "two"}, "q");
  cast(divided, "q", "y", Type::FLOAT);
  EXPECT_THAT(refusal_of(divided),
              AllOf(HasSubstr("node \"/q\" (Div, opset 17)"),
                    HasSubstr("arithmetic with integers that depend on the input"), HasSubstr("x.float()")));
  Graph chosen = with_input_of(Type::INT32);
  Graph::set(chosen.node("Concat", {"x", "x"}, "twice"), "axis", std::int64_t{1});
  chosen.node("Neg", {"twice"}, "y");
  EXPECT_THAT(refusal_of(chosen), HasSubstr("node \"/y\" (Neg, opset 17)"));
  Graph read = with_input_of(Type::INT64);
  cast(read, "x", "number", Type::FLOAT);
  read.tensor("two", {}, {2});
  read.node("Div", {"number", "two"}, "y");
  EXPECT_THAT(outputs(read_onnx(read.save()), {7, -3}), ElementsAre(3.5, -1.5));
  for (const int type : {Type::STRING, Type::COMPLEX64}) {
    Graph other = with_input_of(type);
    other.node("Identity", {"x"}, "y");
    EXPECT_THAT(refusal_of(other), AllOf(HasSubstr("input \"x\""), HasSubstr("numbers of type ")));
  }
}

TEST(OnnxIntegers, chosen_by_the_input_are_cast_before_arithmetic) {
  const auto chosen = [](bool divides) {
    Graph graph;
    graph.tensor("zero", {}, {0});
    whole(graph, "three", {3}, true), whole(graph, "seven", {-7}, true), whole(graph, "two", {2}, true);
    graph.node("Less", {"x", "zero"}, "below");
    graph.node("Where", {"below", "three", "seven"}, "w");
    if (divides) graph.node("Div", {"w", "two"}, "q");
    cast(graph, divides ? "q" : "w", "y", Type::FLOAT);
    return graph;
  };
  EXPECT_THAT(refusal_of(chosen(true)), AllOf(HasSubstr("(Div, opset 17)"), HasSubstr("arithmetic with integers")));
  EXPECT_THAT(outputs(read_onnx(chosen(false).save()), {-1, 1}), ElementsAre(3, -7));
  Graph like;  // a float rounded as integers are
  like.tensor("zero", {}, {0});
  whole(like, "three", {3}, true), whole(like, "seven", {-7}, true);
  like.node("Less", {"x", "zero"}, "below");
  like.node("Where", {"below", "three", "seven"}, "w");
  like.node("CastLike", {"x", "w"}, "y");
  EXPECT_THAT(refusal_of(like), HasSubstr("a rounding to integers"));
}

TEST(OnnxIntegers, truths_as_inputs_are_what_is_not_zero) {
  Graph graph = with_input_of(Type::BOOL);
  cast(graph, "x", "y", Type::FLOAT);
  EXPECT_THAT(outputs(read_onnx(graph.save()), {3, 0}), ElementsAre(1, 0));
}

TEST(OnnxIntegers, of_every_width_are_constants) {
  struct Stored {
    int type;
    std::string bytes;
    double expected;
  };
  const std::vector<Stored> cases{
      {Type::INT8, "\xfe\x03", -2},
      {Type::UINT8, "\xfe\x03", 254},
      {Type::INT16, std::string("\xfe\xff\x03\x00", 4), -2},
      {Type::UINT16, std::string("\xfe\xff\x03\x00", 4), 65534},
      {Type::UINT32, std::string("\xfe\xff\xff\xff\x03\0\0\0", 8), 4294967294.0},
      {Type::UINT64, std::string("\xfe\0\0\0\0\0\1\0\x03\0\0\0\0\0\0\0", 16), 0x1p48 + 254}};
  for (const auto& [type, bytes, expected] : cases) {
    for (const bool raw : {true, false}) {
      Graph graph;
      auto* tensor = graph.tensor("w", {2}, {});
      tensor->set_data_type(type);
      tensor->clear_raw_data();
      if (raw) tensor->set_raw_data(bytes);
      for (const double value : {expected, 3.0}) {
        if (raw) continue;
        if (type == Type::UINT32 || type == Type::UINT64) {
          tensor->add_uint64_data(static_cast<std::uint64_t>(value));
        } else {
          tensor->add_int32_data(static_cast<std::int32_t>(value));
        }
      }
      cast(graph, "w", "factor", Type::FLOAT);
      graph.node("Mul", {"x", "factor"}, "y");
      EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 1}), ElementsAre(expected, 3)) << type << raw;
    }
  }
}

TEST(OnnxInfinities, stay_out_of_the_running_sums_before_them) {
  const auto sums = [](const std::vector<double>& x, bool reverse, bool exclusive) {
    Graph graph;
    whole(graph, "axis", {1}, true);
    auto* node = graph.node("CumSum", {"x", "axis"}, "y");
    Graph::set(node, "reverse", std::int64_t{reverse}), Graph::set(node, "exclusive", std::int64_t{exclusive});
    return outputs(read_onnx(graph.save()), x);
  };
  EXPECT_THAT(sums({1, kInfinity}, false, false), ElementsAre(1, kInfinity));
  EXPECT_THAT(sums({2, kNoNumber}, false, false), ElementsAre(2, IsNan()));
  EXPECT_THAT(sums({2, kNoNumber}, false, true), ElementsAre(0, 2));
  EXPECT_THAT(sums({-kInfinity, 3}, true, false), ElementsAre(-kInfinity, 3));
  EXPECT_THAT(sums({kNoNumber, 3}, true, true), ElementsAre(3, 0));
  Graph rows;  // [batch, 2, 2] along its first, then its second dimension
  whole(rows, "shape", {-1, 2, 2}), whole(rows, "back", {-1, 4}), whole(rows, "first", {1}, true),
      whole(rows, "second", {2}, true);
  Graph::set(rows.node("Concat", {"x", "x"}, "four"), "axis", std::int64_t{1});
  rows.node("Reshape", {"four", "shape"}, "m");
  rows.node("CumSum", {"m", "first"}, "c");
  rows.node("CumSum", {"c", "second"}, "d");
  rows.node("Reshape", {"d", "back"}, "y");
  EXPECT_THAT(outputs(read_onnx(rows.save()), {1, 10}), ElementsAre(1, 11, 2, 22));
}

TEST(OnnxInfinities, are_the_logarithm_of_their_exponentials_sum) {
  Graph graph;
  testing::shaped(graph, "ReduceLogSumExp", "x", {1}, "y");
  graph.proto().mutable_opset_import(0)->set_version(18);
  const Model model = read_onnx(graph.save());
  EXPECT_THAT(outputs(model, {2, kInfinity}), ElementsAre(kInfinity));
  EXPECT_THAT(outputs(model, {-kInfinity, -kInfinity}), ElementsAre(-kInfinity));
  EXPECT_THAT(outputs(model, {3, -kInfinity}), ElementsAre(3));
  EXPECT_THAT(outputs(model, {3, kNoNumber}), ElementsAre(IsNan()));
  EXPECT_THAT(outputs(model, {1000, 1000}), ElementsAre(DoubleEq(1000 + std::log(2.0))));
}

TEST(OnnxInfinities, have_a_root_by_pow_as_in_c) {
  for (const float exponent : {0.5F, -1.0F, 3.0F}) {
    Graph graph;
    graph.tensor("n", {}, {exponent});
    graph.node("Pow", {"x", "n"}, "y");
    const Numbers y = outputs(read_onnx(graph.save()), {-kInfinity, -0.0});
    for (std::size_t i = 0; i < 2; ++i) {
      const double expected = std::pow(i == 0 ? -kInfinity : -0.0, double{exponent});
      EXPECT_EQ(y[i], expected) << exponent;
      EXPECT_EQ(std::signbit(y[i]), std::signbit(expected)) << exponent;
    }
  }
}

TEST(OnnxBounds, of_clip_are_those_in_the_file) {
  const auto clipped = [](double bound, int type, const std::vector<double>& x) {
    Graph graph;
    for (const auto& [name, value] : {std::pair("low", -bound), std::pair("high", bound)}) {
      auto* tensor = graph.proto().mutable_graph()->add_initializer();
      tensor->set_name(name);
      tensor->set_data_type(type);
      if (type == Type::DOUBLE) {
        tensor->add_double_data(value);
      } else {
        tensor->add_float_data(static_cast<float>(value));
      }
    }
    graph.node("Clip", {"x", "low", "high"}, "y");
    return outputs(read_onnx(graph.save()), x);
  };
  constexpr double kLargest = std::numeric_limits<float>::max();
  EXPECT_THAT(clipped(1e100, Type::DOUBLE, {1e300, -1e300}), ElementsAre(1e100, -1e100));
  EXPECT_THAT(clipped(kLargest, Type::FLOAT, {kInfinity, -kInfinity}), ElementsAre(kLargest, -kLargest));
  Graph old;  // the defaults of opset 6, written out
  auto* node = old.node("Clip", {"x"}, "y");
  Graph::set(node, "min", -std::numeric_limits<float>::max()), Graph::set(node, "max", 3.0F);
  EXPECT_THAT(outputs(read_onnx(old.save()), {-1e39, 4}), ElementsAre(-1e39, 3));
}

TEST(Onnx, other_constants_than_those_of_known_functions_are_kept) {
  const auto erf_form = [](float inner, const std::vector<double>& x) {
    Graph graph;
    graph.tensor("c", {}, {inner}), graph.tensor("one", {}, {1}), graph.tensor("half", {}, {0.5F});
    graph.node("Mul", {"x", "c"}, "u");
    graph.node("Erf", {"u"}, "e");
    graph.node("Add", {"e", "one"}, "p");
    graph.node("Mul", {"x", "p"}, "m");
    graph.node("Mul", {"m", "half"}, "y");
    return outputs(read_onnx(graph.save()), x);
  };
  const auto expected = [](double c, double x) { return 0.5 * x * (1 + std::erf(c * x)); };
  for (const float c : {0.7071F, 0.70711F, 0.70710F}) {
    EXPECT_THAT(erf_form(c, {1, -2}),
                ElementsAre(DoubleNear(expected(c, 1), 1e-14), DoubleNear(expected(c, -2), 1e-14)));
  }
  EXPECT_THAT(erf_form(0.70710678F, {1, -2}), ElementsAre(DoubleNear(expected(std::sqrt(0.5), 1), 1e-14),
                                                          DoubleNear(expected(std::sqrt(0.5), -2), 1e-14)));
  const auto tanh_form = [](float outer, float cubic) {
    Graph graph;
    graph.tensor("k", {}, {outer}), graph.tensor("c", {}, {cubic}), graph.tensor("one", {}, {1});
    graph.tensor("half", {}, {0.5F}), graph.tensor("three", {}, {3});
    graph.node("Pow", {"x", "three"}, "c3"), graph.node("Mul", {"c3", "c"}, "cc");
    graph.node("Add", {"x", "cc"}, "in"), graph.node("Mul", {"in", "k"}, "u"), graph.node("Tanh", {"u"}, "t");
    graph.node("Add", {"t", "one"}, "p"), graph.node("Mul", {"x", "p"}, "m"), graph.node("Mul", {"m", "half"}, "y");
    return outputs(read_onnx(graph.save()), {1, -2});
  };
  const auto of_tanh = [](double k, double c, double x) { return 0.5 * x * (1 + std::tanh(k * (x + c * x * x * x))); };
  // 0.044715 is taken for the decimal, wherever it stands.
  EXPECT_THAT(tanh_form(0.79788F, 0.044715F), ElementsAre(DoubleNear(of_tanh(0.79788F, 0.044715, 1), 1e-14),
                                                          DoubleNear(of_tanh(0.79788F, 0.044715, -2), 1e-14)));
  EXPECT_THAT(tanh_form(0.79788456F, 0.04471F), ElementsAre(DoubleNear(of_tanh(0.79788456F, 0.04471F, 1), 1e-14),
                                                            DoubleNear(of_tanh(0.79788456F, 0.04471F, -2), 1e-14)));
  const double root = std::sqrt(2 / std::acos(-1.0));
  EXPECT_THAT(tanh_form(0.7978845608F, 0.044715F), ElementsAre(DoubleNear(of_tanh(root, 0.044715, 1), 1e-14),
                                                               DoubleNear(of_tanh(root, 0.044715, -2), 1e-14)));
  const auto hard_sigmoid = [](float alpha) {
    Graph graph;
    Graph::set(graph.node("HardSigmoid", {"x"}, "y"), "alpha", alpha);
    return outputs(read_onnx(graph.save()), {2, 1})[0];
  };
  EXPECT_DOUBLE_EQ(hard_sigmoid(0.166666F), 2 * 0.166666 + 0.5);
  EXPECT_DOUBLE_EQ(hard_sigmoid(1.0F / 6), 2.0 / 6 + 0.5);
}

TEST(OnnxClassifier, of_two_classes_may_have_one_score) {
  const auto scores = [](const std::string& transform) {
    Graph graph;
    auto* node = graph.node("LinearClassifier", {"x"}, "label");
    node->add_output("y");
    node->set_domain("ai.onnx.ml");
    auto *weights = list(node, "coefficients"), *bias = list(node, "intercepts"),
         *labels = list(node, "classlabels_ints");
    weights->add_floats(0.25F), weights->add_floats(-0.5F), bias->add_floats(0.75F);
    labels->add_ints(0), labels->add_ints(1);
    list(node, "post_transform")->set_s(transform);
    return graph;
  };
  EXPECT_THAT(outputs(read_onnx(scores("NONE").save()), {1, 2}), ElementsAre(1, 0));
  const double p = 1 / (1 + std::exp(-1.0));
  EXPECT_THAT(outputs(read_onnx(scores("LOGISTIC").save()), {1, 0}),
              ElementsAre(DoubleNear(1 - p, 1e-15), DoubleNear(p, 1e-15)));
  EXPECT_THAT(refusal_of(scores("SOFTMAX")), HasSubstr("SOFTMAX of one score"));
  Graph map;
  auto* node = map.node("ZipMap", {"x"}, "y");
  node->set_domain("ai.onnx.ml");
  auto* labels = list(node, "classlabels_int64s");
  for (int i = 0; i < 3; ++i) labels->add_ints(i);
  EXPECT_THAT(refusal_of(map), HasSubstr("found 2 numbers for 3 classes, expected one for each"));
  labels->clear_ints(), labels->add_ints(0), labels->add_ints(1);
  EXPECT_THAT(outputs(read_onnx(map.save()), {1, 2}), ElementsAre(1, 2));
}

// y = x * factors, which `build` makes of the constant w.
template <class Build>
Numbers factors(const std::vector<float>& w, std::vector<std::int64_t> shape, Build build) {
  Graph graph;
  graph.tensor("w", std::move(shape), w);
  build(graph);
  graph.node("Mul", {"x", "factors"}, "y");
  return outputs(read_onnx(graph.save()), {1, 1});
}
auto one_node(const std::string& op, const std::vector<std::pair<std::string, std::int64_t>>& attributes = {},
              const std::vector<std::string>& further = {}) {
  return [=](Graph& graph) {
    whole(graph, "zero", {0}, true), whole(graph, "place", {1}), graph.tensor("seven", {1}, {7});
    graph.tensor("scale", {2}, {2, 3}), graph.tensor("shift", {2}, {1, -1});
    whole(graph, "row", {1, 0}), graph.proto().mutable_graph()->mutable_initializer()->rbegin()->add_dims(1);
    std::vector<std::string> operands{"w"};
    operands.insert(operands.end(), further.begin(), further.end());
    auto* node = graph.node(op, operands, "factors");
    for (const auto& [name, value] : attributes) Graph::set(node, name, value);
  };
}

TEST(OnnxConstants, are_computed_in_rows) {
  const double p = 1 / (1 + std::exp(2.0));
  EXPECT_THAT(factors({1, 3}, {2}, one_node("Softmax")), ElementsAre(DoubleNear(p, 1e-15), DoubleNear(1 - p, 1e-15)));
  EXPECT_THAT(factors({1, 3}, {2}, one_node("LogSoftmax", {{"axis", 0}})),
              ElementsAre(DoubleNear(std::log(p), 1e-14), DoubleNear(std::log(1 - p), 1e-14)));
  EXPECT_THAT(factors({1000, 1000}, {2}, one_node("Softmax")), ElementsAre(0.5, 0.5));
  EXPECT_THAT(factors({3, 3}, {2}, one_node("Hardmax")), ElementsAre(1, 0));
  EXPECT_THAT(factors({3, 4}, {2}, one_node("LpNormalization")), ElementsAre(0.6, 0.8));
  EXPECT_THAT(factors({3, 4}, {2}, one_node("CumSum", {}, {"zero"})), ElementsAre(3, 7));
  EXPECT_THAT(factors({3, 4}, {2}, one_node("CumSum", {{"reverse", 1}}, {"zero"})), ElementsAre(7, 4));
  EXPECT_THAT(factors({3, 4}, {2}, one_node("CumSum", {{"exclusive", 1}}, {"zero"})), ElementsAre(0, 3));
  const double unit = 1 / std::sqrt(1 + 1e-5);  // of 1 and 3
  EXPECT_THAT(factors({1, 3}, {2}, one_node("LayerNormalization", {}, {"scale", "shift"})),
              ElementsAre(DoubleNear(1 - 2 * unit, 1e-14), DoubleNear(3 * unit - 1, 1e-14)));
  const double root = std::sqrt(5 + 1e-5);
  EXPECT_THAT(factors({1, 3}, {2}, one_node("RMSNormalization", {}, {"scale"})),
              ElementsAre(DoubleNear(2 / root, 1e-14), DoubleNear(9 / root, 1e-14)));
  EXPECT_THAT(factors({0, 1, 2, 3}, {2, 2},
                      [](Graph& graph) {  // along the first of two dimensions
                        whole(graph, "zero", {0}, true), whole(graph, "last", {1}, true);
                        Graph::set(graph.node("Softmax", {"w"}, "s"), "axis", std::int64_t{0});
                        Graph::set(graph.node("Gather", {"s", "last"}, "factors"), "axis", std::int64_t{0});
                      }),
              ElementsAre(DoubleNear(1 - p, 1e-15), DoubleNear(1 - p, 1e-15)));
}

TEST(OnnxConstants, are_split_and_set) {
  EXPECT_THAT(factors({1, 2, 3, 4}, {2, 2},
                      [](Graph& graph) {
                        whole(graph, "last", {1}, true);
                        auto* node = graph.node("Split", {"w"}, "first");
                        node->add_output("second");
                        Graph::set(node, "axis", std::int64_t{1});
                        graph.node("Squeeze", {"second"}, "factors");
                      }),
              ElementsAre(2, 4));
  EXPECT_THAT(factors({1, 2}, {2},
                      [](Graph& graph) {
                        auto* places = graph.tensor("places", {1, 1}, {});
                        places->clear_raw_data(), places->set_data_type(Type::INT64), places->add_int64_data(1);
                        graph.tensor("seven", {1}, {7});
                        graph.node("ScatterND", {"w", "places", "seven"}, "factors");
                      }),
              ElementsAre(1, 7));
  EXPECT_THAT(factors({1, 2}, {2}, one_node("ScatterElements", {{"axis", 0}}, {"place", "seven"})), ElementsAre(1, 7));
}

TEST(OnnxConstants, are_computed_by_operators_of_the_named_domain) {
  Graph graph;
  graph.tensor("w", {2, 2}, {1, 2, 3, 4});
  testing::shaped(graph, "ReduceSum", "w", {0}, "sums")->set_domain("ai.onnx");
  graph.node("Mul", {"x", "sums"}, "y")->set_domain("ai.onnx");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 1}), ElementsAre(4, 6));
}

TEST(OnnxConstants, decide_which_branch_is_taken) {
  for (const float limit : {1.0F, 3.0F}) {
    Graph graph;
    graph.node("Shape", {"x"}, "shape");
    graph.node("Size", {"shape"}, "rank");
    graph.tensor("limit", {}, {limit}), graph.tensor("ten", {}, {10});
    graph.node("Greater", {"rank", "limit"}, "more");
    auto* node = graph.node("If", {"more"}, "y");
    for (const char* name : {"then_branch", "else_branch"}) {
      auto* branch = list(node, name)->mutable_g();
      auto* one = branch->add_node();
      one->set_op_type(name[0] == 't' ? "Mul" : "Add");
      one->add_input("x"), one->add_input("ten"), one->add_output(std::string(name) + "_made");
      branch->add_output()->set_name(std::string(name) + "_made");
    }
    EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 2}), limit < 2 ? ElementsAre(10, 20) : ElementsAre(11, 12));
  }
}

// x[:, 1] set, added to or multiplied, by indices that count the samples, as PyTorch's older exporter and jax2onnx
// write.
Graph columns_set(const std::string& reduction, const std::string& arithmetic = "Identity") {
  Graph graph;
  whole(graph, "zero", {0}, true), whole(graph, "one", {1}, true), whole(graph, "last", {-1}),
      whole(graph, "column", {1});
  whole(graph, "tall", {-1, 1}), graph.tensor("ten", {}, {10});
  graph.node("Shape", {"x"}, "shape");
  graph.node("Gather", {"shape", "zero"}, "batch");
  graph.node("Range", {"zero", "batch", "one"}, "samples");
  graph.node("Reshape", {"samples", "tall"}, "rows");
  graph.node("Shape", {"rows"}, "rows_shape");
  if (arithmetic == "Identity") {
    graph.node(arithmetic, {"rows"}, "places");
  } else {
    graph.node(arithmetic, {"rows", "one"}, "places");
  }
  graph.node("Expand", {"column", "rows_shape"}, "columns");
  graph.node("Unsqueeze", {"places", "last"}, "i"), graph.node("Unsqueeze", {"columns", "last"}, "j");
  Graph::set(graph.node("Concat", {"i", "j"}, "indices"), "axis", std::int64_t{-1});
  graph.node("Expand", {"ten", "rows_shape"}, "updates");
  auto* node = graph.node("ScatterND", {"x", "indices", "updates"}, "y");
  list(node, "reduction")->set_s(reduction);
  return graph;
}

TEST(Onnx, columns_are_set_by_the_numbers_of_the_samples) {
  EXPECT_THAT(outputs(read_onnx(columns_set("none").save()), {3, 4}), ElementsAre(3, 10));
  EXPECT_THAT(outputs(read_onnx(columns_set("add").save()), {3, 4}), ElementsAre(3, 14));
  EXPECT_THAT(outputs(read_onnx(columns_set("mul").save()), {3, 4}), ElementsAre(3, 40));
  EXPECT_THAT(refusal_of(columns_set("max")), HasSubstr("reduction = max"));
  // The next sample's: across the batch.
  EXPECT_THAT(refusal_of(columns_set("none", "Add")), AllOf(HasSubstr("(ScatterND, opset 17)"), HasSubstr("indices")));
  Graph compared;
  whole(compared, "zero", {0}, true), whole(compared, "one", {1}, true);
  compared.node("Shape", {"x"}, "shape");
  compared.node("Gather", {"shape", "zero"}, "batch");
  compared.node("Range", {"zero", "batch", "one"}, "samples");
  compared.node("Equal", {"samples", "zero"}, "first");
  cast(compared, "first", "number", Type::FLOAT);
  compared.node("Add", {"x", "number"}, "y");
  EXPECT_THAT(refusal_of(compared), HasSubstr("the numbers of the samples in the batch"));
}

TEST(Onnx, places_named_twice_add_up) {
  Graph graph;  // x.index_add(1, [1, 1], ...) of [features, batch]
  auto* places = graph.tensor("places", {2, 1}, {});
  places->clear_raw_data(), places->set_data_type(Type::INT64), places->add_int64_data(1), places->add_int64_data(1);
  graph.node("Transpose", {"x"}, "turned");
  list(graph.node("ScatterND", {"turned", "places", "turned"}, "more"), "reduction")->set_s("add");
  graph.node("Transpose", {"more"}, "y");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {3, 4}), ElementsAre(3, 11));
  EXPECT_TRUE(std::signbit(outputs(read_onnx(graph.save()), {-0.0, 4})[0]));
}

TEST(Onnx, the_size_of_the_batch_is_named_where_a_number_is_wanted) {
  Graph graph;
  whole(graph, "zero", {0}, true), whole(graph, "three", {3}, true);
  graph.node("Shape", {"x"}, "shape");
  graph.node("Gather", {"shape", "zero"}, "batch");
  graph.node("Range", {"zero", "three", "batch"}, "r");
  graph.node("Add", {"x", "r"}, "y");
  EXPECT_THAT(refusal_of(graph), HasSubstr("found the size of the batch as a number, expected fixed numbers"));
}

TEST(Onnx, names_of_operators_and_operands_are_text) {
  Graph op;
  op.node("Re\x80lu", {"x"}, "y");
  Graph operand;
  operand.node("Add", {"x", "z\xff"}, "y");
  for (const Graph& graph : {op, operand}) EXPECT_THAT(refusal_of(graph), HasSubstr("a name that is not UTF-8"));
}

}  // namespace
}  // namespace lockstep::nn

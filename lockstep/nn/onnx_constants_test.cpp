// What ONNX files compute from constants alone, and the work that reading one may take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/nn/onnx.h"
#include "lockstep/nn/testing/onnx_graph.h"

namespace lockstep::nn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Graph = testing::OnnxGraph;
using testing::outputs;
using testing::refusal_of;
using testing::shaped;

const std::vector<float> kWeights{-1.5F, 0.25F, 4, 1, 1, 1};  // [2, 3]

TEST(Onnx, functions_of_weights_are_computed_on_reading) {
  using Attributes = std::vector<std::pair<std::string, float>>;
  struct Case {
    std::string op;
    Attributes attributes;
    std::function<double(double)> expected;
  };
  const auto normal = [](double x) { return 0.5 * (1 + std::erf(x / std::sqrt(2.0))); };
  const auto elu = [](double x, double alpha) { return x > 0 ? x : alpha * (std::exp(x) - 1); };
  const std::vector<Case> cases{
      {"Elu", {}, [&](double x) { return elu(x, 1); }},
      {"Elu", {{"alpha", 0.3F}}, [&](double x) { return elu(x, 0.3); }},
      {"Celu", {{"alpha", 2}}, [&](double x) { return x > 0 ? x : 2 * (std::exp(x / 2) - 1); }},
      {"Selu", {}, [&](double x) { return 1.0507009873554805 * elu(x, 1.6732632423543772); }},
      {"LeakyRelu", {{"alpha", 0.2F}}, [](double x) { return x < 0 ? 0.2 * x : x; }},
      {"Erf", {}, [](double x) { return std::erf(x); }},
      {"Gelu", {}, [&](double x) { return x * normal(x); }},
      {"Swish", {{"alpha", 2}}, [](double x) { return x / (1 + std::exp(-2 * x)); }},
      {"Mish", {}, [](double x) { return x * std::tanh(std::log(1 + std::exp(x))); }},
      {"Softplus", {}, [](double x) { return std::log(1 + std::exp(x)); }},
      {"Softsign", {}, [](double x) { return x / (1 + std::fabs(x)); }},
      {"HardSigmoid", {}, [](double x) { return std::min(1.0, std::max(0.0, 0.2 * x + 0.5)); }},
      {"HardSwish", {}, [](double x) { return x * std::min(1.0, std::max(0.0, x / 6 + 0.5)); }},
      {"ThresholdedRelu", {{"alpha", 0.5F}}, [](double x) { return x > 0.5 ? x : 0; }},
      {"Shrink",
       {{"lambd", 0.5F}, {"bias", 0.25F}},
       [](double x) { return x < -0.5  ? x + 0.25
                             : x > 0.5 ? x - 0.25
                                       : 0; }},
      {"Tan", {}, [](double x) { return std::tan(x); }},
      {"Sinh", {}, [](double x) { return std::sinh(x); }},
      {"Cosh", {}, [](double x) { return std::cosh(x); }},
      {"Atan", {}, [](double x) { return std::atan(x); }},
      {"Asinh", {}, [](double x) { return std::asinh(x); }},
      {"Round", {}, [](double x) { return std::nearbyint(x); }},
  };
  for (const Case& one : cases) {
    Graph graph;
    graph.tensor("raw", {2, 3}, kWeights);
    auto* node = graph.node(one.op, {"raw"}, "w");
    for (const auto& [name, value] : one.attributes) Graph::set(node, name, value);
    graph.node("MatMul", {"x", "w"}, "y");
    const std::vector<double> y = outputs(read_onnx(graph.save()), {1, 0});
    for (std::size_t i = 0; i < 3; ++i) {
      const double w = kWeights[i];
      EXPECT_NEAR(y[i], one.expected(w), 1e-13 * std::max(1.0, std::fabs(one.expected(w)))) << one.op << " of " << w;
    }
  }
}

TEST(Onnx, positive_weights_of_one_output_are_read) {
  Graph graph;  // F.linear(x, F.elu(w) + 1), w [1, 2]
  graph.tensor("raw", {1, 2}, {-1, 2}), graph.tensor("one", {}, {1});
  graph.node("Elu", {"raw"}, "bent");
  graph.node("Add", {"bent", "one"}, "w");
  Graph::set(graph.node("Gemm", {"x", "w"}, "y"), "transB", std::int64_t{1});
  EXPECT_NEAR(outputs(read_onnx(graph.save()), {1, 10})[0], std::exp(-1.0) + 30, 1e-13);
  Graph slopes;  // one for each column
  slopes.tensor("raw", {2, 3}, kWeights), slopes.tensor("slope", {3}, {0.5F, 2, 2});
  slopes.node("PRelu", {"raw", "slope"}, "w");
  slopes.node("MatMul", {"x", "w"}, "y");
  EXPECT_THAT(outputs(read_onnx(slopes.save()), {1, 0}), ElementsAre(-0.75, 0.25, 4));
  Graph wild;
  wild.tensor("raw", {2, 1}, {800, 0});
  wild.node("Sinh", {"raw"}, "w");
  wild.node("MatMul", {"x", "w"}, "y");
  EXPECT_THAT(refusal_of(wild), HasSubstr("node \"/w\" (Sinh, opset 17)"));
}

TEST(Onnx, products_of_weights_may_be_large) {
  constexpr std::int64_t kRank = 1024;
  Graph graph;  // 2^21 products
  std::vector<float> same(kRank * kRank, 0);
  for (std::size_t i = 0; i < kRank; ++i) same[i * kRank + i] = 2;
  graph.tensor("a", {2, kRank}, std::vector<float>(2 * kRank, 1)), graph.tensor("b", {kRank, kRank}, same);
  graph.node("MatMul", {"a", "b"}, "w");
  graph.node("MatMul", {"x", "w"}, "y");
  const std::vector<double> y = outputs(read_onnx(graph.save()), {1, 3});
  EXPECT_EQ(y, std::vector<double>(kRank, 8));
  Graph wide;  // of 2^21 numbers
  wide.tensor("a", {2048, 1}, std::vector<float>(2048, 1)), wide.tensor("b", {1, 1024}, std::vector<float>(1024, 1));
  wide.node("MatMul", {"a", "b"}, "w");
  shaped(wide, "ReduceMean", "w", {0}, "mean");  // [1, 1024]
  wide.proto().mutable_opset_import(0)->set_version(18);
  wide.tensor("two", {2}, {0, 1023});
  Graph::set(wide.node("Gather", {"mean", "two"}, "ends"), "axis", std::int64_t{1});
  wide.node("Mul", {"x", "ends"}, "y");
  EXPECT_THAT(outputs(read_onnx(wide.save()), {2, 3}), ElementsAre(2, 3));
  Graph vast;  // 2^28 products
  vast.tensor("a", {16, 4096}, std::vector<float>(65536, 1)),
      vast.tensor("b", {16, 4096}, std::vector<float>(65536, 1));
  vast.node("Transpose", {"a"}, "tall");
  vast.node("MatMul", {"tall", "b"}, "y");
  EXPECT_THAT(refusal_of(vast), AllOf(HasSubstr("node \"/y\" (MatMul, opset 17)"), HasSubstr("2^27 products")));
}

TEST(Onnx, the_work_of_reading_is_bounded) {
  constexpr std::int64_t kWide = std::int64_t{1} << 20;
  for (const std::string op : {"Transpose", "Slice"}) {
    Graph graph;  // each node a picture of 2^20 numbers that changes nothing
    graph.proto()
        .mutable_graph()
        ->mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(1)
        ->set_dim_value(kWide);
    graph.tensor("zero", {1}, {0}), graph.tensor("end", {1}, {1e9F}), graph.tensor("axis", {1}, {2});
    shaped(graph, "Unsqueeze", "x", {1}, "v0");
    constexpr int kNodes = 1000;
    for (int i = 0; i < kNodes; ++i) {
      const std::string from = "v" + std::to_string(i), to = i + 1 == kNodes ? "y" : "v" + std::to_string(i + 1);
      if (op == "Slice") {
        graph.node(op, {from, "zero", "end", "axis"}, to);
      } else {
        auto* perm = graph.node(op, {from}, to)->add_attribute();
        perm->set_name("perm");
        for (const std::int64_t axis : {0, 1, 2}) perm->add_ints(axis);
      }
    }
    EXPECT_THAT(refusal_of(graph), AllOf(HasSubstr("(" + op + ", opset 17)"), HasSubstr("at most 2^28"))) << op;
  }
}

TEST(Onnx, a_squeeze_without_axes_leaves_several_features) {
  Graph graph;
  graph.node("Squeeze", {"x"}, "s");
  graph.node("Tanh", {"s"}, "y");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {0, 1}), ElementsAre(0, std::tanh(1.0)));
  Graph one;  // [1, 2] becomes [2]
  one.proto()
      .mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_value(1);
  one.node("Squeeze", {"x"}, "y");
  EXPECT_THAT(refusal_of(one), HasSubstr("(Squeeze, opset 17)"));
}

TEST(Onnx, an_output_that_is_not_offered_is_named_with_its_node) {
  Graph graph;
  auto* const dropout = graph.node("Dropout", {"x"}, "d");
  dropout->add_output("mask");
  graph.node("Where", {"mask", "d", "x"}, "y");
  EXPECT_THAT(refusal_of(graph),
              AllOf(HasSubstr("node \"/y\" (Where, opset 17): found \"mask\", output 1 of node \"/d\" "
                              "(Dropout, opset 17), which is not offered"),
                    HasSubstr("export the part before it")));
}

TEST(Onnx, roundings_are_refused_with_advice_that_helps) {
  const auto cast_to = [](std::int64_t type) {
    Graph graph;
    Graph::set(graph.node("Cast", {"x"}, "y"), "to", type);
    return refusal_of(graph);
  };
  EXPECT_THAT(cast_to(onnx::TensorProto::FLOAT16),
              HasSubstr("to float16, expected float32 or float64; export the net"));
  EXPECT_THAT(cast_to(onnx::TensorProto::INT64),
              HasSubstr("to int64, expected float32 or float64; write it another way"));
  EXPECT_THAT(cast_to(onnx::TensorProto::INT32), HasSubstr("write it another way"));
}

TEST(Onnx, names_that_are_not_utf8_are_refused) {
  for (const std::string bad : {"\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xe2\x82z"}) {
    Graph input;
    input.proto().mutable_graph()->mutable_input(0)->set_name(bad);
    input.node("Tanh", {bad}, "y");
    Graph output;
    output.proto().mutable_graph()->mutable_output(0)->set_name(bad);
    output.node("Tanh", {"x"}, bad);
    Graph node;
    node.node("Tanh", {"x"}, "y")->set_name(bad);
    for (const Graph& graph : {input, output, node}) {
      EXPECT_THAT(refusal_of(graph), HasSubstr("found a name that is not UTF-8")) << bad;
    }
  }
  Graph greek;
  greek.proto().mutable_graph()->mutable_input(0)->set_name("\u03b8\u20ac\U0001f30a");
  greek.node("Tanh", {"\u03b8\u20ac\U0001f30a"}, "y");
  EXPECT_EQ(refusal_of(greek), "no error");
}

TEST(Onnx, a_shape_with_zeros_that_are_meant_is_refused) {
  for (const bool deep : {false, true}) {
    for (const std::int64_t allowed : {0, 1}) {
      Graph graph;
      auto* reshape = shaped(graph, "Reshape", "x", deep ? std::vector<float>{0, 1, 2} : std::vector<float>{0, 2}, "r");
      Graph::set(reshape, "allowzero", allowed);
      shaped(graph, "Reshape", "r", {-1, 2}, "y");
      if (allowed == 0) {
        EXPECT_THAT(outputs(read_onnx(graph.save()), {3, 4}), ElementsAre(3, 4));
      }
      if (allowed == 1) {
        EXPECT_THAT(refusal_of(graph), AllOf(HasSubstr("node \"/r\""), HasSubstr("allowzero = 1")));
      }
    }
  }
}

TEST(Onnx, constants_are_joined_to_each_sample_or_to_a_single_one) {
  for (const bool deep : {false, true}) {
    for (const std::string kind : {"as it is", "expanded", "batch of 1"}) {
      Graph graph;  // torch.cat([x, c.expand(x.shape[0], -1)], 1), or without the expand
      if (kind == "batch of 1") {
        graph.proto()
            .mutable_graph()
            ->mutable_input(0)
            ->mutable_type()
            ->mutable_tensor_type()
            ->mutable_shape()
            ->mutable_dim(0)
            ->set_dim_value(1);
      }
      graph.tensor("c", {1, 1}, {5}), graph.tensor("one", {1}, {1});
      Graph::set(graph.node("Shape", {"x"}, "rows"), "end", std::int64_t{1});
      Graph::set(graph.node("Concat", {"rows", "one"}, "shape"), "axis", std::int64_t{0});
      graph.node("Expand", {"c", "shape"}, "each");
      std::string x = "x", c = kind == "expanded" ? "each" : "c";
      if (deep) {
        shaped(graph, "Unsqueeze", x, {1}, "x3"), shaped(graph, "Unsqueeze", c, {1}, "c3");
        x = "x3", c = "c3";
      }
      Graph::set(graph.node("Concat", {x, c}, "all"), "axis", std::int64_t{deep ? 2 : 1});
      graph.node("Flatten", {"all"}, "y");
      if (kind != "as it is") {
        EXPECT_THAT(outputs(read_onnx(graph.save()), {3, 4}), ElementsAre(3, 4, 5)) << kind;
      }
      if (kind == "as it is") {
        EXPECT_THAT(refusal_of(graph), AllOf(HasSubstr("node \"/all\""), HasSubstr("expand it to the batch"))) << deep;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::nn

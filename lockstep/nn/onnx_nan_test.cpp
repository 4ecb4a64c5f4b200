// NaN in ONNX files: constants that no net takes, as JAX writes them, and operators that ask for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
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

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// where(n > degrees of freedom, variance, nan): what jnp.var() computes, its condition of constants.
Graph variance(float degrees, bool turned = false) {
  Graph graph;
  graph.tensor("n", {}, {2}), graph.tensor("degrees", {}, {degrees}), graph.tensor("none", {}, {kNan});
  graph.node("Mul", {"x", "x"}, "square");
  graph.node(turned ? "Less" : "Greater", {"n", "degrees"}, "enough");
  testing::shaped(graph, "Reshape", "none", {1, 1}, "not_known");
  graph.node("Where",
             turned ? std::vector<std::string>{"enough", "not_known", "square"}
                    : std::vector<std::string>{"enough", "square", "not_known"},
             "y");
  return graph;
}

TEST(OnnxNan, constants_that_the_net_never_takes_may_be_nan) {
  for (const bool turned : {false, true}) {
    const Model model = read_onnx(variance(0, turned).save());
    EXPECT_THAT(outputs(model, {3, -4}), ElementsAre(9, 16));
    EXPECT_EQ(model.nodes.size(), 1u);  // the square alone: nothing is chosen while it runs
  }
  Graph of_each;  // the first feature of x, the second of a constant
  of_each.tensor("mask", {2}, {1, 0});
  of_each.tensor("other", {2}, {kNan, 7});
  of_each.node("Where", {"mask", "x", "other"}, "y");
  EXPECT_THAT(outputs(read_onnx(of_each.save()), {3, -4}), ElementsAre(3, 7));
  Graph made;  // of a Constant node, and of constants alone
  made.tensor("mask", {2}, {1, 0}), made.tensor("five", {2}, {5, 6});
  made.node("Constant", {}, "none")->add_attribute()->set_name("value_float");
  made.proto().mutable_graph()->mutable_node(0)->mutable_attribute(0)->set_f(kNan);
  made.node("Where", {"mask", "five", "none"}, "c");
  made.node("Where", {"mask", "c", "x"}, "y");
  EXPECT_THAT(outputs(read_onnx(made.save()), {3, -4}), ElementsAre(5, -4));
}

TEST(OnnxNan, constants_that_the_net_takes_may_not) {
  for (const bool turned : {false, true}) {
    EXPECT_THAT(refusal_of(variance(turned ? 5 : 2, turned)),
                AllOf(HasSubstr("initializer \"none\"[0]: found nan, expected a number"),
                      HasSubstr("train or export the net again")));
  }
  Graph mixed;
  mixed.tensor("mask", {2}, {1, 0}), mixed.tensor("other", {2}, {7, kNan});
  mixed.node("Where", {"mask", "x", "other"}, "y");
  EXPECT_THAT(refusal_of(mixed), HasSubstr("initializer \"other\"[1]: found nan"));
  Graph scalar;  // one number for both features, the second of which is taken
  scalar.tensor("mask", {2}, {1, 0}), scalar.tensor("other", {}, {kNan});
  scalar.node("Where", {"mask", "x", "other"}, "y");
  EXPECT_THAT(refusal_of(scalar), HasSubstr("initializer \"other\"[0]: found nan"));
  Graph by_data;
  by_data.tensor("edge", {}, {1}), by_data.tensor("other", {}, {kNan});
  by_data.node("Less", {"x", "edge"}, "mask");
  by_data.node("Where", {"mask", "x", "other"}, "y");
  EXPECT_THAT(refusal_of(by_data), HasSubstr("initializer \"other\"[0]: found nan"));
  Graph added;  // through what lays constants out
  added.tensor("other", {}, {kNan});
  testing::shaped(added, "Reshape", "other", {1, 1}, "laid");
  added.node("Add", {"x", "laid"}, "y");
  EXPECT_THAT(refusal_of(added), HasSubstr("initializer \"other\"[0]: found nan"));
  Graph shape;
  shape.tensor("to", {2}, {1, kNan});
  shape.node("Reshape", {"x", "to"}, "y");
  EXPECT_THAT(refusal_of(shape), HasSubstr("initializer \"to\"[1]: found nan"));
}

TEST(OnnxNan, is_told_from_numbers_and_infinities) {
  const double nan = kNan, infinity = std::numeric_limits<double>::infinity();
  const auto told = [](const std::string& op, std::vector<double> x,
                       const std::vector<std::pair<std::string, std::int64_t>>& attributes = {}) {
    Graph graph;
    graph.tensor("one", {}, {1}), graph.tensor("minus", {}, {-1});
    auto* const node = graph.node(op, {"x"}, "told");
    for (const auto& [name, value] : attributes) Graph::set(node, name, value);
    graph.node("Where", {"told", "one", "minus"}, "y");
    return outputs(read_onnx(graph.save()), std::move(x));
  };
  EXPECT_THAT(told("IsNaN", {nan, 3}), ElementsAre(1, -1));
  EXPECT_THAT(told("IsNaN", {-infinity, infinity}), ElementsAre(-1, -1));
  EXPECT_THAT(told("IsInf", {nan, 3}), ElementsAre(-1, -1));
  EXPECT_THAT(told("IsInf", {-infinity, infinity}), ElementsAre(1, 1));
  EXPECT_THAT(told("IsInf", {-infinity, infinity}, {{"detect_negative", 0}}), ElementsAre(-1, 1));
  EXPECT_THAT(told("IsInf", {-infinity, infinity}, {{"detect_positive", 0}}), ElementsAre(1, -1));
}

TEST(OnnxNan, either_but_not_both) {
  Graph graph;
  graph.tensor("zero", {}, {0}), graph.tensor("one", {}, {1}), graph.tensor("mask", {2}, {1, 0});
  graph.node("Less", {"zero", "x"}, "above");
  graph.node("Less", {"one", "x"}, "far");
  graph.node("Xor", {"above", "far"}, "near");
  graph.node("Where", {"near", "x", "zero"}, "y");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {0.5, 3}), ElementsAre(0.5, 0));
  EXPECT_THAT(outputs(read_onnx(graph.save()), {-0.5, 1}), ElementsAre(0, 1));
}

TEST(OnnxNan, what_was_not_measured_is_filled_in) {
  const auto imputer = [](const std::vector<float>& values) {
    Graph graph;
    auto* const node = graph.node("Imputer", {"x"}, "y");
    node->set_domain("ai.onnx.ml");
    auto* const attribute = node->add_attribute();
    attribute->set_name("imputed_value_floats");
    for (const float value : values) attribute->add_floats(value);
    return graph;
  };
  const auto with_replaced = [&](float value) {
    Graph graph = imputer({5, 6});
    Graph::set(graph.proto().mutable_graph()->mutable_node(0), "replaced_value_float", value);
    return graph;
  };
  EXPECT_THAT(outputs(read_onnx(with_replaced(kNan).save()), {kNan, 3}), ElementsAre(5, 3));
  EXPECT_THAT(outputs(read_onnx(with_replaced(kNan).save()), {-999, kNan}), ElementsAre(-999, 6));
  EXPECT_THAT(outputs(read_onnx(imputer({5, 6}).save()), {0, 3}), ElementsAre(5, 3));  // the standard's default
  EXPECT_THAT(outputs(read_onnx(imputer({5}).save()), {0, kNan}), ElementsAre(5, ::testing::IsNan()));
  EXPECT_THAT(outputs(read_onnx(with_replaced(-999).save()), {-999, 3}), ElementsAre(5, 3));
  EXPECT_THAT(refusal_of(imputer({})), HasSubstr("no imputed_value_floats"));
  EXPECT_THAT(refusal_of(imputer({1, 2, 3})), HasSubstr("found 3 imputed_value_floats, expected one, or one for each"));
}

}  // namespace
}  // namespace lockstep::nn

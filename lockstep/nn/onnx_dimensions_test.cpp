// ONNX values of any number of dimensions, the batch any of them; constants computed from constants; shapes computed on
// the way; the operators of scikit-learn around a net.
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
using testing::outputs;
using testing::refusal_of;
using testing::shaped;

void set_text(onnx::NodeProto* node, const std::string& name, const std::string& value) {
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_s(value);
}

void set_list(onnx::NodeProto* node, const std::string& name, const std::vector<std::int64_t>& values) {
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  for (const std::int64_t value : values) attribute->add_ints(value);
}

onnx::NodeProto* along(onnx::NodeProto* node, std::int64_t axis) {
  Graph::set(node, "axis", axis);
  return node;
}

onnx::NodeProto* over(Graph& graph, const std::string& op, const std::string& from, std::vector<std::int64_t> axes,
                      const std::string& to) {
  auto* node = graph.node(op, {from}, to);
  set_list(node, "axes", axes);
  Graph::set(node, "keepdims", std::int64_t{0});
  return node;
}

// (x0, x1) and its tenfold as "a" and "b".
void two_members(Graph& graph) {
  graph.tensor("one", {}, {1});
  graph.tensor("ten", {}, {10});
  graph.node("Mul", {"x", "one"}, "a");
  graph.node("Mul", {"x", "ten"}, "b");
}

TEST(Onnx, members_of_an_ensemble_are_stacked_along_any_dimension) {
  for (const std::int64_t axis : {0, 1, 2}) {
    Graph graph;  // torch.stack([a, b], axis).sum(axis)
    two_members(graph);
    shaped(graph, "Unsqueeze", "a", {static_cast<float>(axis)}, "a3");
    shaped(graph, "Unsqueeze", "b", {static_cast<float>(axis)}, "b3");
    along(graph.node("Concat", {"a3", "b3"}, "both"), axis);
    over(graph, "ReduceMean", "both", {axis}, "mean");
    over(graph, "ReduceMax", "both", {axis}, "largest");
    over(graph, "ReduceProd", "both", {axis}, "product");
    along(graph.node("Concat", {"mean", "largest", "product"}, "y"), 1);
    EXPECT_THAT(outputs(read_onnx(graph.save()), {2, -4}), ElementsAre(11, -22, 20, -4, 40, 160)) << axis;
  }
  Graph batch;
  batch.node("Tanh", {"x"}, "t");
  over(batch, "ReduceSum", "t", {0}, "y");
  EXPECT_THAT(refusal_of(batch), AllOf(HasSubstr("(ReduceSum, opset 17)"), HasSubstr("each sample for itself")));
}

TEST(Onnx, values_of_three_dimensions_are_turned_selected_and_joined) {
  Graph graph;
  two_members(graph);
  shaped(graph, "Unsqueeze", "a", {1}, "a3");
  shaped(graph, "Unsqueeze", "b", {1}, "b3");
  along(graph.node("Concat", {"a3", "b3"}, "both"), 1);                      // [batch, 2, 2]: (x0, x1), (10 x0, 10 x1)
  set_list(graph.node("Transpose", {"both"}, "turned"), "perm", {2, 0, 1});  // [features, batch, member]
  graph.tensor("last", {}, {1});
  along(graph.node("Gather", {"turned", "last"}, "second"), 2);  // [features, batch]: 10 x
  graph.node("Transpose", {"second"}, "tens");
  graph.tensor("from", {1}, {-1}), graph.tensor("to", {1}, {-9}), graph.tensor("axes", {1}, {2}),
      graph.tensor("back", {1}, {-1});
  graph.node("Slice", {"both", "from", "to", "axes", "back"}, "reversed");
  graph.node("Flatten", {"reversed"}, "flat");  // x1, x0, 10 x1, 10 x0
  graph.tensor("pads", {6}, {0, 0, 1, 0, 0, 0}), graph.tensor("seven", {}, {7});
  graph.node("Pad", {"both", "pads", "seven"}, "padded");
  graph.node("Flatten", {"padded"}, "p");  // 7, x0, x1, 7, 10 x0, 10 x1
  graph.tensor("times", {2}, {1, 2});
  graph.node("Tile", {"x", "times"}, "twice");
  along(graph.node("Concat", {"tens", "flat", "p", "twice"}, "y"), 1);
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 2}),
              ElementsAre(10, 20, 2, 1, 20, 10, 7, 1, 2, 7, 10, 20, 1, 2, 1, 2));
}

TEST(Onnx, columns_are_gathered_and_set_as_pytorch_exports_them) {
  Graph graph;  // x[:, [1, 0, 1]]
  graph.tensor("list", {3, 1}, {1, 0, 1});
  graph.node("Transpose", {"x"}, "t");
  graph.node("GatherND", {"t", "list"}, "g");
  graph.node("Transpose", {"g"}, "y");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {3, 4}), ElementsAre(4, 3, 4));
  Graph across;
  across.tensor("list", {1, 1}, {0});
  across.node("GatherND", {"x", "list"}, "y");
  EXPECT_THAT(refusal_of(across),
              AllOf(HasSubstr("(GatherND, opset 17)"), HasSubstr("torch.index_select(x, 1, list)")));
  Graph set;  // y = zeros(batch, 3); y[:, 1] = x0; y[:, 2:] = x1
  set.tensor("zeros", {1, 3}, {0, 0, 0});
  set.tensor("middle", {1, 1}, {1}), set.tensor("end", {1, 1}, {2}), set.tensor("zero", {1}, {0}),
      set.tensor("one", {1}, {1});
  along(set.node("Gather", {"x", "zero"}, "x0"), 1);
  along(set.node("Gather", {"x", "one"}, "x1"), 1);
  along(set.node("ScatterElements", {"zeros", "middle", "x0"}, "s"), 1);
  set.node("Transpose", {"s"}, "st");
  set.node("Transpose", {"x1"}, "x1t");
  set.node("ScatterND", {"st", "end", "x1t"}, "yt");
  set.node("Transpose", {"yt"}, "y");
  EXPECT_THAT(outputs(read_onnx(set.save()), {3, 4}), ElementsAre(0, 3, 4));
}

TEST(Onnx, matrices_of_an_ensemble_and_of_each_sample_are_multiplied) {
  Graph ensemble;  // x @ w[2, 2, 1], then the members' sum
  ensemble.tensor("w", {2, 2, 1}, {1, 2, 3, 4});
  ensemble.node("MatMul", {"x", "w"}, "m");  // [2, batch, 1]
  over(ensemble, "ReduceSum", "m", {0}, "y");
  EXPECT_THAT(outputs(read_onnx(ensemble.save()), {1, 10}), ElementsAre(21 + 43));
  Graph outer;  // [batch, 2, 1] @ [batch, 1, 2], then times x
  shaped(outer, "Unsqueeze", "x", {2}, "column");
  shaped(outer, "Unsqueeze", "x", {1}, "row");
  outer.node("MatMul", {"column", "row"}, "square");
  outer.node("MatMul", {"square", "column"}, "p");
  shaped(outer, "Squeeze", "p", {2}, "y");
  EXPECT_THAT(outputs(read_onnx(outer.save()), {1, 2}), ElementsAre(5, 10));
  const auto einsum = [](const std::string& equation, std::vector<std::int64_t> shape,
                         std::vector<std::string> operands) {
    Graph graph;
    graph.tensor("w", shape, {1, 2, 3, 4, 5, 6, 7, 8});
    set_text(graph.node("Einsum", std::move(operands), "y"), "equation", equation);
    return graph;
  };
  EXPECT_THAT(outputs(read_onnx(einsum("bi,oi->bo", {4, 2}, {"x", "w"}).save()), {1, 10}), ElementsAre(21, 43, 65, 87));
  EXPECT_THAT(outputs(read_onnx(einsum("bi, kij, bj -> bk", {2, 2, 2}, {"x", "w", "x"}).save()), {1, 10}),
              ElementsAre(1 + 20 + 30 + 400, 5 + 60 + 70 + 800));
  EXPECT_THAT(refusal_of(einsum("bi,ci->bc", {4, 2}, {"x", "x"})), HasSubstr("the batch in one place"));
  EXPECT_THAT(refusal_of(einsum("...i,oi->...o", {4, 2}, {"x", "w"})), HasSubstr("a letter for each dimension"));
}

TEST(Onnx, rows_of_more_dimensions_are_normalised_each_for_itself) {
  Graph graph;
  two_members(graph);
  shaped(graph, "Unsqueeze", "a", {1}, "a3");
  shaped(graph, "Unsqueeze", "b", {1}, "b3");
  along(graph.node("Concat", {"a3", "b3"}, "both"), 1);
  along(graph.node("Softmax", {"both"}, "s"), -1);
  graph.node("Flatten", {"s"}, "y");
  const auto near = [](double a) { return DoubleNear(a, 1e-14); };
  const double p = 1 / (1 + std::exp(1.0)), q = 1 / (1 + std::exp(10.0));
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 2}), ElementsAre(near(p), near(1 - p), near(q), near(1 - q)));
  Graph groups;  // PyTorch's GroupNorm of 4 features in 2 groups
  groups.tensor("w", {2, 4}, {1, 0, 2, 0, 0, 1, 0, 4});
  groups.tensor("scale", {2}, {1, 2}), groups.tensor("shift", {2}, {0, 3});
  groups.node("MatMul", {"x", "w"}, "four");  // x0, x1, 2 x0, 4 x1
  shaped(groups, "Reshape", "four", {0, 2, -1}, "g");
  Graph::set(groups.node("InstanceNormalization", {"g", "scale", "shift"}, "n"), "epsilon", 0.0F);
  groups.node("Flatten", {"n"}, "y");
  EXPECT_THAT(outputs(read_onnx(groups.save()), {1, 2}), ElementsAre(near(-1), near(1), near(1), near(5)));
  Graph sums;
  sums.tensor("axis", {}, {1});
  sums.node("CumSum", {"x", "axis"}, "c");
  over(sums, "ReduceLogSumExp", "c", {1}, "l");
  shaped(sums, "Unsqueeze", "l", {1}, "l1");
  along(sums.node("Concat", {"c", "l1"}, "y"), 1);
  EXPECT_THAT(outputs(read_onnx(sums.save()), {1000, 1}),
              ElementsAre(1000, 1001, near(1001 + std::log1p(std::exp(-1.0)))));
}

TEST(Onnx, operands_of_more_dimensions_are_broadcast_to_each_other) {
  Graph graph;  // distances to three centres: ((x[:, None] - c) ** 2).sum(-1)
  graph.tensor("centres", {3, 2}, {0, 0, 1, 1, 0, 2});
  graph.tensor("five", {}, {5});
  shaped(graph, "Unsqueeze", "x", {1}, "x3");
  graph.node("Sub", {"x3", "centres"}, "d");
  graph.node("Mul", {"d", "d"}, "square");
  over(graph, "ReduceSum", "square", {2}, "r");
  graph.node("Less", {"r", "five"}, "near");
  graph.node("Where", {"near", "r", "five"}, "y");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 2}), ElementsAre(5, 1, 1));
}

TEST(Onnx, weights_may_be_computed_from_constants) {
  Graph graph;  // v * g / |v|, the softplus and a mask of it
  graph.tensor("v", {2, 2}, {3, 4, 0, 2}), graph.tensor("g", {2, 1}, {10, 1}), graph.tensor("zero", {}, {0});
  set_list(graph.node("ReduceL2", {"v"}, "norm"), "axes", {1});
  graph.node("Div", {"v", "norm"}, "unit");
  graph.node("Mul", {"unit", "g"}, "w");  // 6 8 / 0 1
  Graph::set(graph.node("Trilu", {"w"}, "upper"), "upper", std::int64_t{1});
  graph.node("MatMul", {"w", "upper"}, "product");  // 36 56 / 0 1
  graph.node("Greater", {"product", "zero"}, "mask");
  graph.node("Softplus", {"zero"}, "log2");
  graph.node("Where", {"mask", "product", "log2"}, "chosen");
  graph.node("MatMul", {"x", "chosen"}, "y");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 10}),
              ElementsAre(DoubleNear(36 + 10 * std::log(2.0), 1e-12), DoubleNear(66, 1e-12)));
  Graph fixed;  // f(x) - f(0)
  fixed.tensor("origin", {1, 2}, {0, 1}), fixed.tensor("w", {2, 1}, {2, 3}), fixed.tensor("b", {1}, {0.5F});
  fixed.node("Gemm", {"x", "w", "b"}, "f");
  fixed.node("Gemm", {"origin", "w", "b"}, "f0");
  fixed.node("Sub", {"f", "f0"}, "y");
  EXPECT_THAT(outputs(read_onnx(fixed.save()), {1, 2}), ElementsAre(5));
}

TEST(Onnx, parts_of_shapes_are_computed_with) {
  Graph graph;  // PyTorch's p.expand(x.shape[0], -1), and the number of features as a divisor
  graph.tensor("p", {1, 2}, {0.5F, 0.25F}), graph.tensor("open", {1}, {-1}), graph.tensor("ones", {2}, {1, 1});
  auto* rows = graph.node("Shape", {"x"}, "rows");
  Graph::set(rows, "start", std::int64_t{0});
  Graph::set(rows, "end", std::int64_t{1});
  along(graph.node("Concat", {"rows", "open"}, "asked"), 0);  // [batch, -1]
  graph.tensor("minus", {2}, {-1, -1});
  graph.node("Equal", {"asked", "minus"}, "left");
  graph.node("Where", {"left", "ones", "asked"}, "shape");  // the batch is not the -1 that stands for "as it is"
  graph.node("Expand", {"p", "shape"}, "wide");
  auto* columns = graph.node("Shape", {"x"}, "columns");
  Graph::set(columns, "start", std::int64_t{-1});
  set_list(graph.node("ReduceProd", {"columns"}, "count"), "axes", {0});
  Graph::set(graph.node("Cast", {"count"}, "divisor"), "to", std::int64_t{onnx::TensorProto::FLOAT});
  graph.node("CastLike", {"divisor", "x"}, "same");
  graph.node("Div", {"x", "same"}, "half");
  along(graph.node("Concat", {"half", "wide"}, "y"), 1);
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 10}), ElementsAre(0.5, 5, 0.5, 0.25));
  Graph rounding;
  rounding.tensor("short", {1}, {0})->set_data_type(onnx::TensorProto::BFLOAT16);
  auto* number = rounding.proto().mutable_graph()->mutable_initializer(0);
  number->set_raw_data(std::string(2, 0));
  rounding.node("CastLike", {"x", "short"}, "y");
  EXPECT_THAT(refusal_of(rounding), AllOf(HasSubstr("(CastLike, opset 17)"), HasSubstr("a rounding to bfloat16"),
                                          HasSubstr("export the net in float32")));
}

TEST(Onnx, numbers_of_other_types_are_named) {
  const auto refusal = [](int type) {
    Graph graph;
    graph.tensor("w", {3, 1}, {1, 2, 3})->set_data_type(type);
    graph.node("MatMul", {"x", "w"}, "y");
    return refusal_of(graph);
  };
  EXPECT_THAT(refusal(onnx::TensorProto::COMPLEX128),
              AllOf(HasSubstr("found numbers of type complex128, expected float16"), HasSubstr("and not quantised")));
  Graph quantised;
  quantised.tensor("w", {2, 1}, {1, 2}), quantised.tensor("scale", {}, {1});
  quantised.node("DequantizeLinear", {"w", "scale"}, "v");
  quantised.node("MatMul", {"x", "v"}, "y");
  EXPECT_THAT(refusal_of(quantised), AllOf(HasSubstr("(DequantizeLinear, opset 17)"), HasSubstr("and not quantised")));
  EXPECT_THAT(refusal(onnx::TensorProto::COMPLEX64), HasSubstr("complex64"));
  EXPECT_THAT(refusal(99), HasSubstr("ONNX type 99"));
}

TEST(Onnx, constants_expanded_to_the_batch_are_not_summed_over_it) {
  Graph graph;  // ones_like(x).sum(0) is the number of samples
  graph.tensor("one", {}, {1});
  graph.node("Shape", {"x"}, "shape");
  graph.node("Expand", {"one", "shape"}, "ones");
  over(graph, "ReduceSum", "ones", {0}, "count");
  graph.node("Div", {"x", "count"}, "y");
  EXPECT_THAT(refusal_of(graph), AllOf(HasSubstr("(ReduceSum, opset 17)"), HasSubstr("expanded to the batch")));
  Graph numbers;  // nor is the number of its numbers known
  numbers.tensor("one", {}, {1});
  numbers.node("Shape", {"x"}, "shape");
  numbers.node("Expand", {"one", "shape"}, "ones");
  numbers.node("Shape", {"ones"}, "again");
  set_list(numbers.node("ReduceProd", {"again"}, "count"), "axes", {0});
  numbers.node("Div", {"x", "count"}, "y");
  EXPECT_THAT(refusal_of(numbers), HasSubstr("the size of the batch as a number"));
}

TEST(Onnx, constants_of_more_dimensions_give_them_to_the_result) {
  for (const bool alone : {false, true}) {
    Graph graph;  // [2, batch] + [members, 1, 1], then the members' sum
    graph.tensor("c", {alone ? 1 : 2, 1, 1}, alone ? std::vector<float>{1} : std::vector<float>{1, 10});
    graph.node("Transpose", {"x"}, "turned");
    graph.node("Add", {"turned", "c"}, "each");
    over(graph, "ReduceSum", "each", {0}, "sum");
    graph.node("Transpose", {"sum"}, "y");
    EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 2}), alone ? ElementsAre(2, 3) : ElementsAre(13, 15));
  }
  Graph product;  // [batch, 1, 2] times [1, 1, 2, 1] is [1, batch, 1, 1]
  shaped(product, "Unsqueeze", "x", {1}, "row");
  product.tensor("w", {1, 1, 2, 1}, {1, 2});
  product.node("MatMul", {"row", "w"}, "m");
  over(product, "ReduceSum", "m", {1}, "y");
  EXPECT_THAT(refusal_of(product), HasSubstr("axis 1 of [1, batch, 1, 1], the batch itself"));
  Graph list;  // [batch] compared with [1, 3] is [1, 3] or nothing
  list.tensor("first", {}, {0}), list.tensor("edges", {1, 3}, {0, 1, 2});
  along(list.node("Gather", {"x", "first"}, "x0"), 1);
  list.node("Less", {"x0", "edges"}, "y");
  EXPECT_THAT(refusal_of(list), HasSubstr("a constant that differs along the batch"));
}

TEST(Onnx, a_cast_takes_the_type_of_the_other_value_alone) {
  Graph graph;
  shaped(graph, "Unsqueeze", "x", {1}, "row");
  graph.tensor("shape", {3}, {1, 3, 2});
  graph.node("Expand", {"row", "shape"}, "three");
  graph.node("CastLike", {"row", "three"}, "same");
  over(graph, "ReduceSum", "same", {1}, "sum");
  graph.tensor("c", {3, 1}, {1, 2, 3});
  graph.node("CastLike", {"c", "three"}, "factors");
  graph.node("Mul", {"row", "factors"}, "multiples");
  graph.node("Flatten", {"multiples"}, "flat");
  along(graph.node("Concat", {"sum", "flat"}, "y"), 1);
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 10}), ElementsAre(1, 10, 1, 10, 2, 20, 3, 30));
  Graph truths;  // truth values that were made numbers are numbers
  truths.tensor("zero", {}, {0});
  truths.node("Greater", {"x", "zero"}, "above");
  truths.node("Less", {"x", "zero"}, "below");
  Graph::set(truths.node("Cast", {"above"}, "number"), "to", std::int64_t{onnx::TensorProto::FLOAT});
  truths.node("CastLike", {"x", "number"}, "same");
  truths.node("Or", {"above", "below"}, "other");  // than 0
  truths.node("CastLike", {"x", "other"}, "truth");
  Graph::set(truths.node("Cast", {"truth"}, "one"), "to", std::int64_t{onnx::TensorProto::FLOAT});
  along(truths.node("Concat", {"same", "one"}, "y"), 1);
  EXPECT_THAT(outputs(read_onnx(truths.save()), {3, -4}), ElementsAre(3, -4, 1, 1));
}

TEST(Onnx, the_size_of_the_batch_is_no_place_among_features) {
  for (const bool first : {true, false}) {
    Graph graph;  // x[:, batch:] or x[:, :batch]
    graph.tensor("one", {1}, {1}), graph.tensor("zero", {1}, {0}), graph.tensor("end", {1}, {1e9F});
    auto* rows = graph.node("Shape", {"x"}, "rows");
    Graph::set(rows, "end", std::int64_t{1});
    graph.node("Slice", {"x", first ? "rows" : "zero", first ? "end" : "rows", "one"}, "y");
    EXPECT_THAT(refusal_of(graph), HasSubstr("a slice of as many parts as the batch"));
  }
  Graph listed;  // an output as one column, and what is computed from it
  listed.tensor("column", {2}, {-1, 1});
  listed.node("Reshape", {"x", "column"}, "y");
  EXPECT_THAT(outputs(read_onnx(listed.save()), {1, 2}), ElementsAre(1, 2));
  listed.node("Relu", {"y"}, "z");
  listed.proto().mutable_graph()->add_output()->set_name("z");
  EXPECT_THAT(refusal_of(listed), HasSubstr("a shape that does not keep the batch"));
}

TEST(Onnx, constants_without_numbers_are_refused_in_no_time) {
  const auto refused = [](const std::string& op, std::vector<std::int64_t> shape, std::vector<float> operand,
                          std::int64_t opset = 17) {
    Graph graph;
    graph.proto().mutable_opset_import(0)->set_version(opset);
    graph.tensor("empty", std::move(shape), {});
    graph.tensor("list", {static_cast<std::int64_t>(operand.size())}, operand);
    if (op == "Concat") {
      along(graph.node(op, {"empty", "empty"}, "y"), 1);
    } else if (op == "Transpose") {
      graph.node(op, {"empty"}, "y");
    } else {
      graph.node(op, {"empty", "list"}, "y");
    }
    return refusal_of(graph);
  };
  constexpr std::int64_t kVast = std::int64_t{1} << 50;
  EXPECT_THAT(refused("Pad", {2, 0}, {1, 1, 1, 1}), HasSubstr("nothing to put numbers around"));
  EXPECT_THAT(refused("Tile", {0, 1}, {1, 1e18F}), HasSubstr("at most 2^20"));
  for (const std::string op : {"Transpose", "ReduceSum", "Concat"}) {
    EXPECT_THAT(refused(op, {kVast, 0}, {1}), HasSubstr("a shape of no numbers with large extents")) << op;
  }
  Graph twice;  // cut off to nothing, then padded
  twice.proto().mutable_opset_import(0)->set_version(18);
  twice.tensor("pads", {4}, {-1, 0, -1, 1}), twice.tensor("axes", {2}, {1, 1});
  twice.node("Pad", {"x", "pads", "", "axes"}, "y");
  EXPECT_THAT(refusal_of(twice), HasSubstr("nothing to put numbers around"));
}

TEST(Onnx, updates_that_lack_the_batch_where_x_has_it_are_refused) {
  Graph graph;  // [1, 1, batch] into [3, batch]: the lists of indices have two dimensions
  graph.tensor("zeros", {3, 1}, {0, 0, 0}), graph.tensor("place", {1, 1, 1}, {1}), graph.tensor("first", {1}, {0});
  along(graph.node("Gather", {"x", "first"}, "column"), 1);
  graph.node("Transpose", {"column"}, "row");
  shaped(graph, "Unsqueeze", "row", {0}, "updates");
  graph.node("ScatterND", {"zeros", "place", "updates"}, "set");
  graph.node("Transpose", {"set"}, "y");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {7, 8}), ElementsAre(0, 7, 0));
  Graph rows;  // the batch among the lists
  rows.tensor("zeros", {3, 1}, {0, 0, 0}), rows.tensor("place", {1, 1}, {1});
  rows.tensor("first", {1}, {0});
  along(rows.node("Gather", {"x", "first"}, "column"), 1);
  rows.node("ScatterND", {"zeros", "place", "column"}, "y");
  EXPECT_THAT(refusal_of(rows), HasSubstr("the batch behind the dimensions of the indices"));
}

TEST(Onnx, powers_of_constants_have_the_type_of_their_base) {
  Graph graph;
  graph.tensor("base", {}, {0})->set_data_type(onnx::TensorProto::INT32);
  const std::int32_t two = 2;
  graph.proto().mutable_graph()->mutable_initializer(0)->set_raw_data(&two, sizeof two);
  graph.tensor("half", {}, {0.5F});
  graph.node("Pow", {"base", "half"}, "root");  // 1
  Graph::set(graph.node("Cast", {"root"}, "factor"), "to", std::int64_t{onnx::TensorProto::FLOAT});
  graph.node("Mul", {"x", "factor"}, "y");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {3, 4}), ElementsAre(3, 4));
}

TEST(Onnx, columns_are_set_in_each_sample_or_not_at_all) {
  for (const bool expanded : {true, false}) {
    Graph graph;  // x[:, 1] = 5, and x[0, 1] = 5
    graph.tensor("column", {1, 1}, {1}), graph.tensor("five", {1, 1}, {5}), graph.tensor("one", {1}, {1});
    Graph::set(graph.node("Shape", {"x"}, "rows"), "end", std::int64_t{1});
    along(graph.node("Concat", {"rows", "one"}, "shape"), 0);
    graph.node("Expand", {"five", "shape"}, "fives");
    along(graph.node("ScatterElements", {"x", "column", expanded ? "fives" : "five"}, "y"), 1);
    if (expanded) {
      EXPECT_THAT(outputs(read_onnx(graph.save()), {3, 4}), ElementsAre(3, 5));
    } else {
      EXPECT_THAT(refusal_of(graph), HasSubstr("updates of the first sample"));
    }
  }
}

TEST(Onnx, what_scikit_learn_puts_around_a_net_is_read) {
  const auto learned = [](Graph& graph, const std::string& op, std::vector<std::string> inputs, const std::string& to) {
    auto* node = graph.node(op, std::move(inputs), to);
    node->set_domain("ai.onnx.ml");
    return node;
  };
  const auto floats = [](onnx::NodeProto* node, const std::string& name, const std::vector<float>& values) {
    auto* attribute = node->add_attribute();
    attribute->set_name(name);
    for (const float value : values) attribute->add_floats(value);
  };
  Graph graph;
  graph.tensor("list", {1}, {1});
  set_text(learned(graph, "Normalizer", {"x"}, "n"), "norm", "L2");
  learned(graph, "ArrayFeatureExtractor", {"n", "list"}, "second");
  learned(graph, "FeatureVectorizer", {"second", "n"}, "three");
  auto* linear = learned(graph, "LinearRegressor", {"three"}, "y");
  floats(linear, "coefficients", {1, 10, 100, -1, 0, 0});
  floats(linear, "intercepts", {0.5F, 0});
  Graph::set(linear, "targets", std::int64_t{2});
  EXPECT_THAT(outputs(read_onnx(graph.save()), {3, 4}), ElementsAre(DoubleNear(0.8 + 6 + 80 + 0.5, 1e-13), -0.8));
  EXPECT_THAT(outputs(read_onnx(graph.save()), {0, 0}), ElementsAre(0.5, 0));
  Graph padded;
  auto* joined = learned(padded, "FeatureVectorizer", {"x"}, "y");
  set_list(joined, "inputdimensions", {3});
  EXPECT_THAT(refusal_of(padded), HasSubstr("inputdimensions that cut off or fill up"));
  Graph forest;
  auto* opset = forest.proto().add_opset_import();
  opset->set_domain("ai.onnx.ml");
  opset->set_version(3);
  learned(forest, "TreeEnsembleRegressor", {"x"}, "y");
  EXPECT_THAT(refusal_of(forest), AllOf(HasSubstr("node \"/y\" (TreeEnsembleRegressor, ai.onnx.ml opset 3)"),
                                        HasSubstr("export the net (MLPRegressor")));
}

// Embeddings, jnp.interp, and PyTorch's MultiheadAttention.
TEST(OnnxDimensions, refusals_of_integers_and_of_a_batch_joined_with_heads_say_what_to_write) {
  for (const bool cast : {true, false}) {
    Graph graph;
    graph.tensor("table", {5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    if (cast) Graph::set(graph.node("Cast", {"x"}, "index"), "to", std::int64_t{onnx::TensorProto::INT64});
    graph.node("Gather", {"table", cast ? "index" : "x"}, "y");
    EXPECT_THAT(refusal_of(graph), AllOf(HasSubstr(cast ? "(Cast, " : "(Gather, "), HasSubstr("one-hot features times"),
                                         HasSubstr("as a sum of relu")));
  }
  Graph graph;
  shaped(graph, "Reshape", "x", {-1, 2, 1}, "rows");
  auto* turned = graph.node("Transpose", {"rows"}, "turned");
  auto* order = turned->add_attribute();
  order->set_name("perm");
  for (const int axis : {1, 0, 2}) order->add_ints(axis);
  graph.tensor("w", {1, 4}, {1, 2, 3, 4});
  graph.node("MatMul", {"turned", "w"}, "q");
  shaped(graph, "Reshape", "q", {2, -1, 2}, "y");
  EXPECT_THAT(refusal_of(graph), AllOf(HasSubstr("a shape that joins the batch of [2, batch, 4] with other dimensions"),
                                       HasSubstr("F.scaled_dot_product_attention: export that with "
                                                 "torch.onnx.export(.., dynamo=False), or write it as softmax")));
}

}  // namespace
}  // namespace lockstep::nn

// Outputs that are labels, beside others that can be read: left out and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/nn/load.h"
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

// y = tanh(x), and z by an operator that is not read.
Graph with_unreadable(int type) {
  Graph graph;
  graph.node("Tanh", {"x"}, "y");
  graph.node("ArgMax", {"y"}, "largest");
  graph.node("Cast", {"largest"}, "z");
  auto* output = graph.proto().mutable_graph()->add_output();
  output->set_name("z");
  output->mutable_type()->mutable_tensor_type()->set_elem_type(type);
  return graph;
}

class ClassifierTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ClassifierTest, gives_its_probabilities) {
  const std::string name = std::string(LOCKSTEP_TEST_DATA) + "/exported/" + GetParam();
  const Model model = load(name + ".onnx");
  ASSERT_EQ(model.outputs.size(), 1u);
  EXPECT_THAT(model.provenance.left_out, ElementsAre(HasSubstr("label\" (")));
  const hdf5::File file = hdf5::File::open(name + ".samples.h5");
  const auto x = file.dataset("input").read<double>(), expected = file.dataset("output").read<double>();
  const std::size_t inputs = x.size() / 16, classes = expected.size() / 16;
  ASSERT_EQ(model.outputs[0].features.size(), classes);
  for (std::size_t i = 0; i < 16; ++i) {
    const std::vector<double> p = outputs(model, {x.begin() + static_cast<std::ptrdiff_t>(i * inputs),
                                                  x.begin() + static_cast<std::ptrdiff_t>((i + 1) * inputs)});
    // the file's weights are in float32: their roundings move the probabilities by some 1e-7
    for (std::size_t j = 0; j < classes; ++j) EXPECT_NEAR(p[j], expected[i * classes + j], 2e-6) << i << ", " << j;
  }
}
INSTANTIATE_TEST_SUITE_P(Tools, ClassifierTest,
                         ::testing::Values("sklearn_classifier", "sklearn_zipmap", "sklearn_logistic"),
                         [](const auto& info) { return std::string(info.param); });

TEST(OnnxLabels, are_left_out_where_another_output_can_be_read) {
  for (const int type : {onnx::TensorProto::INT64, onnx::TensorProto::STRING}) {
    const Model model = read_onnx(with_unreadable(type).save());
    ASSERT_EQ(model.outputs.size(), 1u);
    EXPECT_EQ(model.outputs[0].name, "y");
    EXPECT_THAT(model.provenance.left_out, ElementsAre(AllOf(HasSubstr("output \"z\" ("),
                                                             HasSubstr("): node \"/largest\" (ArgMax, opset 17): "))));
  }
  EXPECT_THAT(load(std::string(LOCKSTEP_TEST_DATA) + "/exported/sklearn_mlp.onnx").provenance.left_out, ElementsAre());
}

TEST(OnnxLabels, of_truth_values_are_read_as_ever) {
  Graph graph;
  graph.node("Tanh", {"x"}, "y");
  graph.node("Greater", {"x", "y"}, "z");
  auto* output = graph.proto().mutable_graph()->add_output();
  output->set_name("z");
  output->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BOOL);
  EXPECT_EQ(read_onnx(graph.save()).outputs.size(), 2u);
}

TEST(OnnxLabels, other_outputs_are_left_out_only_where_it_is_asked_for) {
  const Graph graph = with_unreadable(onnx::TensorProto::FLOAT);
  EXPECT_THAT(refusal_of(graph), AllOf(HasSubstr("node \"/largest\" (ArgMax"),
                                       HasSubstr("do without output \"z\": `lockstep import` leaves it out")));
  const Model model = read_onnx(graph.save(), UnreadableOutputs::leave_out);
  EXPECT_EQ(model.outputs.size(), 1u);
  EXPECT_THAT(model.provenance.left_out, ElementsAre(HasSubstr("output \"z\": node \"/largest\"")));
  ReadOptions options;
  options.unreadable_outputs = UnreadableOutputs::leave_out;
  EXPECT_EQ(load(graph.save(), options).outputs.size(), 1u);
}

TEST(OnnxLabels, alone_are_an_error) {
  Graph graph;
  graph.node("ArgMax", {"x"}, "y");
  graph.proto().mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::INT64);
  for (const auto unreadable : {UnreadableOutputs::refuse, UnreadableOutputs::leave_out}) {
    const std::string message = message_of([&] { read_onnx(graph.save(), unreadable); });
    EXPECT_THAT(message, AllOf(HasSubstr("(ArgMax, opset 17)"), HasSubstr("not supported here"),
                               HasSubstr("mark the largest instead, where integers are not what the net is to give: "
                                         "(g == g.amax(-1, keepdim=True))")));
    EXPECT_EQ(message.find("do without"), std::string::npos) << message;
  }
}

TEST(OnnxLabels, hide_no_damage) {
  for (const bool of_output : {true, false}) {
    Graph names = with_unreadable(onnx::TensorProto::INT64);
    auto* graph = names.proto().mutable_graph();
    if (of_output) {
      graph->mutable_node(2)->set_output(0, "z\xff");
      graph->mutable_output(1)->set_name("z\xff");
    } else {
      graph->mutable_node(1)->set_op_type("Arg\xff");
    }
    EXPECT_THAT(refusal_of(names), HasSubstr("a name that is not UTF-8"));
  }
  Graph graph = with_unreadable(onnx::TensorProto::INT64);
  graph.proto().mutable_graph()->mutable_node(2)->set_input(0, "nowhere");
  EXPECT_THAT(refusal_of(graph), HasSubstr("the value \"nowhere\", which nothing before it makes"));
}

}  // namespace
}  // namespace lockstep::nn

// Writing ONNX files: what comes back, by the file's own description and by its operators alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/onnx.h"
#include "lockstep/nn/table_model.h"
#include "lockstep/nn/testing/graph_models.h"
#include "lockstep/nn/testing/small_model.h"

namespace lockstep::nn {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::every_operation;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::random_net;
using testing::small_model;

constexpr const char* kPath = "written.onnx";
constexpr OnnxOptions kSingle{Precision::f32}, kDouble{Precision::f64};

onnx::ModelProto proto_of(const Model& model, const OnnxOptions& options = {}) {
  const std::vector<std::byte> bytes = to_onnx(model, options);
  onnx::ModelProto proto;
  EXPECT_TRUE(proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  return proto;
}

Model read(const onnx::ModelProto& proto) {
  const std::string bytes = proto.SerializeAsString();
  return read_onnx(std::as_bytes(std::span(bytes)), kPath);
}

Model again(const Model& model, const OnnxOptions& options = {}) { return read(proto_of(model, options)); }

// As another tool might hand the file on: what the operators say is all that is left.
Model by_operators(const Model& model, const OnnxOptions& options = {}) {
  onnx::ModelProto proto = proto_of(model, options);
  proto.clear_metadata_props();
  return read(proto);
}

std::vector<std::string> operators(const Model& model, const OnnxOptions& options = {}) {
  std::vector<std::string> types;
  const onnx::ModelProto proto = proto_of(model, options);
  for (const auto& node : proto.graph().node()) types.push_back(node.op_type());
  return types;
}

std::vector<std::string> node_names(const Model& model) {
  std::vector<std::string> names;
  for (const Node& node : model.nodes) names.push_back(node.name);
  return names;
}

// Scales among them, whose sums with 0.5 float32 does not hold otherwise.
std::vector<double> in_float32(std::vector<double> numbers) {
  for (double& number : numbers) number = static_cast<float>(number);
  return numbers;
}

Model stack_of(const Activation& activation) {
  graph::testing::Builder b;
  Mlp mlp;
  mlp.layers.push_back({4, 7, b.numbers(28), b.numbers(7), activation});
  mlp.layers.push_back({7, 1, b.numbers(7), b.numbers(1), {}});
  mlp.input_scaling = {b.numbers(4), in_float32(b.numbers(4, 1, 0.5))};
  mlp.output_scaling = {in_float32(b.numbers(1, 1, 0.5)), b.numbers(1)};
  return Model::from_mlp(mlp);
}

// All outputs of 37 samples.
std::vector<std::vector<double>> evaluated(const Model& model) {
  constexpr std::size_t kSamples = 37;
  std::mt19937 random(20261126);
  std::normal_distribution<double> normal;
  std::vector<std::vector<double>> x, y;
  std::vector<MatrixView<const double>> in;
  std::vector<MatrixView<double>> out;
  for (const Port& port : model.inputs) {
    x.emplace_back(kSamples * port.features.size());
    for (double& value : x.back()) value = normal(random);
  }
  for (const Port& port : model.outputs) y.emplace_back(kSamples * port.features.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    in.push_back(MatrixView<const double>::row_major(x[i].data(), kSamples, model.inputs[i].features.size()));
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    out.push_back(MatrixView<double>::row_major(y[i].data(), kSamples, model.outputs[i].features.size()));
  }
  NetPlan<double>::compile(model).evaluate(in, out);
  return y;
}

TEST(OnnxWrite, every_operation_comes_back_as_it_was) {
  Model model = every_operation();
  for (Node& node : model.nodes) {
    if (auto* standardise = std::get_if<Standardise>(&node.operation))
      standardise->scale = in_float32(standardise->scale);
  }
  for (const OnnxOptions& options : {kSingle, kDouble}) {
    const Model read = again(model, options);
    EXPECT_EQ(read.digest(), model.digest());
    EXPECT_EQ(node_names(read), node_names(model));
    EXPECT_EQ(read.weight_type, *options.precision == Precision::f32 ? WeightType::f32 : WeightType::f64);
  }
}

TEST(OnnxWrite, random_graphs_come_back_as_they_were) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Model model = random_net(seed);
    for (const OnnxOptions& options : {kSingle, kDouble}) {
      ASSERT_EQ(again(model, options).digest(), model.digest()) << "seed " << seed;
    }
  }
}

TEST(OnnxWrite, names_ranges_provenance_and_other_words_come_back) {
  const Model model = small_model(), read = again(model);
  EXPECT_EQ(read.digest(), model.digest());
  EXPECT_EQ(read.name, "small");
  EXPECT_EQ(node_names(read), node_names(model));
  ASSERT_EQ(read.inputs[0].features.size(), 2u);
  for (const auto& [found, expected] :
       {std::pair(read.inputs[0], model.inputs[0]), {read.outputs[0], model.outputs[0]}}) {
    for (std::size_t i = 0; i < expected.features.size(); ++i) {
      EXPECT_EQ(found.features[i].name, expected.features[i].name);
      EXPECT_EQ(found.features[i].unit, expected.features[i].unit);
      EXPECT_EQ(found.features[i].minimum, expected.features[i].minimum);
      EXPECT_EQ(found.features[i].maximum, expected.features[i].maximum);
    }
  }
  EXPECT_EQ(read.provenance.producer, "a test");
  EXPECT_EQ(read.provenance.licence, "CC0-1.0");
  EXPECT_EQ(read.provenance.format, "ONNX, opset 17");
  EXPECT_THAT(read.metadata, ElementsAre(std::pair("note", "two words")));
}

TEST(OnnxWrite, calls_of_nets_with_training_ranges_come_back) {
  Equations system;
  system.equations = {{"x", "drag(x, k * x) - wind(t)", ""}};
  system.parameters = {{"k", 0.1}};
  Model drag = stack_of({ActivationKind::tanh});
  drag = Model::from_mlp({.layers = {{2, 1, {0.5, -1}, {0.25}, {ActivationKind::tanh, 0}}}});
  drag.inputs[0].features = {{"a", "m", -1, 2}, {"b", "", -INFINITY, 3}};
  system.nets = {{"drag", drag},
                 {"wind", table_model({.at = {0, 1, 3}, .outputs = {Feature{}}, .values = {1, 2, 0.3}})}};
  const Model model = equations(system), read = again(model, kDouble);
  EXPECT_EQ(read.digest(), model.digest());
  EXPECT_EQ(read.metadata, model.metadata);
  ASSERT_EQ(read.calls.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.calls[i].net, model.calls[i].net);
    EXPECT_EQ(read.calls[i].name, model.calls[i].name);
    const Port &found = read.calls[i].inputs.at(0), &expected = model.calls[i].inputs.at(0);
    EXPECT_EQ(found.value, expected.value);
    EXPECT_EQ(found.features.at(0).name, expected.features.at(0).name);
    EXPECT_EQ(found.features.back().minimum, expected.features.back().minimum);
    EXPECT_EQ(found.features.back().maximum, expected.features.back().maximum);
  }
}

TEST(OnnxWrite, a_stack_in_float32_is_read_to_the_same_net_by_its_operators_alone) {
  for (const Activation& activation : all_activations()) {
    const Model model = stack_of(activation), read = by_operators(model);
    EXPECT_EQ(read.digest(), model.digest()) << to_string(activation);
    EXPECT_TRUE(is_stack(read)) << to_string(activation);
  }
  for (const double alpha : {0.2, 1.0 / 3, 0.0, -0.5}) {
    const Model model = stack_of({ActivationKind::leaky_relu, alpha});
    const Mlp read = to_mlp(by_operators(model));
    // The attribute is float32, and read as the shortest text that stands for it.
    EXPECT_EQ(static_cast<float>(read.layers[0].activation.alpha), static_cast<float>(alpha));
    EXPECT_EQ(again(model).digest(), model.digest());
    EXPECT_EQ(by_operators(model, kDouble).digest(), model.digest());  // there it is a tensor
  }
}

// Each output is made of at most 32 operations, each within 4 units of 2^-53 of terms of at most 64: 1e-12. Constants
// that no input reaches are no net's output for the reader, which refuses a division by 0, too.
TEST(OnnxWrite, operators_alone_say_the_same_but_for_roundings) {
  Model model = every_operation();
  for (Node& node : model.nodes) {
    if (auto* constant = std::get_if<Constant>(&node.operation)) std::ranges::replace(constant->values, 0.0, 0.25);
  }
  std::erase_if(model.outputs, [&](const Port& port) {
    const auto node = std::ranges::find(model.nodes, port.value, &Node::name);
    if (node == model.nodes.end()) return false;
    return std::ranges::all_of(node->inputs, [&](const std::string& input) {
      const auto from = std::ranges::find(model.nodes, input, &Node::name);
      return from != model.nodes.end() && std::holds_alternative<Constant>(from->operation);
    });
  });
  const auto expected = evaluated(model), found = evaluated(by_operators(model, kDouble));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t port = 0; port < expected.size(); ++port) {
    for (std::size_t i = 0; i < expected[port].size(); ++i) {
      if (found[port][i] == expected[port][i]) continue;
      if (std::isnan(found[port][i]) && std::isnan(expected[port][i])) continue;
      EXPECT_NEAR(found[port][i], expected[port][i], 1e-12 * std::max(1.0, std::fabs(expected[port][i]) / 64))
          << model.outputs[port].value << ", " << i;
    }
  }
}

TEST(OnnxWrite, a_graph_that_another_tool_changed_is_read_by_its_operators) {
  onnx::ModelProto proto = proto_of(small_model());
  onnx::TensorProto& bias = *std::ranges::find(*proto.mutable_graph()->mutable_initializer(), "layers.1.bias",
                                               [](const auto& tensor) { return tensor.name(); });
  const float changed = 3;
  bias.set_raw_data(std::string(reinterpret_cast<const char*>(&changed), sizeof changed));
  Model expected = small_model();
  std::get<Dense>(std::ranges::find(expected.nodes, "layers.1", &Node::name)->operation).bias = {3};
  EXPECT_EQ(read(proto).digest(), expected.digest());  // same layout: written so, it is a net of ours

  proto.mutable_graph()->mutable_node(0)->set_name("renamed");
  const Model read_again = read(proto);
  EXPECT_EQ(read_again.digest(), expected.digest());
  EXPECT_EQ(read_again.inputs[0].features[1].unit, "K");
  EXPECT_EQ(read_again.inputs[0].features[1].maximum, 400);

  proto.mutable_graph()->mutable_node(0)->set_op_type("Add");  // x + shift: the description is of another net
  EXPECT_EQ(to_mlp(read(proto)).input_scaling.shift, (std::vector<double>{-1, -2}));
}

TEST(OnnxWrite, a_layer_is_one_operator_and_normalisation_two) {
  EXPECT_THAT(operators(small_model()), ElementsAre("Sub", "Div", "Gemm", "Tanh", "Gemm", "Mul", "Add"));
  const onnx::ModelProto proto = proto_of(small_model());
  const auto& input = proto.graph().input(0).type().tensor_type();
  EXPECT_EQ(input.elem_type(), onnx::TensorProto::FLOAT);
  EXPECT_EQ(input.shape().dim(0).dim_param(), "batch");
  EXPECT_EQ(input.shape().dim(1).dim_value(), 2);
  EXPECT_EQ(proto.graph().input(0).doc_string(), "pressure [Pa], temperature [K]");
  EXPECT_EQ(proto.graph().output(0).name(), "y");
  EXPECT_EQ(proto.graph().node(2).name(), "layers.0");
  EXPECT_EQ(proto.graph().node(2).input(1), "layers.0.weight");
  EXPECT_EQ(proto.producer_name(), "lockstep");
  EXPECT_EQ(proto.ir_version(), 8);
  EXPECT_EQ(proto.opset_import(0).version(), 17);
}

TEST(OnnxWrite, a_condition_that_only_a_choice_reads_stays_bool) {
  graph::testing::Builder b;
  const std::size_t x = b.input(3), y = b.input(3);
  const std::size_t less = b.add(Binary{BinaryKind::less}, {x, y});
  b.output(b.add(Select{}, {less, x, y}));
  EXPECT_THAT(operators(testing::named(b.graph)), ElementsAre("Less", "Where"));
  b.output(less);
  EXPECT_THAT(operators(testing::named(b.graph)), ElementsAre("Less", "Cast", "Where"));
}

TEST(OnnxWrite, infinite_bounds_come_back) {
  graph::testing::Builder b;
  const std::size_t x = b.input(3);
  for (const auto& [low, high] : {std::pair(-INFINITY, INFINITY), {-INFINITY, -INFINITY}, {INFINITY, INFINITY}}) {
    b.output(b.add(Clip{low, high}, {x}));
    b.output(b.add(DeadZone{low, high, 0.5}, {x}));
  }
  const Model model = testing::named(b.graph);
  for (const OnnxOptions& options : {kSingle, kDouble}) EXPECT_EQ(again(model, options).digest(), model.digest());
}

TEST(OnnxWrite, nodes_that_no_output_needs_come_back_without_having_been_written) {
  graph::testing::Builder b;
  const std::size_t x = b.input(3), layer = b.add(b.dense(3, 2), {x});
  const std::size_t unused = b.add(Columns{{1}}, {layer});
  b.add(Binary{BinaryKind::less}, {unused, unused});
  b.add(b.dense(3, 1), {b.add(Unary{}, {x})});  // with numbers
  b.output(b.add(Columns{{0}}, {layer}));
  const Model model = testing::named(b.graph);
  EXPECT_THAT(operators(model), ElementsAre("Gemm", "Neg", "Gemm", "Gather"));
  EXPECT_EQ(again(model).digest(), model.digest());
}

TEST(OnnxWrite, in_float64_attributes_of_float32_cost_no_digits) {
  EXPECT_THAT(operators(stack_of({ActivationKind::selu}), kDouble), Not(Contains("Selu")));
  graph::testing::Builder b;
  const std::size_t x = b.input(3);
  b.output(b.add(LayerNormalise{b.numbers(3), b.numbers(3), 1e-5}, {x}));
  EXPECT_THAT(operators(testing::named(b.graph), kSingle), ElementsAre("LayerNormalization"));
  EXPECT_THAT(operators(testing::named(b.graph), kDouble), Not(Contains("LayerNormalization")));
  std::get<LayerNormalise>(b.graph.nodes.back().operation).epsilon = 0x1p-17;
  EXPECT_THAT(operators(testing::named(b.graph), kDouble), ElementsAre("LayerNormalization"));
}

TEST(OnnxWrite, the_weights_decide_the_precision) {
  Model model = small_model();
  EXPECT_EQ(onnx_precision(model), Precision::f32);
  std::get<Standardise>(model.nodes[0].operation).shift[0] = 0.1;  // rounded, as NetPlan<float> does
  EXPECT_EQ(onnx_precision(model), Precision::f32);
  EXPECT_EQ(std::get<Standardise>(again(model).nodes[0].operation).shift[0], double{0.1F});
  std::get<Dense>(model.nodes[1].operation).weights[0] = 0.1;
  EXPECT_EQ(onnx_precision(model), Precision::f64);
  EXPECT_EQ(again(model).digest(), model.digest());
  Equations system;
  system.equations = {{"x", "-0.1 * x", ""}};
  EXPECT_EQ(onnx_precision(equations(system)), Precision::f64);
  system.equations = {{"x", "-0.5 * x", ""}};
  EXPECT_EQ(onnx_precision(equations(system)), Precision::f32);
}

TEST(OnnxWrite, names_that_clash_in_onnx_are_kept) {
  graph::testing::Builder b;
  const std::size_t x = b.input(2), layer = b.add(b.dense(2, 2), {x});
  const std::size_t half = b.add(Constant{{0.5}}, {}), silu = b.add(Activate{{ActivationKind::silu}}, {layer});
  const std::size_t product = b.add(Binary{BinaryKind::multiply}, {silu, half});
  for (const std::size_t value : {x, layer, layer, product, half}) b.output(value);
  Model model = testing::named(b.graph);
  const std::vector<std::string> nodes{"a", "a.weight", "batch/Shape", "number.0.5"};
  const std::vector<std::string> ports{"in0", "a.weight", "y", "a", "axis.features"};
  std::map<std::string, std::string> names{{"in0", "in0"}};
  for (std::size_t i = 0; i < nodes.size(); ++i) names[model.nodes[i].name] = nodes[i];
  for (Node& node : model.nodes) {
    node.name = names[node.name];
    for (std::string& input : node.inputs) input = names[input];
  }
  for (std::size_t i = 0; i < ports.size(); ++i)
    model.outputs[i] = {ports[i], names[model.outputs[i].value], model.outputs[i].features};
  const Model read = again(model);
  EXPECT_EQ(read.digest(), model.digest());
  EXPECT_EQ(node_names(read), nodes);
  for (std::size_t i = 0; i < ports.size(); ++i) EXPECT_EQ(read.outputs[i].name, ports[i]);
  std::set<std::string> values;
  const onnx::ModelProto proto = proto_of(model);
  for (const auto& tensor : proto.graph().initializer()) EXPECT_TRUE(values.insert(tensor.name()).second);
  for (const auto& node : proto.graph().node()) EXPECT_TRUE(values.insert(node.output(0)).second);
  EXPECT_FALSE(values.contains("in0"));
}

TEST(OnnxWrite, what_cannot_be_written_is_named) {
  Model model = small_model();
  std::get<Dense>(model.nodes[1].operation).weights[1] = 1e300;
  EXPECT_THAT(message_of([&] { to_onnx(model, kSingle); }, ErrorKind::model),
              AllOf(HasSubstr("layers.0[1]: found 1e+300"), HasSubstr("float64")));
  EXPECT_EQ(again(model).digest(), model.digest());
  model = small_model();
  std::get<Standardise>(model.nodes[0].operation).scale[1] = 1e-60;
  EXPECT_THAT(message_of([&] { to_onnx(model, kSingle); }, ErrorKind::model),
              HasSubstr("input_scaling.scale[1]: found 1e-60, expected a number that is not 0 in float32"));
  const std::vector<std::string& (*)(Model&)> texts{
      [](Model& m) -> std::string& { return m.name; },
      [](Model& m) -> std::string& { return m.inputs[0].features[0].unit; },
      [](Model& m) -> std::string& { return m.provenance.licence; },
      [](Model& m) -> std::string& { return m.metadata["note"]; },
      [](Model& m) -> std::string& { return m.outputs[0].name; },
  };
  for (const auto text : texts) {
    model = small_model();
    text(model) = "\xc3(";
    EXPECT_THAT(message_of([&] { to_onnx(model); }, ErrorKind::model), HasSubstr("UTF-8"));
  }
  model = small_model();
  model.outputs[0].value = "nowhere";
  EXPECT_THAT(message_of([&] { to_onnx(model); }, ErrorKind::model), HasSubstr("nowhere"));
}

TEST(OnnxWrite, files_appear_whole_and_not_over_others) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("lockstep-onnx-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::filesystem::path path = folder / "net.onnx";
  write_onnx(path, small_model());
  EXPECT_EQ(detect_format(path), ModelFormat::onnx);
  EXPECT_EQ(load(path).digest(), small_model().digest());
  EXPECT_THAT(message_of([&] { write_onnx(path, small_model()); }, ErrorKind::file), HasSubstr("net.onnx"));
  write_onnx(path, stack_of({ActivationKind::sin}), Existing::replace);
  EXPECT_EQ(load(path).digest(), stack_of({ActivationKind::sin}).digest());
  EXPECT_THAT(message_of([&] { write_onnx(folder / "none" / "net.onnx", small_model()); }, ErrorKind::file),
              HasSubstr("none"));
  const auto files = std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  EXPECT_EQ(files, 1);
  std::filesystem::remove_all(folder);
}

TEST(OnnxWrite, damaged_descriptions_are_read_by_the_operators_or_refused) {
  const std::string whole = proto_of(small_model()).SerializeAsString();
  std::mt19937 random(20261126);
  std::size_t readable = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    onnx::ModelProto proto;
    ASSERT_TRUE(proto.ParseFromString(whole));
    auto* entry = proto.mutable_metadata_props(static_cast<int>(random() % 3));
    std::string text = entry->value();
    text[random() % text.size()] = static_cast<char>(32 + random() % 95);
    if (trial % 3 == 0) text.resize(random() % text.size());
    entry->set_value(text);
    const std::string message = message_of([&] {
      EXPECT_EQ(read(proto).digest(), small_model().digest());  // the operators say it, whatever the words
      ++readable;
    });
    EXPECT_TRUE(message == "no error" || message.find("range") != std::string::npos ||
                message.find("second time") != std::string::npos)
        << message;
  }
  EXPECT_GT(readable, 2800u);
}

}  // namespace
}  // namespace lockstep::nn

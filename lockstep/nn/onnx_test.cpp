// ONNX graphs: the same net as from safetensors, every spelling of a layer, and words for what cannot be read.
#include "lockstep/nn/onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "lockstep/core/hdf5.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/testing/float32_bound.h"
#include "lockstep/nn/testing/message_of.h"

namespace lockstep::nn {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::float32_bound;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Pointwise;

std::filesystem::path data(const std::string& name) { return std::filesystem::path(LOCKSTEP_TEST_DATA) / name; }

// Builds a graph of one input "x" [batch, 2] and one output "y", node by node.
class Graph {
 public:
  Graph() {
    model_.set_ir_version(8);
    model_.set_producer_name("a test");
    auto* opset = model_.add_opset_import();
    opset->set_version(17);
    auto* type = add_input("x")->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    type->mutable_shape()->add_dim()->set_dim_param("batch");
    type->mutable_shape()->add_dim()->set_dim_value(2);
    model_.mutable_graph()->add_output()->set_name("y");
  }

  onnx::ModelProto& proto() { return model_; }
  onnx::ValueInfoProto* add_input(const std::string& name) {
    auto* input = model_.mutable_graph()->add_input();
    input->set_name(name);
    return input;
  }
  onnx::TensorProto* tensor(const std::string& name, std::vector<std::int64_t> shape, std::vector<float> values) {
    auto* tensor = model_.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t extent : shape) tensor->add_dims(extent);
    tensor->set_raw_data(std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
    return tensor;
  }
  onnx::NodeProto* node(const std::string& op, std::vector<std::string> inputs, const std::string& output) {
    auto* node = model_.mutable_graph()->add_node();
    node->set_op_type(op);
    node->set_name("/" + output);
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    return node;
  }
  static void set(onnx::NodeProto* node, const std::string& name, float value) {
    auto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_f(value);
  }
  static void set(onnx::NodeProto* node, const std::string& name, std::int64_t value) {
    auto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_i(value);
  }
  // 2 -> 3 -> 1 with `between` from "h" to "a".
  template <class Between>
  Graph& around(Between between) {
    tensor("w0", {2, 3}, {1, 2, 3, -1, 0.5F, 0.25F});
    tensor("b0", {3}, {0.5F, -0.5F, 0.125F});
    tensor("w1", {3, 1}, {1, -1, 2});
    node("MatMul", {"x", "w0"}, "m");
    node("Add", {"b0", "m"}, "h");
    between(*this);
    node("MatMul", {"a", "w1"}, "y");
    return *this;
  }

  std::filesystem::path save(const std::string& name = "graph.onnx") const {
    const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / name;
    std::ofstream(path, std::ios::binary) << model_.SerializeAsString();
    return path;
  }

 private:
  onnx::ModelProto model_;
};

Activation activation_of(const Graph& graph) { return to_mlp(read_onnx(graph.save())).layers.at(0).activation; }
std::string refusal_of(const Graph& graph) {
  return message_of([&] { read_onnx(graph.save()); });
}

std::vector<double> outputs(const Model& model, std::vector<double> x) {
  std::vector<double> y(model.outputs[0].features.size());
  const auto plan = NetPlan<double>::compile(model);
  plan.evaluate(MatrixView<const double>{x.data(), 1, x.size(), static_cast<std::ptrdiff_t>(x.size()), 1},
                MatrixView<double>::row_major(y.data(), 1, y.size()));
  return y;
}

class SameNetTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SameNetTest, onnx_and_safetensors_hold_the_same_net) {
  const std::string name = GetParam();
  EXPECT_EQ(load(data(name + ".onnx")).weight_type, WeightType::f32);
  const Mlp a = to_mlp(load(data(name + ".onnx"))), b = to_mlp(load(data(name + ".safetensors")));
  EXPECT_EQ(a.input_scaling.shift, b.input_scaling.shift);
  EXPECT_EQ(a.input_scaling.scale, b.input_scaling.scale);
  EXPECT_EQ(a.output_scaling.shift, b.output_scaling.shift);
  EXPECT_EQ(a.output_scaling.scale, b.output_scaling.scale);
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    EXPECT_EQ(a.layers[i].weights, b.layers[i].weights);
    EXPECT_EQ(a.layers[i].bias, b.layers[i].bias);
    EXPECT_EQ(a.layers[i].activation, b.layers[i].activation);
  }
}
INSTANTIATE_TEST_SUITE_P(Models, SameNetTest,
                         ::testing::Values("lorenz_tanh_3_100_3", "peaks_relu_2_20_5_1", "ocean_relu_32_128_128_31",
                                           "qlknn_7_11_tanh_10_133x5_8"));

class ExportedTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ExportedTest, gives_the_exporting_tools_answers) {
  const std::string name = GetParam();
  const Model model = read_onnx(data("exported/" + name + ".onnx"));
  const hdf5::File file = hdf5::File::open(data("exported/" + name + ".samples.h5"));
  const auto x = file.dataset("input").read<double>(), expected = file.dataset("output").read<double>();
  const std::size_t inputs = file.dataset("input").shape()[1], width = file.dataset("output").shape()[1];
  ASSERT_EQ(x.size(), 16 * inputs);
  for (std::size_t i = 0; i < 16; ++i) {
    const std::vector<double> row(x.begin() + static_cast<std::ptrdiff_t>(i * inputs),
                                  x.begin() + static_cast<std::ptrdiff_t>((i + 1) * inputs));
    const std::vector<double> y = outputs(model, row), bound = float32_bound(to_mlp(model), row);
    for (std::size_t j = 0; j < width; ++j) EXPECT_NEAR(y[j], expected[i * width + j], bound[j]) << i << ", " << j;
  }
}
INSTANTIATE_TEST_SUITE_P(Tools, ExportedTest,
                         ::testing::Values("torch_gelu_legacy", "torch_gelu_dynamo", "torch_scaled_legacy",
                                           "torch_scaled_dynamo", "torch_batchnorm_legacy", "torch_batchnorm_dynamo",
                                           "sklearn_mlp"),
                         [](const auto& info) { return std::string(info.param); });

class ExportedGraphTest : public ::testing::TestWithParam<const char*> {};

// All ports of all samples, evaluated in T.
template <class T>
std::vector<std::vector<T>> evaluate_ports(const Model& model, const hdf5::Group& inputs) {
  constexpr std::size_t kSamples = 16;
  std::vector<std::vector<T>> x, y;
  std::vector<MatrixView<const T>> in;
  std::vector<MatrixView<T>> out;
  for (const Port& port : model.inputs) x.push_back(inputs.dataset(port.name).read<T>());
  for (const Port& port : model.outputs) y.emplace_back(kSamples * port.features.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    in.push_back(MatrixView<const T>::row_major(x[i].data(), kSamples, model.inputs[i].features.size()));
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    out.push_back(MatrixView<T>::row_major(y[i].data(), kSamples, model.outputs[i].features.size()));
  }
  NetPlan<T>::compile(model).evaluate(in, out);
  return y;
}

// In float64 the tool computed with the same float32 weights, so that only roundings in float64 separate the answers:
// fewer than 1,000 operations a number, each within 2 ulp, of terms not above 10 times the largest output. In float32
// our error may be that of ONNX Runtime a few times over, whose sums run in another order; it is counted by its worst
// number, in parts of the port's largest output, and never below one ulp of that.
TEST_P(ExportedGraphTest, gives_the_exporting_tools_and_onnx_runtimes_answers) {
  const std::string name = std::string("graph_") + GetParam();
  const Model model = read_onnx(data("exported/" + name + ".onnx"));
  const hdf5::File file = hdf5::File::open(data("exported/" + name + ".graph.h5"));
  const auto f64 = evaluate_ports<double>(model, file.group("inputs"));
  const auto f32 = evaluate_ports<float>(model, file.group("inputs"));
  std::vector<std::vector<double>> exact;
  std::vector<double> largest;
  double runtime_error = 0x1p-23;
  for (std::size_t p = 0; p < model.outputs.size(); ++p) {
    const std::string& port = model.outputs[p].name;
    exact.push_back(file.group("outputs_f64").dataset(port).read<double>());
    const auto runtime = file.group("outputs_f32").dataset(port).read<double>();
    ASSERT_EQ(exact[p].size(), f64[p].size()) << port;
    largest.push_back(0);
    for (const double value : exact[p]) largest[p] = std::max(largest[p], std::fabs(value));
    for (std::size_t i = 0; i < runtime.size(); ++i) {
      runtime_error = std::max(runtime_error, std::fabs(runtime[i] - exact[p][i]) / largest[p]);
    }
  }
  for (std::size_t p = 0; p < model.outputs.size(); ++p) {
    for (std::size_t i = 0; i < exact[p].size(); ++i) {
      EXPECT_NEAR(f64[p][i], exact[p][i], 1000 * 2 * 0x1p-52 * 10 * largest[p]) << model.outputs[p].name << ", " << i;
      EXPECT_NEAR(f32[p][i], exact[p][i], 4 * runtime_error * largest[p]) << model.outputs[p].name << ", " << i;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Tools, ExportedGraphTest,
                         ::testing::Values("residual_opset13", "residual_dynamo", "concatenated_opset9",
                                           "concatenated_dynamo", "ports_opset11", "ports_dynamo", "normalised_opset12",
                                           "normalised_opset17", "normalised_dynamo", "mixture_opset14",
                                           "mixture_dynamo", "physics_opset18", "physics_dynamo", "qlknn_7_11"),
                         [](const auto& info) { return std::string(info.param); });

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

TEST(Onnx, scaling_before_and_after_stays_as_it_is) {
  Graph graph;
  graph.tensor("mean", {2}, {1, 2});
  graph.tensor("deviation", {1, 2}, {3, 4});
  graph.tensor("w", {2, 1}, {5, 6});
  graph.tensor("scale", {1}, {7});
  graph.tensor("shift", {}, {8});
  graph.node("Sub", {"x", "mean"}, "s");
  graph.node("Div", {"s", "deviation"}, "d");
  graph.node("MatMul", {"d", "w"}, "m");
  graph.node("Mul", {"m", "scale"}, "n");
  graph.node("Add", {"n", "shift"}, "y");
  const Model model = read_onnx(graph.save());
  const Mlp mlp = to_mlp(model);
  EXPECT_THAT(mlp.input_scaling.shift, ElementsAre(1, 2));
  EXPECT_THAT(mlp.input_scaling.scale, ElementsAre(3, 4));
  EXPECT_THAT(mlp.output_scaling.scale, ElementsAre(7));
  EXPECT_THAT(mlp.output_scaling.shift, ElementsAre(8));
  EXPECT_THAT(model.provenance.notes, ElementsAre());
}

TEST(Onnx, other_scalings_go_into_the_weights_and_are_told) {
  Graph graph;
  graph.tensor("factor", {2}, {2, 4});
  graph.tensor("gamma", {3}, {1, 2, 3});
  graph.tensor("beta", {3}, {0.5F, 0, -0.5F});
  graph.tensor("mean", {3}, {0.25F, 0, 1});
  graph.tensor("variance", {3}, {0.25F, 1, 4});
  graph.tensor("w0", {2, 3}, {1, 2, 3, 4, 5, 6});
  graph.tensor("w1", {3, 1}, {1, -1, 2});
  graph.node("Mul", {"x", "factor"}, "f");
  graph.node("MatMul", {"f", "w0"}, "h");
  auto* norm = graph.node("BatchNormalization", {"h", "gamma", "beta", "mean", "variance"}, "n");
  Graph::set(norm, "epsilon", 0.0F);
  graph.node("Relu", {"n"}, "a");
  graph.node("MatMul", {"a", "w1"}, "y");
  const Model model = read_onnx(graph.save());
  // h = [2 x0 + 16 x1, 4 x0 + 20 x1, 6 x0 + 24 x1] at x = (1, 1): 18, 24, 30; normalised: 36, 48, 43
  EXPECT_THAT(outputs(model, {1, 1}), ElementsAre(DoubleNear(36 - 48 + 2 * 43, 1e-12)));
  ASSERT_EQ(model.provenance.notes.size(), 2u);
  EXPECT_THAT(model.provenance.notes[0], AllOf(HasSubstr("\"/f\" (Mul, opset 17)"), HasSubstr("into the weights of")));
}

TEST(Onnx, numbers_in_every_storage) {
  const std::vector<float> values{1, -2, 0.5F, 3};
  const auto weights_of = [&](auto fill) {
    Graph graph;
    auto* tensor = graph.proto().mutable_graph()->add_initializer();
    tensor->set_name("w");
    tensor->add_dims(2);
    tensor->add_dims(2);
    fill(*tensor);
    graph.node("MatMul", {"x", "w"}, "y");
    return to_mlp(read_onnx(graph.save())).layers.at(0).weights;
  };
  const auto expected = ElementsAre(1, 0.5, -2, 3);  // [output][input]
  EXPECT_THAT(weights_of([&](onnx::TensorProto& t) {
                t.set_data_type(onnx::TensorProto::FLOAT);
                for (const float value : values) t.add_float_data(value);
              }),
              expected);
  EXPECT_THAT(weights_of([&](onnx::TensorProto& t) {
                t.set_data_type(onnx::TensorProto::DOUBLE);
                for (const float value : values) t.add_double_data(value);
              }),
              expected);
  EXPECT_THAT(weights_of([&](onnx::TensorProto& t) {
                t.set_data_type(onnx::TensorProto::FLOAT16);
                for (const int bits : {0x3c00, 0xc000, 0x3800, 0x4200}) t.add_int32_data(bits);
              }),
              expected);
  EXPECT_THAT(weights_of([&](onnx::TensorProto& t) {
                t.set_data_type(onnx::TensorProto::BFLOAT16);
                for (const int bits : {0x3f80, 0xc000, 0x3f00, 0x4040}) t.add_int32_data(bits);
              }),
              expected);
  EXPECT_THAT(weights_of([&](onnx::TensorProto& t) {
                std::ofstream(std::filesystem::path(::testing::TempDir()) / "graph.data", std::ios::binary)
                    << "12345678"
                    << std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
                t.set_data_type(onnx::TensorProto::FLOAT);
                t.set_data_location(onnx::TensorProto::EXTERNAL);
                for (const auto& [key, value] : {std::pair("location", "graph.data"), std::pair("offset", "8")}) {
                  auto* entry = t.add_external_data();
                  entry->set_key(key);
                  entry->set_value(value);
                }
              }),
              expected);
}

TEST(Onnx, external_data_stays_in_its_folder_and_within_its_file) {
  const auto refused = [](const std::string& location, const std::string& offset) {
    Graph graph;
    auto* tensor = graph.proto().mutable_graph()->add_initializer();
    tensor->set_name("w");
    tensor->add_dims(2);
    tensor->add_dims(2);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair<std::string, std::string>("location", location), {"offset", offset}}) {
      auto* entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    graph.node("MatMul", {"x", "w"}, "y");
    return refusal_of(graph);
  };
  const std::filesystem::path folder(::testing::TempDir());
  std::ofstream(folder / "short.data", std::ios::binary) << "12345678";
  std::error_code ignored;
  std::filesystem::remove(folder / "link.data", ignored);
  std::filesystem::create_symlink(folder / "short.data", folder / "link.data");
  EXPECT_THAT(refused("../secret", "0"), HasSubstr("the model's own folder"));
  EXPECT_THAT(refused("/etc/passwd", "0"), HasSubstr("the model's own folder"));
  EXPECT_THAT(refused("..", "0"), HasSubstr("the model's own folder"));
  EXPECT_THAT(refused("link.data", "0"), HasSubstr("no regular file"));
  EXPECT_THAT(refused("missing.data", "0"), HasSubstr("missing.data"));
  EXPECT_THAT(refused("short.data", "0"), HasSubstr("a range within its 8 bytes"));
  EXPECT_THAT(refused("short.data", "18446744073709551615"), HasSubstr("a range within its 8 bytes"));
  EXPECT_THAT(refused("short.data", "-1"), HasSubstr("a whole number of bytes"));
}

TEST(Onnx, what_is_not_known_is_named) {
  Graph unknown;
  unknown.around([](Graph& g) { g.node("Hardmax", {"h"}, "a"); });
  EXPECT_THAT(refusal_of(unknown), AllOf(HasSubstr("(Hardmax, opset 17)"), HasSubstr("not supported here")));
  Graph foreign;
  foreign.around([](Graph& g) { g.node("Tanh", {"h"}, "a")->set_domain("com.example"); });
  EXPECT_THAT(refusal_of(foreign), HasSubstr("the domain \"com.example\""));
  Graph across;
  across.around([](Graph& g) { Graph::set(g.node("Softmax", {"h"}, "a"), "axis", std::int64_t{0}); });
  EXPECT_THAT(refusal_of(across), AllOf(HasSubstr("axis 0 of [batch, features]"), HasSubstr("each sample for itself")));
  Graph turned;
  turned.around([](Graph& g) {
    g.node("Transpose", {"h"}, "t");
    g.node("Tanh", {"t"}, "a");
  });
  EXPECT_THAT(refusal_of(turned), HasSubstr("batch and features exchanged"));
  Graph old;
  old.around([](Graph& g) { g.node("Tanh", {"h"}, "a"); }).proto().mutable_opset_import(0)->set_version(6);
  EXPECT_THAT(refusal_of(old), AllOf(HasSubstr("opset 6"), HasSubstr("opset_version=17")));
}

TEST(Onnx, shapes_computed_on_the_way_keep_the_batch) {
  Graph graph;  // PyTorch's x.view(x.size(0), -1), its shape put together from pieces
  graph.tensor("zero", {}, {0});
  graph.tensor("open", {1}, {-1});
  graph.tensor("w", {2, 1}, {3, 4});
  graph.node("Shape", {"x"}, "s");
  graph.node("Gather", {"s", "zero"}, "size");
  graph.node("Unsqueeze", {"size"}, "sizes");
  Graph::set(graph.node("Concat", {"sizes", "open"}, "shape"), "axis", std::int64_t{0});
  graph.node("Reshape", {"x", "shape"}, "r");
  graph.node("MatMul", {"r", "w"}, "y");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 2}), ElementsAre(11));
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

// Fills the axes or the shape of a node in the way of opset 13 and later.
onnx::NodeProto* shaped(Graph& graph, const std::string& op, const std::string& from, std::vector<float> numbers,
                        const std::string& to) {
  graph.tensor(to + "_numbers", {static_cast<std::int64_t>(numbers.size())}, numbers);
  return graph.node(op, {from, to + "_numbers"}, to);
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
  EXPECT_THAT(refused([&](Graph& g) { column(g), g.node("Add", {"c", "x"}, "y"); }), HasSubstr("operands of other"));
  EXPECT_THAT(refused([&](Graph& g) { column(g), g.node("Add", {"c", "two"}, "y"); }), HasSubstr("or one number"));
  EXPECT_THAT(refused([&](Graph& g) { column(g), g.node("MatMul", {"c", "w"}, "y"); }), HasSubstr("[batch, 2, 1]"));
  EXPECT_THAT(refused([&](Graph& g) { column(g), g.node("Softmax", {"c"}, "y"); }), HasSubstr("[batch, 2, 1]"));
  EXPECT_THAT(refused([&](Graph& g) { column(g), g.node("Tanh", {"c"}, "y"); }), HasSubstr("an output of more than"));
  EXPECT_THAT(refused([&](Graph& g) { column(g), shaped(g, "Squeeze", "c", {1}, "y"); }), HasSubstr("more than two"));
  EXPECT_THAT(refused([&](Graph& g) { shaped(g, "Unsqueeze", "x", {0}, "y"); }), HasSubstr("Unsqueeze"));
  EXPECT_THAT(refused([&](Graph& g) { shaped(g, "Reshape", "x", {-1, 2, 2}, "y"); }), HasSubstr("keep the batch"));
}

TEST(Onnx, small_files_cannot_ask_for_all_memory) {
  Graph doubled;
  std::string last = "x";
  for (int i = 0; i < 40; ++i) {
    const std::string next = i == 39 ? "y" : "d" + std::to_string(i);
    Graph::set(doubled.node("Concat", {last, last}, next), "axis", std::int64_t{1});
    last = next;
  }
  EXPECT_THAT(refusal_of(doubled), HasSubstr("features, expected at most 2^20"));
  Graph constants;
  constants.tensor("c0", {2}, {1, 2});
  for (int i = 0; i < 40; ++i) {
    const std::string from = "c" + std::to_string(i);
    Graph::set(constants.node("Concat", {from, from}, "c" + std::to_string(i + 1)), "axis", std::int64_t{0});
  }
  EXPECT_THAT(refusal_of(constants), HasSubstr("expected at most 2^2"));
  Graph wide;
  wide.proto()
      .mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(1)
      ->set_dim_value(std::int64_t{1} << 50);
  wide.node("Relu", {"x"}, "y");
  EXPECT_THAT(refusal_of(wide), HasSubstr("input \"x\""));
}

TEST(Onnx, damaged_files_are_errors) {
  Graph order;
  order.node("Relu", {"later"}, "y");
  EXPECT_THAT(refusal_of(order), HasSubstr("the value \"later\", which nothing before it makes"));
  Graph shape;
  shape.tensor("w", {2, 1000000}, {1, 2});
  EXPECT_THAT(refusal_of(shape), HasSubstr("found 8 bytes, expected 8000000"));
  Graph huge;
  huge.tensor("w", {std::int64_t{1} << 40, std::int64_t{1} << 40}, {1});
  EXPECT_THAT(refusal_of(huge), HasSubstr("more numbers than memory holds"));
  Graph nan;
  nan.tensor("w", {2, 1}, {1, std::nanf("")});
  EXPECT_THAT(refusal_of(nan), AllOf(HasSubstr("initializer \"w\""), HasSubstr("nan")));
  Graph widths;
  widths.tensor("w", {3, 1}, {1, 2, 3});
  widths.node("MatMul", {"x", "w"}, "y");
  EXPECT_THAT(refusal_of(widths), AllOf(HasSubstr("input \"x\""), HasSubstr("found 2 features, expected 3")));
  const std::string whole = Graph().around([](Graph& g) { g.node("Tanh", {"h"}, "a"); }).proto().SerializeAsString();
  for (std::size_t length = 1; length < whole.size(); length += 7) {  // any cut: an error, never a crash
    const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "cut.onnx";
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    EXPECT_NE(message_of([&] { read_onnx(path); }), "no error") << length;
  }
}

}  // namespace
}  // namespace lockstep::nn

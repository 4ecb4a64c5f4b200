// ONNX files: the same net as from safetensors, the answers of the tools that wrote them, damage and limits.
#include "lockstep/nn/onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "lockstep/core/hdf5.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/safetensors.h"
#include "lockstep/nn/testing/float32_bound.h"
#include "lockstep/nn/testing/onnx_graph.h"

namespace lockstep::nn {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::float32_bound;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::filesystem::path data(const std::string& name) { return std::filesystem::path(LOCKSTEP_TEST_DATA) / name; }

using Graph = testing::OnnxGraph;
using testing::outputs;
using testing::refusal_of;

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

TEST(Onnx, ports_of_a_stack_keep_their_names_in_every_format) {
  const auto named = [](const std::string& input, const std::string& output) {
    Graph graph;
    graph.proto().mutable_graph()->mutable_input(0)->set_name(input);
    graph.proto().mutable_graph()->mutable_output(0)->set_name(output);
    graph.tensor("w", {2, 1}, {5, 6});
    graph.node("Gemm", {input, "w"}, "h");
    graph.node("Tanh", {"h"}, output);
    return read_onnx(graph.save());
  };
  const Model model = named("temperature", "flux");
  ASSERT_TRUE(is_stack(model));
  const std::filesystem::path file = testing::own_folder() / "named.h5";
  write_hdf5_model(file, model, Existing::replace);
  for (const Model& one : {model, read_hdf5_model(file), read_safetensors(to_safetensors(model), "copy")}) {
    EXPECT_EQ(one.inputs[0].name, "temperature") << one.provenance.format;
    EXPECT_EQ(one.outputs[0].name, "flux") << one.provenance.format;
    EXPECT_EQ(one.metadata, model.metadata) << one.provenance.format;
    EXPECT_EQ(one.digest(), model.digest());
  }
  EXPECT_EQ(NetPlan<float>::compile(model).inputs()[0].name, "temperature");
  EXPECT_EQ(named("layers.0", "layers.0.activation").inputs[0].name, "x");  // a layer has the name
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

// x = 300 +- 1 less 300, in float32: the sums of the layer are of numbers near 1, not of 300 times the weights.
TEST(Onnx, terms_before_the_first_layer_cost_no_digits) {
  const std::vector<float> w{1.37F, 0.2F, 0.51F, 0.7F};
  using Build = std::function<void(Graph&)>;
  const Build mul_add = [](Graph& g) { g.node("Mul", {"x", "k"}, "a"), g.node("Add", {"a", "c"}, "n"); };
  const Build negative = [](Graph& g) { g.node("Mul", {"x", "less"}, "a"), g.node("Add", {"a", "more"}, "n"); };
  const Build div_sub = [](Graph& g) { g.node("Div", {"x", "half"}, "a"), g.node("Sub", {"a", "twice"}, "n"); };
  const Build normalised = [](Graph& g) {
    Graph::set(g.node("BatchNormalization", {"x", "k", "zeros", "means", "k"}, "n"), "epsilon", 0.0F);
  };
  for (const auto& [build, factor] : {std::pair(mul_add, 1.0), {negative, -2.0}, {div_sub, 2.0}, {normalised, 1.0}}) {
    Graph graph;
    graph.tensor("w", {2, 2}, w), graph.tensor("k", {2}, {1, 1}), graph.tensor("c", {2}, {-300, -300});
    graph.tensor("less", {1}, {-2}), graph.tensor("more", {2}, {600, 600}), graph.tensor("half", {}, {0.5F});
    graph.tensor("twice", {2}, {600, 600}), graph.tensor("zeros", {2}, {0, 0}), graph.tensor("means", {2}, {300, 300});
    build(graph);
    graph.node("Gemm", {"n", "w"}, "y");
    const Model model = read_onnx(graph.save());
    ASSERT_TRUE(is_stack(model));
    EXPECT_THAT(to_mlp(model).input_scaling.shift, ElementsAre(300, 300));
    EXPECT_THAT(model.provenance.notes, ::testing::Each(HasSubstr("went into the scaling of the inputs")));
    EXPECT_EQ(to_mlp(read_safetensors(to_safetensors(model), "copy")).input_scaling.shift.size(), 2u);
    std::mt19937 random(1);
    std::uniform_real_distribution<float> near(299, 301);
    const auto plan = NetPlan<float>::compile(model);
    for (int i = 0; i < 100; ++i) {
      const std::vector<float> x{near(random), near(random)};
      std::vector<float> y(2);
      plan.evaluate(MatrixView<const float>::row_major(x.data(), 1, 2), MatrixView<float>::row_major(y.data(), 1, 2));
      for (std::size_t j = 0; j < 2; ++j) {
        const double exact = factor * ((double{x[0]} - 300) * w[j] + (double{x[1]} - 300) * w[2 + j]);
        EXPECT_NEAR(y[j], exact, std::fabs(factor) * 2.5e-7);
      }
    }
  }
}

// The shift of x * 2 - 600.1 is 300.05, which float32 holds to 1.2e-5.
TEST(Onnx, what_a_shift_loses_to_float32_goes_into_the_bias) {
  Graph graph;
  graph.tensor("w", {2, 1}, {1, 0}), graph.tensor("k", {1}, {2}), graph.tensor("c", {1}, {-600.1F});
  graph.node("Mul", {"x", "k"}, "a");
  graph.node("Add", {"a", "c"}, "n");
  graph.node("Gemm", {"n", "w"}, "y");
  const Mlp mlp = to_mlp(read_onnx(graph.save()));
  const double exact = double{600.1F} / 2, shift = mlp.input_scaling.shift[0];
  EXPECT_EQ(shift, static_cast<float>(exact));
  EXPECT_EQ(mlp.layers[0].bias[0], 2 * (shift - exact));
}

TEST(Onnx, a_scaling_that_float32_does_not_hold_goes_into_the_weights) {
  Graph graph;  // a feature times 0
  graph.tensor("w", {2, 1}, {1, 2}), graph.tensor("k", {2}, {0, 1}), graph.tensor("c", {2}, {3, -300});
  graph.node("Mul", {"x", "k"}, "a");
  graph.node("Add", {"a", "c"}, "n");
  graph.node("Gemm", {"n", "w"}, "y");
  const Model model = read_onnx(graph.save());
  EXPECT_TRUE(to_mlp(model).input_scaling.shift.empty());
  EXPECT_THAT(outputs(model, {7, 301}), ElementsAre(5));
}

TEST(Onnx, terms_before_and_after_a_product_add_up) {
  Graph graph;  // Keras' Rescaling and Dense: (2 x + 1) W + b
  graph.tensor("factor", {}, {2});
  graph.tensor("term", {}, {1});
  graph.tensor("w", {2, 1}, {5, 6});
  graph.tensor("b", {1}, {100});
  graph.node("Mul", {"x", "factor"}, "f");
  graph.node("Add", {"f", "term"}, "t");
  graph.node("MatMul", {"t", "w"}, "m");
  graph.node("Add", {"m", "b"}, "y");
  EXPECT_THAT(outputs(read_onnx(graph.save()), {1, 2}), ElementsAre(145));
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
                std::ofstream(testing::own_folder() / "graph.data", std::ios::binary)
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
  const std::filesystem::path& folder = testing::own_folder();
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
  constants.node("Add", {"x", "c40"}, "y");
  EXPECT_THAT(refusal_of(constants), HasSubstr("expected at most 2^2"));
  Graph filled;  // one number becomes one a feature
  filled.tensor("two", {}, {2});
  filled.proto()
      .mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(1)
      ->set_dim_value(std::int64_t{1} << 20);
  for (int i = 0; i < 200; ++i) {
    const std::string from = i == 0 ? "x" : "f" + std::to_string(i), to = i == 199 ? "y" : "f" + std::to_string(i + 1);
    filled.node("Add", {from, "two"}, to);
  }
  EXPECT_THAT(refusal_of(filled), HasSubstr("expected at most 2^27"));
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
  shape.node("MatMul", {"x", "w"}, "y");
  EXPECT_THAT(refusal_of(shape), HasSubstr("found 8 bytes, expected 8000000"));
  Graph huge;
  huge.tensor("w", {std::int64_t{1} << 40, std::int64_t{1} << 40}, {1});
  huge.node("MatMul", {"x", "w"}, "y");
  EXPECT_THAT(refusal_of(huge), HasSubstr("more numbers than memory holds"));
  Graph nan;
  nan.tensor("w", {2, 1}, {1, std::nanf("")});
  nan.node("MatMul", {"x", "w"}, "y");
  EXPECT_THAT(refusal_of(nan), AllOf(HasSubstr("initializer \"w\""), HasSubstr("nan")));
  Graph widths;
  widths.tensor("w", {3, 1}, {1, 2, 3});
  widths.node("MatMul", {"x", "w"}, "y");
  EXPECT_THAT(refusal_of(widths), AllOf(HasSubstr("input \"x\""), HasSubstr("found 2 features, expected 3")));
  const std::string whole = Graph().around([](Graph& g) { g.node("Tanh", {"h"}, "a"); }).proto().SerializeAsString();
  for (std::size_t length = 1; length < whole.size(); length += 7) {  // any cut: an error, never a crash
    const std::filesystem::path path = testing::own_folder() / "cut.onnx";
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    EXPECT_NE(message_of([&] { read_onnx(path); }), "no error") << length;
  }
}

}  // namespace
}  // namespace lockstep::nn

#include "lockstep/nn/hdf5_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <limits>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/nn/safetensors.h"
#include "lockstep/nn/testing/small_model.h"

namespace lockstep::nn {
namespace {

using hdf5::File;
using hdf5::Group;
using ::testing::HasSubstr;
using testing::small_model;

class Hdf5ModelTest : public ::testing::Test {
 protected:
  Hdf5ModelTest()
      : path_(::testing::TempDir() + "/lockstep-" + std::to_string(::getpid()) + "-" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".h5") {}
  ~Hdf5ModelTest() override { std::filesystem::remove(path_); }

  // A model file made by hand, as a Python user would: 2 -> 3 tanh -> 1, edited before it is closed.
  struct Parts {
    hdf5::Shape weight0 = {3, 2}, bias0 = {3}, weight1 = {1, 3};
    std::string activation0 = "tanh";
    std::vector<double> values = std::vector<double>(6, 0.5);
    std::function<void(File&)> more = [](File&) {};
  };
  std::string reading(const Parts& parts) {
    {
      File file = File::create(path_, Existing::replace);
      file.set_attribute("lockstep_model", 1);
      Group layers = file.create_group("layers");
      Group first = layers.create_group("0"), second = layers.create_group("1");
      const auto fill = [&](Group& group, const char* name, const hdf5::Shape& shape) {
        hdf5::Dataset dataset = group.create_dataset<double>(name, shape);
        dataset.write<double>(std::span(parts.values).first(dataset.size()));
      };
      fill(first, "weight", parts.weight0);
      fill(first, "bias", parts.bias0);
      fill(second, "weight", parts.weight1);
      if (!parts.activation0.empty()) first.set_attribute("activation", parts.activation0);
      second.set_attribute("activation", "identity");
      parts.more(file);
      file.publish();
    }
    return message_of([&] { read_hdf5_model(path_); });
  }

  std::string path_;
};

TEST_F(Hdf5ModelTest, what_is_written_is_read_again) {
  Model model = small_model();
  model.inputs[0].name = model.nodes[0].inputs[0] = "state";
  model.inputs[0].features[0].minimum = -std::numeric_limits<double>::infinity();
  std::get<Rescale>(model.nodes[4].operation).scale[0] = -0.1;  // neither positive nor a float32
  model.provenance.attribution = "G\u00f6ttingen";
  write_hdf5_model(path_, model);
  const Model again = read_hdf5_model(path_);
  EXPECT_EQ(again.digest(), model.digest());
  EXPECT_EQ(again.name, "small");
  EXPECT_EQ(again.inputs[0].name, "state");
  EXPECT_EQ(again.inputs[0].features[0].name, "pressure");
  EXPECT_EQ(again.inputs[0].features[0].unit, "Pa");
  EXPECT_EQ(again.inputs[0].features[0].minimum, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(again.inputs[0].features[0].maximum, 1e5);
  EXPECT_EQ(again.inputs[0].features[1].minimum, 200);
  EXPECT_EQ(again.outputs[0].features[0].unit, "W m-2");
  EXPECT_EQ(again.provenance.producer, "a test");
  EXPECT_EQ(again.provenance.licence, "CC0-1.0");
  EXPECT_EQ(again.provenance.attribution, "G\u00f6ttingen");
  EXPECT_EQ(again.provenance.format, "lockstep HDF5");
  EXPECT_EQ(again.metadata, model.metadata);
  EXPECT_EQ(again.nodes[1].name, "layers.0");
  EXPECT_EQ(again.weight_type, WeightType::f32);
}

TEST_F(Hdf5ModelTest, real_nets_pass_from_safetensors_unchanged) {
  for (const char* name : {"lorenz_tanh_3_100_3", "qlknn_7_11_tanh_10_133x5_8"}) {
    const Model original =
        read_safetensors(std::filesystem::path(LOCKSTEP_TEST_DATA) / (std::string(name) + ".safetensors"));
    write_hdf5_model(path_, original, Existing::replace);
    const Model again = read_hdf5_model(path_);
    EXPECT_EQ(again.digest(), original.digest());
    EXPECT_EQ(again.nodes[1].name, original.nodes[1].name);
    EXPECT_EQ(again.inputs[0].features[0].name, original.inputs[0].features[0].name);
    EXPECT_EQ(again.provenance.licence, original.provenance.licence);
    EXPECT_EQ(to_safetensors(again).size(), to_safetensors(original).size());
  }
}

TEST_F(Hdf5ModelTest, a_layer_without_a_bias_has_none_in_files_either) {
  Mlp mlp;
  mlp.layers.push_back({1, 2, {1, 2}, {0, 0}, {ActivationKind::tanh}, false});
  mlp.layers.push_back({2, 1, {3, 4}, {0}, {}});
  const Model model = Model::from_mlp(mlp);
  write_hdf5_model(path_, model);
  Model graph = model;  // a sum with the input: no stack
  graph.nodes.push_back({"sum", Binary{BinaryKind::add}, {graph.nodes.back().name, "x"}});
  graph.outputs[0].value = "sum";
  const Model of_stack = read_hdf5_model(path_), of_safetensors = read_safetensors(to_safetensors(model), "bytes");
  write_hdf5_model(path_, graph, Existing::replace);
  for (const Model& again : {of_stack, of_safetensors, read_hdf5_model(path_)}) {
    EXPECT_FALSE(std::get<Dense>(again.nodes[0].operation).has_bias);
    EXPECT_EQ(std::get<Dense>(again.nodes[0].operation).bias, std::vector<double>(2));
    EXPECT_TRUE(std::get<Dense>(again.nodes[2].operation).has_bias);  // zero, and there
  }
}

TEST_F(Hdf5ModelTest, an_existing_file_is_refused_unless_told) {
  write_hdf5_model(path_, small_model());
  EXPECT_THAT(message_of([&] { write_hdf5_model(path_, small_model()); }), HasSubstr("found a file of that name"));
  Model other = small_model();
  other.name = "other";
  write_hdf5_model(path_, other, Existing::replace);
  EXPECT_EQ(read_hdf5_model(path_).name, "other");
}

TEST_F(Hdf5ModelTest, a_file_made_by_hand_needs_little) {
  EXPECT_EQ(reading({}), "no error");
  const Model model = read_hdf5_model(path_);
  EXPECT_EQ(to_mlp(model).layers[0].activation.kind, ActivationKind::tanh);
  EXPECT_EQ(to_mlp(model).layers[1].bias, std::vector<double>{0});  // none in the file
  EXPECT_EQ(model.weight_type, WeightType::f64);
}

TEST_F(Hdf5ModelTest, unfitting_layers_are_named) {
  EXPECT_EQ(reading({.weight1 = {1, 2}}), path_ +
                                              ":/layers/1/weight: found 2 inputs (shape [1, 2]), expected 3, "
                                              "the outputs of the layer before it");
  EXPECT_THAT(reading({.weight1 = {3, 1}}), HasSubstr("transpose it: weights are stored [outputs, inputs]"));
  EXPECT_THAT(reading({.weight0 = {6}}), HasSubstr("/layers/0/weight: found shape [6], expected [outputs, inputs]"));
  EXPECT_THAT(reading({.bias0 = {2}}), HasSubstr("/layers/0/bias: found shape [2], expected [3], one for each output"));
  EXPECT_THAT(reading({.activation0 = ""}), HasSubstr("/layers/0: found no attribute \"activation\""));
  EXPECT_THAT(reading({.activation0 = "tnah"}), HasSubstr("/layers/0@activation: found \"tnah\", expected one of"));
  EXPECT_THAT(reading({.values = {1, 2, 3, NAN, 5, 6}}),
              HasSubstr(path_ + ": layers.0.weight[1][1]: found nan, expected a finite number"));
}

TEST_F(Hdf5ModelTest, unknown_members_are_never_skipped) {
  EXPECT_THAT(reading({.more = [](File& file) { file.create_group("layer"); }}),
              HasSubstr(":/: found \"layer\", expected one of layers, inputs, outputs, provenance, metadata"));
  EXPECT_THAT(reading({.more = [](File& file) { file.create_dataset<double>("weight", {2}); }}),
              HasSubstr(":/: found \"weight\", expected none"));
  EXPECT_THAT(
      reading({.more = [](File& file) { file.group("layers").group("1").create_dataset<double>("biass", {1}); }}),
      HasSubstr("/layers/1: found \"biass\", expected one of weight, bias; did you mean \"bias\""));
  EXPECT_THAT(reading({.more = [](File& file) { file.create_group("inputs").create_dataset<double>("minimun", {2}); }}),
              HasSubstr("did you mean \"minimum\""));
  EXPECT_THAT(reading({.more = [](File& file) { file.group("layers").create_group("3"); }}),
              HasSubstr("/layers: found 3 groups but none \"2\""));
}

TEST_F(Hdf5ModelTest, ports_must_fit_the_layers) {
  const auto input = [&](const char* name, std::size_t count) {
    return reading({.more = [=](File& file) {
      const std::vector<double> values(count, 1);
      file.create_group("inputs").create_dataset<double>(name, {count}).write<double>(values);
    }});
  };
  EXPECT_EQ(input("minimum", 2), "no error");
  EXPECT_THAT(input("minimum", 3), HasSubstr("/inputs/minimum: found shape [3], expected [2], one for each feature"));
  EXPECT_THAT(input("shift", 2), HasSubstr("/inputs: found shift without scale, expected both or neither"));
  EXPECT_THAT(input("scale", 2), HasSubstr("/inputs: found scale without shift"));
  EXPECT_THAT(input("unit", 2), HasSubstr("/inputs/unit: found float64, expected strings"));
}

TEST_F(Hdf5ModelTest, numbers_changed_after_writing_are_noticed) {
  write_hdf5_model(path_, small_model());
  {
    File file = File::open(path_, File::Access::update);
    hdf5::Dataset bias = file.dataset("layers/1/bias");
    bias.write<double>(std::vector<double>{3});
  }
  EXPECT_THAT(message_of([&] { read_hdf5_model(path_); }), HasSubstr("/@digest: found " + small_model().digest()));
}

TEST_F(Hdf5ModelTest, other_files_and_later_versions_are_refused) {
  EXPECT_THAT(message_of([&] { read_hdf5_model(path_); }), HasSubstr("found no such file"));
  {
    File file = File::create(path_);
    file.publish();
  }
  EXPECT_THAT(message_of([&] { read_hdf5_model(path_); }), HasSubstr("found no attribute \"lockstep_model\""));
  {
    File file = File::create(path_, Existing::replace);
    file.set_attribute("lockstep_model", 4);
    file.publish();
  }
  EXPECT_THAT(
      message_of([&] { read_hdf5_model(path_); }),
      HasSubstr("@lockstep_model: found format version 4, expected version 1 to 3; read it with a newer Lockstep"));
}

TEST_F(Hdf5ModelTest, every_truncation_is_an_error) {
  write_hdf5_model(path_, small_model());
  const std::uintmax_t size = std::filesystem::file_size(path_);
  for (std::uintmax_t cut = 1; cut < size; cut += 97) {
    write_hdf5_model(path_, small_model(), Existing::replace);
    std::filesystem::resize_file(path_, size - cut);
    EXPECT_NE(message_of([&] { read_hdf5_model(path_); }), "no error") << size - cut;
  }
}

// Every operation, between two ports in and three out.
Model every_operation() {
  Model model;
  model.name = "every";
  model.inputs = {{"x", "", {{"speed", "m s-1", 0, 10}, {}, {}}}, {"z", "", {{}}}};
  const auto add = [&](std::string name, Operation operation, std::vector<std::string> inputs) {
    model.nodes.push_back({std::move(name), std::move(operation), std::move(inputs)});
  };
  add("dense", Dense{3, 2, {1, 2, 3, 4, 5, 0.1}, {7, 8}}, {"x"});
  add("activate", Activate{{ActivationKind::leaky_relu, 0.2}}, {"dense"});
  add("standardise", Standardise{{1, 2}, {3, 4}}, {"activate"});
  add("rescale", Rescale{{1, 2}, {3, 4}}, {"standardise"});
  add("constant", Constant{{0.5, -std::numeric_limits<double>::infinity()}}, {});
  add("joined", Concatenate{}, {"rescale", "z", "constant"});
  add("columns", Columns{{4, 0, 0}}, {"joined"});
  add("unary", Unary{UnaryKind::erf}, {"columns"});
  add("clip", Clip{0, std::numeric_limits<double>::infinity()}, {"unary"});
  add("dead_zone", DeadZone{-1, 2, 0.5}, {"clip"});
  add("binary", Binary{BinaryKind::modulo}, {"dead_zone", "x"});
  add("choose", Choose{{1, 0, 1}}, {"binary", "z"});
  add("softmax", Softmax{SoftmaxKind::logarithm}, {"choose"});
  add("reduce", Reduce{ReduceKind::mean}, {"softmax"});
  add("normalise", LayerNormalise{{1, 2, 3}, {4, 5, 6}, 1e-3}, {"softmax"});
  add("chain", Chain{{ActivationKind::leaky_relu, 0.2}}, {"normalise", "softmax"});
  add("table", Interpolate{{-1, 0, 2}, 3, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}}, {"reduce"});
  add("select", Select{}, {"binary", "chain", "table"});
  model.outputs = {{"a/b", "select", {{}, {"heat", "W", -1, 1}, {}}}, {"z", "z", {{}}}, {"r", "reduce", {{}}}};
  return model;
}

TEST_F(Hdf5ModelTest, graphs_are_read_as_they_were_written) {
  const Model model = every_operation();
  ASSERT_EQ(model.nodes.size(), std::variant_size_v<Operation>);
  write_hdf5_model(path_, model);
  EXPECT_EQ(File::open(path_).integer_attribute("lockstep_model"), 2);
  const Model again = read_hdf5_model(path_);
  EXPECT_EQ(again.digest(), model.digest());
  EXPECT_EQ(again.name, "every");
  ASSERT_EQ(again.nodes.size(), model.nodes.size());
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    EXPECT_EQ(again.nodes[i].name, model.nodes[i].name);
    EXPECT_EQ(again.nodes[i].inputs, model.nodes[i].inputs);
  }
  EXPECT_EQ(again.outputs[0].name, "a/b");
  EXPECT_EQ(again.outputs[0].value, "select");
  EXPECT_EQ(again.outputs[0].features[1].unit, "W");
  EXPECT_EQ(again.inputs[0].features[0].maximum, 10);
}

TEST_F(Hdf5ModelTest, damaged_graphs_are_refused_by_name) {
  const auto after = [&](auto edit) {
    write_hdf5_model(path_, every_operation(), Existing::replace);
    {
      File file = File::create(path_, Existing::replace);
      file.set_attribute("lockstep_model", 2);
      edit(file);
      file.publish();
    }
    return message_of([&] { read_hdf5_model(path_); });
  };
  const auto port = [](Group all, const char* value) {
    Group group = all.create_group("0");
    group.set_attribute("name", "x");
    group.set_attribute("features", 1);
    if (value[0] != 0) group.set_attribute("value", value);
  };
  const auto with_node = [&](auto edit) {
    return after([&](File& file) {
      port(file.create_group("inputs"), "");
      Group node = file.create_group("nodes").create_group("0");
      node.set_attribute("name", "n");
      edit(node);
      port(file.create_group("outputs"), "x");
    });
  };
  EXPECT_THAT(after([](File&) {}), HasSubstr("inputs"));
  EXPECT_THAT(with_node([](Group&) {}), HasSubstr("operation"));
  EXPECT_THAT(with_node([](Group& n) { n.set_attribute("operation", "convolve"); }), HasSubstr("\"convolve\""));
  EXPECT_THAT(with_node([](Group& n) {
                n.set_attribute("operation", "unary");
                n.set_attribute("kind", "tangent");
              }),
              HasSubstr("\"tangent\""));
  EXPECT_THAT(with_node([](Group& n) {
                n.set_attribute("operation", "concatenate");
                n.create_group("extra");
              }),
              HasSubstr("extra"));
  EXPECT_THAT(with_node([](Group& n) { n.set_attribute("operation", "concatenate"); }),
              HasSubstr("n: found 0 values to read"));
}

}  // namespace
}  // namespace lockstep::nn

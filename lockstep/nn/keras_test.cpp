#include "lockstep/nn/keras.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cfenv>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/detail/read_bytes.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/testing/float32_bound.h"

namespace lockstep::nn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::float32_bound;
using ::testing::HasSubstr;

std::filesystem::path data(const std::string& name) { return std::filesystem::path(LOCKSTEP_TEST_DATA) / name; }

std::vector<double> outputs(const Model& model, std::vector<double> x) {
  std::vector<double> y(model.outputs[0].features.size());
  NetPlan<double>::compile(model).evaluate(MatrixView<const double>::row_major(x.data(), 1, x.size()),
                                           MatrixView<double>::row_major(y.data(), 1, y.size()));
  return y;
}

class SameNetTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SameNetTest, keras_and_safetensors_hold_the_same_net) {
  const std::string name = GetParam();
  const Model keras = load(data("keras/" + name + ".keras.h5"));
  EXPECT_EQ(keras.digest(), load(data(name + ".safetensors")).digest());
  EXPECT_EQ(keras.weight_type, WeightType::f32);
  EXPECT_THAT(keras.provenance.producer, HasSubstr("Keras 3."));
}
INSTANTIATE_TEST_SUITE_P(Models, SameNetTest, ::testing::Values("lorenz_tanh_3_100_3", "peaks_relu_2_20_5_1"));

// Configurations hold numbers as text, which the C library reads by the rounding of the host program.
TEST(Keras, holds_the_same_net_however_the_host_rounds) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data("keras"))) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".py" || path.stem().extension() == ".samples") continue;
    ++files;
    const std::string expected = load(path).digest();
    for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      ASSERT_EQ(std::fesetround(rounding), 0);
      const Model model = load(path);
      const int after = std::fegetround();
      std::fesetround(FE_TONEAREST);
      EXPECT_EQ(model.digest(), expected) << path << ", rounding " << rounding;
      EXPECT_EQ(after, rounding);
    }
  }
  EXPECT_GT(files, 10);
}

class KerasTest : public ::testing::TestWithParam<const char*> {};

TEST_P(KerasTest, gives_keras_own_answers_from_both_formats) {
  const std::string name = GetParam();
  const hdf5::File file = hdf5::File::open(data("keras/" + name + ".samples.h5"));
  const auto x = file.dataset("input").read<double>(), expected = file.dataset("output").read<double>();
  const std::size_t inputs = file.dataset("input").shape()[1], width = file.dataset("output").shape()[1];
  ASSERT_EQ(x.size(), 16 * inputs);
  for (const char* ending : {".h5", ".keras"}) {
    const Model model = load(data("keras/" + name + ending));
    for (std::size_t i = 0; i < 16; ++i) {
      const std::vector<double> row(x.begin() + static_cast<std::ptrdiff_t>(i * inputs),
                                    x.begin() + static_cast<std::ptrdiff_t>((i + 1) * inputs));
      const std::vector<double> y = outputs(model, row), bound = float32_bound(to_mlp(model), row);
      for (std::size_t j = 0; j < width; ++j) EXPECT_NEAR(y[j], expected[i * width + j], bound[j]) << i << ", " << j;
    }
  }
}

TEST_P(KerasTest, both_formats_hold_the_same_net) {
  const std::string name = GetParam();
  EXPECT_EQ(load(data("keras/" + name + ".h5")).digest(), load(data("keras/" + name + ".keras")).digest());
}
INSTANTIATE_TEST_SUITE_P(Versions, KerasTest,
                         ::testing::Values("keras2_scaled", "keras2_batchnorm", "keras2_nested", "keras3_scaled",
                                           "keras3_batchnorm", "keras3_nested"));

TEST(Keras, the_bound_tells_a_wrong_net_from_the_right_one) {
  const Model right = load(data("keras/keras3_scaled.keras"));
  Model wrong = right;
  for (Node& node : wrong.nodes) {
    if (auto* dense = std::get_if<Dense>(&node.operation)) dense->weights[0] += 1e-3;
  }
  const std::vector<double> x = {1, -2, 3};
  const double difference = outputs(right, x)[0] - outputs(wrong, x)[0];
  EXPECT_GT(std::fabs(difference), 2 * float32_bound(to_mlp(right), x)[0]);
}

// Keras 2 answers in float64. Both evaluations go through less than 100 operations, each sum of at most 7 products, on
// numbers below 100: 100 * 8 * 2^-53 * 100 = 9e-12 for each. Keras 3 on JAX answers in float32, whatever the type of
// the weights: on its longest path lie less than 20 such operations on numbers below 10, 20 * 8 * 2^-24 * 10 = 1e-4.
// A wrong weight shows at 1e-3.
TEST(Keras, branches_and_several_ports_give_keras_own_answers) {
  for (const auto& [name, bound] : {std::pair("keras2_branches", 2e-11), std::pair("keras3_branches", 1e-4)}) {
    const hdf5::File file = hdf5::File::open(data("keras/" + std::string(name) + ".samples.h5"));
    for (const char* ending : {".h5", ".keras"}) {
      const Model model = load(data("keras/" + std::string(name) + ending));
      EXPECT_EQ(model.weight_type, WeightType::f64);
      const auto plan = NetPlan<double>::compile(model);
      std::vector<std::vector<double>> numbers, expected;
      std::vector<MatrixView<const double>> in;
      std::vector<MatrixView<double>> out;
      for (const auto& port : plan.inputs()) numbers.push_back(file.dataset(port.name).read<double>());
      for (const auto& port : plan.outputs()) {
        expected.push_back(file.dataset(port.name).read<double>());
        numbers.emplace_back(16 * port.width);
      }
      ASSERT_EQ(plan.inputs().size(), 2);
      ASSERT_EQ(plan.outputs().size(), 2);
      for (std::size_t i = 0; i < 2; ++i) {
        in.push_back(MatrixView<const double>::row_major(numbers[i].data(), 16, plan.inputs()[i].width));
        out.push_back(MatrixView<double>::row_major(numbers[2 + i].data(), 16, plan.outputs()[i].width));
      }
      plan.evaluate(in, out);
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_THAT(numbers[2 + i], ::testing::Pointwise(::testing::DoubleNear(bound), expected[i])) << name << ending;
      }
    }
  }
}

// Keras 3 on JAX answers in float32: less than 30 sums of at most 6 products on the way, on numbers below 4:
// 30 * 6 * 2^-24 * 4 = 4e-5. A wrong operation shows in the first digits.
TEST(Keras, layers_that_are_several_operations_give_keras_own_answers) {
  const hdf5::File file = hdf5::File::open(data("keras/keras3_compositions.samples.h5"));
  const auto x = file.dataset("input").read<double>();
  const auto dot = file.dataset("dot").read<double>(), sparse = file.dataset("sparse").read<double>();
  for (const char* ending : {".h5", ".keras"}) {
    const Model model = load(data(std::string("keras/keras3_compositions") + ending));
    std::vector<double> found_dot(16), found_sparse(16 * 5);
    const MatrixView<const double> in[] = {MatrixView<const double>::row_major(x.data(), 16, 4)};
    const MatrixView<double> out[] = {MatrixView<double>::row_major(found_dot.data(), 16, 1),
                                      MatrixView<double>::row_major(found_sparse.data(), 16, 5)};
    NetPlan<double>::compile(model).evaluate(in, out);
    EXPECT_THAT(found_dot, ::testing::Pointwise(::testing::DoubleNear(4e-5), dot)) << ending;
    EXPECT_THAT(found_sparse, ::testing::Pointwise(::testing::DoubleNear(4e-5), sparse)) << ending;
  }
}

TEST(Keras, ports_and_nodes_keep_the_names_of_layers_and_notes_tell_what_was_folded) {
  const Model model = load(data("keras/keras2_nested.keras"));
  EXPECT_EQ(model.inputs[0].name, "state");
  EXPECT_EQ(model.nodes[0].name, "first");
  EXPECT_EQ(model.nodes[2].name.substr(0, 6), "inner/");
  EXPECT_EQ(model.provenance.format, "Keras archive");
  EXPECT_EQ(model.provenance.producer, "Keras 2.15.0");
  EXPECT_THAT(load(data("keras/keras2_batchnorm.h5")).provenance.notes,
              ElementsAre("batch_normalization went into dense_4", "batch_normalization_1 went into dense_6"));
}

// Whole-model files as a test writes them: a configuration, and weights by path.
class MadeTest : public ::testing::Test {
 protected:
  MadeTest()
      : path_(std::filesystem::path(::testing::TempDir()) / ("lockstep-keras-" + std::to_string(::getpid()) + ".h5")) {}
  ~MadeTest() override { std::filesystem::remove(path_); }

  struct Weight {
    std::string layer, name;
    hdf5::Shape shape;
    std::vector<float> values;
  };

  static std::string dense(const std::string& name, int units, const std::string& more = R"("activation":"linear")") {
    return R"({"class_name":"Dense","config":{"name":")" + name + R"(","units":)" + std::to_string(units) + "," + more +
           "}}";
  }
  static std::string sequential(const std::string& layers) {
    return R"({"class_name":"Sequential","config":{"name":"made","layers":[)" + layers + "]}}";
  }

  Model read(const std::string& config, const std::vector<Weight>& weights, const char* version = "3.1") const {
    hdf5::File file = hdf5::File::create(path_, Existing::replace);
    file.set_attribute("model_config", config);
    file.set_attribute("keras_version", std::string(version));
    store(file.create_group("model_weights"), weights);
    file.publish();
    file.close();
    return read_keras_hdf5(path_);
  }
  static void store(hdf5::Group all, const std::vector<Weight>& weights) {
    for (const Weight& weight : weights) {
      hdf5::Group group = all.has(weight.layer) ? all.group(weight.layer) : all.create_group(weight.layer);
      std::vector<std::string> names;
      if (group.has_attribute("weight_names")) names = group.string_list_attribute("weight_names");
      names.push_back(weight.name);
      group.set_attribute("weight_names", names);
      group.create_dataset<float>(weight.name, weight.shape).write<float>(weight.values);
    }
  }
  std::string refusal(const std::string& config, const std::vector<Weight>& weights) const {
    return message_of([&] { read(config, weights); });
  }
  const std::string two_inputs_ = R"({"class_name":"InputLayer","config":{"name":"i","batch_shape":[null,2]}},)";
  const std::vector<Weight> two_by_one_ = {{"d", "kernel:0", {2, 1}, {3, 5}}, {"d", "bias:0", {1}, {7}}};

  std::filesystem::path path_;
};

TEST_F(MadeTest, kernels_are_transposed_and_biases_added) {
  EXPECT_THAT(outputs(read(sequential(dense("d", 1)), two_by_one_), {1, 10}), ElementsAre(60));
  const std::vector<Weight> wide = {{"d", "kernel:0", {1, 2}, {3, 5}}};
  EXPECT_THAT(outputs(read(sequential(dense("d", 2, R"("use_bias":false)")), wide), {2}), ElementsAre(6, 10));
}

TEST_F(MadeTest, hard_sigmoid_means_what_the_version_of_keras_means) {
  const std::string net = sequential(dense("d", 1, R"("activation":"hard_sigmoid")"));
  const std::vector<Weight> one = {{"d", "kernel:0", {1, 1}, {1}}, {"d", "bias:0", {1}, {0}}};
  EXPECT_DOUBLE_EQ(outputs(read(net, one, "3.0"), {1})[0], 1.0 / 6 + 0.5);
  EXPECT_DOUBLE_EQ(outputs(read(net, one, "2.15.0-tf"), {1})[0], 0.7);
}

TEST_F(MadeTest, activations_have_keras_own_defaults) {
  const std::vector<Weight> one = {{"d", "kernel:0", {1, 1}, {1}}, {"d", "bias:0", {1}, {0}}};
  const auto at_minus_one = [&](const std::string& activation, const std::string& layer) {
    return outputs(read(sequential(dense("d", 1, "\"activation\":" + activation) + layer), one), {-1})[0];
  };
  EXPECT_EQ(at_minus_one(R"("leaky_relu")", ""), -0.2);
  EXPECT_EQ(at_minus_one("null", R"(,{"class_name":"LeakyReLU","config":{"name":"l"}})"), -0.3);
  EXPECT_EQ(at_minus_one("null", R"(,{"class_name":"ReLU","config":{"name":"l","negative_slope":0.5}})"), -0.5);
  EXPECT_EQ(at_minus_one(R"({"class_name":"function","config":"relu"})", ""), 0);
  EXPECT_DOUBLE_EQ(at_minus_one(R"("log_sigmoid")", ""), -std::log1p(std::exp(1.0)));
}

TEST_F(MadeTest, an_inverted_normalisation_ends_a_net) {
  const std::string end = R"(,{"class_name":"Normalization","config":{"name":"n","axis":[-1],"invert":true,)"
                          R"("mean":[[10.0]],"variance":[[4.0]]}})";
  EXPECT_THAT(outputs(read(sequential(dense("d", 1) + end), two_by_one_), {1, 10}), ElementsAre(130));
}

// axis=None, which Keras writes as [].
TEST_F(MadeTest, a_normalisation_of_all_features_has_one_mean) {
  const std::string given =
      R"({"class_name":"Normalization","config":{"name":"n","axis":[],"mean":1.0,"variance":4.0}},)";
  EXPECT_THAT(outputs(read(sequential(two_inputs_ + given + dense("d", 1)), two_by_one_), {1, 11}), ElementsAre(32));
  const std::string learned = R"({"class_name":"Normalization","config":{"name":"n","axis":[],"mean":null}},)";
  std::vector<Weight> weights = two_by_one_;
  weights.push_back({"n", "mean:0", {1}, {1}}), weights.push_back({"n", "variance:0", {1}, {4}});
  EXPECT_THAT(outputs(read(sequential(two_inputs_ + learned + dense("d", 1)), weights), {1, 11}), ElementsAre(32));
}

// x = 300 +- 1, less about 300, in float32: the layer's sums are of numbers near 1, whose roundings are 6e-8 each: at
// most five a sum, and three in what it sums, times weights below 1.4 and the factor.
TEST_F(MadeTest, offsets_before_the_first_layer_cost_no_digits) {
  struct Case {
    std::string layers;
    double factor, centre;
    std::vector<Weight> weights;
  };
  const auto rescaling = [](const std::string& name, const std::string& scale, const std::string& offset) {
    return R"({"class_name":"Rescaling","config":{"name":")" + name + R"(","scale":)" + scale + R"(,"offset":)" +
           offset + "}},";
  };
  const std::vector<Weight> normalised = {{"b", "gamma:0", {2}, {1, 1}},
                                          {"b", "beta:0", {2}, {0.1F, 0.1F}},
                                          {"b", "moving_mean:0", {2}, {300, 300}},
                                          {"b", "moving_variance:0", {2}, {0.25F, 0.25F}}};
  const std::string batch = R"({"class_name":"BatchNormalization","config":{"name":"b","epsilon":0}},)";
  const std::string normalisation = R"({"class_name":"Normalization","config":{"name":"n","axis":[-1],)"
                                    R"("mean":[[150.05]],"variance":[[0.25]]}},)";
  for (const Case& one :
       {Case{rescaling("r", "1", "-300.1"), 1, 300.1, {}}, Case{rescaling("r", "-2", "[600.1, 600.1]"), -2, 300.05, {}},
        Case{rescaling("r", "2", "0") + rescaling("q", "1", "-600.2"), 2, 300.1, {}},
        Case{batch, 2, 300 - double{0.1F} / 2, normalised},
        Case{rescaling("r", "0.5", "0") + normalisation, 1, 300.1, {}}}) {
    SCOPED_TRACE(one.layers);
    const std::vector<float> w{1.37F, 0.2F, 0.51F, 0.7F};
    std::vector<Weight> weights = one.weights;
    weights.push_back({"d", "kernel:0", {2, 2}, w});
    weights.push_back({"d", "bias:0", {2}, {0.25F, -0.5F}});
    const Model model = read(sequential(two_inputs_ + one.layers + dense("d", 2)), weights);
    ASSERT_TRUE(is_stack(model));
    EXPECT_THAT(to_mlp(model).input_scaling.shift, ::testing::Each(static_cast<float>(one.centre)));
    EXPECT_THAT(model.provenance.notes, ::testing::Contains(HasSubstr("went into the scaling of the inputs")));
    std::mt19937 random(1);
    std::uniform_real_distribution<float> near(299, 301);
    const auto plan = NetPlan<float>::compile(model);
    for (int i = 0; i < 100; ++i) {
      const std::vector<float> x{near(random), near(random)};
      std::vector<float> y(2);
      plan.evaluate(MatrixView<const float>::row_major(x.data(), 1, 2), MatrixView<float>::row_major(y.data(), 1, 2));
      for (std::size_t j = 0; j < 2; ++j) {
        const double sum = (x[0] - one.centre) * w[j] + (x[1] - one.centre) * w[2 + j];
        EXPECT_NEAR(y[j], one.factor * sum + (j == 0 ? 0.25 : -0.5), std::fabs(one.factor) * 1.4 * 8 * 6e-8);
      }
    }
  }
}

TEST_F(MadeTest, factors_alone_and_what_float32_does_not_hold_go_into_the_weights) {
  const auto scaled = [&](const std::string& scale, const std::string& offset) {
    const std::string rescaling =
        R"({"class_name":"Rescaling","config":{"name":"r","scale":)" + scale + R"(,"offset":)" + offset + "}},";
    return read(sequential(two_inputs_ + rescaling + dense("d", 1)), two_by_one_);
  };
  for (const auto& [model, y] : {std::pair(scaled("2", "0"), 113.0), {scaled("[0, 1]", "[3, -1]"), 61.0}}) {
    EXPECT_TRUE(to_mlp(model).input_scaling.shift.empty());
    EXPECT_THAT(outputs(model, {1, 10}), ElementsAre(y));
    EXPECT_THAT(model.provenance.notes, ElementsAre("r went into d"));
  }
}

TEST_F(MadeTest, what_cannot_be_read_is_named_with_its_layer) {
  EXPECT_THAT(refusal(sequential(dense("d", 1, R"("activation":"softmin")")), two_by_one_),
              AllOf(HasSubstr("layer d"), HasSubstr("found the activation \"softmin\", expected linear, relu")));
  EXPECT_THAT(refusal(sequential(dense("d", 1) + R"(,{"class_name":"Lambda","config":{"name":"own"}})"), two_by_one_),
              AllOf(HasSubstr("layer own"), HasSubstr("class Lambda"), HasSubstr("Python code")));
  EXPECT_THAT(refusal(sequential(dense("d", 1) + R"(,{"module":"mine","class_name":"Dense","config":{"name":"own"}})"),
                      two_by_one_),
              HasSubstr("a class of the module mine"));
  EXPECT_THAT(refusal(sequential(dense("d", 1) + R"(,{"class_name":"ReLU","config":{"name":"r","threshold":-1}})"),
                      two_by_one_),
              AllOf(HasSubstr("layer r"), HasSubstr("found a threshold below 0"), HasSubstr("bring it as ONNX")));
  EXPECT_THAT(
      refusal(sequential(dense("d", 1) + R"(,{"class_name":"Softmax","config":{"name":"s","axis":0}})"), two_by_one_),
      AllOf(HasSubstr("layer s"), HasSubstr("found axis 0")));
  EXPECT_THAT(refusal(R"({"class_name":"MyModel","config":{}})", {}), HasSubstr("whose layers are Python code"));
  EXPECT_THAT(refusal(sequential(R"({"class_name":"InputLayer","config":{"name":"i","batch_shape":[null,5,3]}},)" +
                                 dense("d", 1)),
                      two_by_one_),
              HasSubstr("inputs of shape [null,5,3]"));
  EXPECT_THAT(refusal(sequential(dense("d", 1, R"("dtype":"int8_from_float32")")), two_by_one_),
              HasSubstr("quantised"));
}

TEST_F(MadeTest, weights_that_are_missing_or_do_not_fit_are_named) {
  EXPECT_THAT(refusal(sequential(dense("e", 1)), two_by_one_), HasSubstr("found no group \"e\""));
  EXPECT_THAT(refusal(sequential(dense("d", 1)), {two_by_one_[0]}), HasSubstr("found no weight \"bias\""));
  EXPECT_THAT(refusal(sequential(dense("d", 2)), two_by_one_), HasSubstr("as many columns as the layer has units"));
  EXPECT_THAT(refusal(sequential(dense("d", 1) + "," + dense("e", 1)),
                      {two_by_one_[0], two_by_one_[1], {"e", "kernel", {2, 1}, {1, 1}}, {"e", "bias", {1}, {0}}}),
              AllOf(HasSubstr("layer e"), HasSubstr("weights for 2 inputs, expected 1")));
  EXPECT_THAT(refusal(sequential(dense("d", 1)), {{"d", "kernel", {2}, {3, 5}}}), HasSubstr("shape [2]"));
}

TEST_F(MadeTest, configurations_that_make_no_sense_are_refused) {
  EXPECT_THAT(refusal("{\"class_name\":", {}), HasSubstr("no JSON"));
  EXPECT_THAT(refusal(std::string(300, '['), {}), HasSubstr("nested too deep"));
  EXPECT_THAT(refusal("{}", {}), HasSubstr("no \"class_name\""));
  EXPECT_THAT(refusal(sequential(""), {}), HasSubstr("no layers"));
  EXPECT_THAT(refusal(sequential(dense("d", 1) + "," + dense("d", 1)), two_by_one_), HasSubstr("two layers named"));
  // A layer that reads itself.
  const std::string loop = R"({"class_name":"Functional","config":{"name":"f","layers":[{"class_name":"InputLayer",)"
                           R"("name":"i","config":{"batch_shape":[null,2]}},{"class_name":"Dense","name":"d",)"
                           R"("config":{"units":1},"inbound_nodes":[[["d",0,0,{}]]]}],)"
                           R"("input_layers":[["i",0,0]],"output_layers":[["d",0,0]]}})";
  EXPECT_THAT(refusal(loop, two_by_one_), HasSubstr("output of d: found no such value"));
}

TEST(Keras, damaged_archives_are_refused_or_read_but_never_misread) {
  const std::vector<std::byte> sound = detail::read_bytes(data("keras/keras3_scaled.keras"));
  const std::string digest = read_keras_archive(sound, "sound.keras").digest();
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::byte> bytes = sound;
    if (i % 3 == 0) {
      bytes.resize(random() % bytes.size());
    } else {
      // Mostly the directory and the headers: what lies between is under a checksum.
      const std::size_t range = i % 3 == 1 ? bytes.size() : std::min<std::size_t>(bytes.size(), 400);
      bytes[bytes.size() - 1 - random() % range] ^= static_cast<std::byte>(1 << random() % 8);
    }
    std::string found;
    try {
      found = read_keras_archive(bytes, "damaged.keras").digest();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("damaged.keras"));
      continue;
    }
    EXPECT_EQ(found, digest) << "damage " << i;
  }
}

}  // namespace
}  // namespace lockstep::nn

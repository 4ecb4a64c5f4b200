#include "lockstep/nn/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "lockstep/core/random.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/nn/testing/safetensors_bytes.h"
#include "lockstep/nn/testing/small_model.h"

namespace lockstep::nn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::packed;
using testing::safetensors_bytes;
using testing::small_model;

const std::string kData = std::string(LOCKSTEP_TEST_DATA) + "/";

// One tensor's entry in a header.
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, std::size_t begin,
                  std::size_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

// A net of layers 2 -> 2 -> 1 without biases, its names to choose.
std::vector<std::byte> two_layers(const std::string& first, const std::string& second, const std::string& extra = {}) {
  return safetensors_bytes(
      "{" + extra + entry(first, "F32", "[2,2]", 0, 16) + "," + entry(second, "F32", "[1,2]", 16, 24) + "}",
      packed<float>({1, 2, 3, 4, 5, 6}));
}

std::string reading(const std::vector<std::byte>& bytes, const ReadOptions& options = {.hidden_activation = "tanh"}) {
  return message_of([&] { read_safetensors(bytes, "net", options); });
}
// A file of one tensor, its entry as given, with so many bytes of data.
std::string reading_header(const std::string& header, std::size_t data_bytes = 16) {
  return reading(safetensors_bytes(header, std::string(data_bytes, '\0')));
}

TEST(Safetensors, a_file_of_pytorchs_names_is_read) {
  const Model model = read_safetensors(kData + "qlknn_7_11_tanh_10_133x5_8.safetensors");
  const Mlp mlp = to_mlp(model);
  ASSERT_EQ(mlp.layers.size(), 6u);
  EXPECT_EQ(mlp.layers[0].inputs, 10u);
  EXPECT_EQ(mlp.layers[4].outputs, 133u);
  EXPECT_EQ(mlp.layers[5].outputs, 8u);  // "10" comes after "8", not after "0"
  EXPECT_EQ(mlp.layers[4].activation.kind, ActivationKind::tanh);
  EXPECT_EQ(mlp.layers[5].activation.kind, ActivationKind::identity);
  EXPECT_EQ(mlp.input_scaling.scale.size(), 10u);
  EXPECT_EQ(mlp.output_scaling.shift.size(), 8u);
  EXPECT_EQ(model.nodes[1].name, "0");
  EXPECT_EQ(model.name, "qlknn_7_11_tanh_10_133x5_8");
  EXPECT_EQ(model.inputs[0].features[4].name, "q");
  EXPECT_LT(model.inputs[0].features[4].minimum, model.inputs[0].features[4].maximum);
  EXPECT_TRUE(std::isfinite(model.inputs[0].features[4].maximum));
  EXPECT_EQ(model.outputs[0].features[7].name, "gamma_max");
  EXPECT_EQ(model.weight_type, WeightType::f32);
  EXPECT_EQ(model.provenance.format, "safetensors");
  EXPECT_EQ(model.provenance.licence, "CC-BY-4.0");
  EXPECT_THAT(model.provenance.attribution, HasSubstr("Google DeepMind"));
  EXPECT_EQ(model.provenance.digest.size(), 32u);
  EXPECT_TRUE(model.metadata.empty());
}

TEST(Safetensors, layer_names_may_carry_any_common_prefix) {
  for (const char* prefix : {"", "layers.", "model.", "net.layers.", "fc"}) {
    const std::string p = prefix;
    const Model model =
        read_safetensors(two_layers(p + "9.weight", p + "10.weight"), "net", {.hidden_activation = "relu"});
    const Mlp mlp = to_mlp(model);
    ASSERT_EQ(mlp.layers.size(), 2u) << prefix;
    EXPECT_THAT(mlp.layers[1].weights, ElementsAre(5, 6));
    EXPECT_THAT(mlp.layers[0].bias, ElementsAre(0, 0));  // none in the file
    EXPECT_EQ(mlp.layers[0].activation.kind, ActivationKind::relu);
    EXPECT_EQ(mlp.layers[1].activation.kind, ActivationKind::identity);
  }
}

TEST(Safetensors, activations_given_by_the_caller_must_be_the_files_own) {
  const auto bytes = two_layers("0.weight", "2.weight", R"("__metadata__":{"activations":"relu, linear"},)");
  for (const ReadOptions& options : {ReadOptions{}, ReadOptions{.activations = "ReLU,identity"},
                                     ReadOptions{.activations = "", .hidden_activation = "relu"}}) {
    EXPECT_EQ(to_mlp(read_safetensors(bytes, "net", options)).layers[0].activation.kind, ActivationKind::relu);
  }
  EXPECT_EQ(reading(bytes, {.activations = "leaky_relu(0.2),linear"}),
            "options.activations: found \"leaky_relu(0.2),identity\", expected \"relu,identity\", the activations that "
            "net has of its own; leave them out; they are for files that do not say");
  EXPECT_THAT(reading(bytes, {.hidden_activation = "tanh"}),
              HasSubstr("options.hidden_activation: found \"tanh,identity\", expected \"relu,identity\""));
  const auto silent = two_layers("0.weight", "2.weight");
  const Mlp mlp = to_mlp(read_safetensors(silent, "net", {.activations = "leaky_relu(0.2),linear"}));
  EXPECT_EQ(mlp.layers[0].activation, (Activation{ActivationKind::leaky_relu, 0.2}));
  EXPECT_EQ(mlp.layers[1].activation, Activation{});
}

TEST(Safetensors, every_float_type_is_read_exactly) {
  const auto one = [](const std::string& dtype, std::size_t bytes, const std::string& data) {
    const std::string header = "{" + entry("0.weight", dtype, "[1,4]", 0, 4 * bytes) + "}";
    return read_safetensors(safetensors_bytes(header, data), "net", {.activations = "linear"});
  };
  const auto weights = [](const Model& model) { return to_mlp(model).layers[0].weights; };
  const Model f16 = one("F16", 2, packed<std::uint16_t>({0x3c00, 0xc000, 0x0001, 0x7bff}));
  EXPECT_THAT(weights(f16), ElementsAre(1, -2, 0x1p-24, 65504));
  EXPECT_EQ(f16.weight_type, WeightType::f16);
  const Model bf16 = one("BF16", 2, packed<std::uint16_t>({0x3f80, 0xc000, 0x0001, 0x7f7f}));
  EXPECT_THAT(weights(bf16), ElementsAre(1, -2, 0x1p-133, 0x1.fep127));
  EXPECT_EQ(bf16.weight_type, WeightType::bf16);
  EXPECT_THAT(weights(one("F32", 4, packed<float>({0.1f, -0.0f, 1e-45f, 3e38f}))), ElementsAre(0.1f, 0, 1e-45f, 3e38f));
  const Model f64 = one("F64", 8, packed<double>({0.1, 1e-320, 1e300, -3}));
  EXPECT_THAT(weights(f64), ElementsAre(0.1, 1e-320, 1e300, -3));
  EXPECT_EQ(f64.weight_type, WeightType::f64);
}

TEST(Safetensors, what_is_written_is_read_again) {
  Model model = small_model();
  for (const bool with_wide_number : {false, true}) {
    if (with_wide_number) std::get<Dense>(model.nodes[1].operation).weights[0] = 0.1;  // no float32
    const Model again = read_safetensors(to_safetensors(model), "copy");
    EXPECT_EQ(again.digest(), model.digest());
    EXPECT_EQ(again.name, "small");
    EXPECT_EQ(again.inputs[0].features[1].name, "temperature");
    EXPECT_EQ(again.inputs[0].features[0].unit, "Pa");
    EXPECT_EQ(again.inputs[0].features[1].minimum, 200);
    EXPECT_EQ(again.inputs[0].features[0].maximum, 1e5);
    EXPECT_EQ(again.outputs[0].features[0].unit, "W m-2");
    EXPECT_EQ(again.provenance.producer, "a test");
    EXPECT_EQ(again.provenance.licence, "CC0-1.0");
    EXPECT_EQ(again.metadata, model.metadata);
    EXPECT_EQ(again.weight_type, with_wide_number ? WeightType::f64 : WeightType::f32);
  }
  for (const char* name : {"lorenz_tanh_3_100_3", "peaks_relu_2_20_5_1", "ocean_relu_32_128_128_31"}) {
    const Model original = read_safetensors(kData + name + ".safetensors");
    const Model again = read_safetensors(to_safetensors(original), "copy");
    EXPECT_EQ(again.digest(), original.digest());
    EXPECT_EQ(again.weight_type, WeightType::f32);
  }
}

TEST(Safetensors, half_open_training_ranges_survive) {
  Model model = small_model();
  model.inputs[0].features[0].maximum = std::numeric_limits<double>::infinity();
  const Model again = read_safetensors(to_safetensors(model), "copy");
  EXPECT_EQ(again.inputs[0].features[0].maximum, std::numeric_limits<double>::infinity());
  EXPECT_EQ(again.inputs[0].features[1].maximum, 400);
}

TEST(Safetensors, a_written_file_is_aligned_and_refused_where_one_exists) {
  const std::vector<std::byte> bytes = to_safetensors(small_model());
  std::uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(length % 8, 0u);
  const std::string path = ::testing::TempDir() + "/lockstep-" + std::to_string(::getpid()) + ".safetensors";
  write_safetensors(path, small_model());
  EXPECT_THAT(message_of([&] { write_safetensors(path, small_model()); }), HasSubstr("found a file of that name"));
  write_safetensors(path, small_model(), Existing::replace);
  EXPECT_EQ(read_safetensors(path).digest(), small_model().digest());
  std::filesystem::remove(path);
}

TEST(Safetensors, what_the_format_cannot_say_is_refused_when_writing) {
  Model model = small_model();
  model.inputs[0].features[0].name = "a,b";
  EXPECT_THAT(message_of([&] { to_safetensors(model); }),
              HasSubstr("feature 0 of inputs: found \"a,b\", expected text without commas"));
  model = small_model();
  std::get<Rescale>(model.nodes[4].operation).scale[0] = -1;
  EXPECT_THAT(message_of([&] { to_safetensors(model); }), HasSubstr("output_scaling.scale[0]: found -1"));
  model = small_model();
  model.metadata["note"] = "\xff";
  EXPECT_THAT(message_of([&] { to_safetensors(model); }), HasSubstr("expected UTF-8"));
}

// ---- damaged containers

TEST(SafetensorsDamage, lengths_are_checked_first) {
  EXPECT_EQ(reading({}),
            "net: found a file of 0 bytes, expected at least 8, the length of the header; "
            "check that the file is whole and in safetensors format");
  EXPECT_THAT(reading(std::vector<std::byte>(7)), HasSubstr("a file of 7 bytes"));
  EXPECT_THAT(reading(std::vector<std::byte>(8)), HasSubstr("net: header: found no '{' at its start"));
  EXPECT_THAT(reading(safetensors_bytes("{}", "", 3)),
              HasSubstr("net: header: found a length of 3 bytes, expected at most the 2 that follow"));
  EXPECT_THAT(reading(safetensors_bytes("{}", "", 100'000'001)), HasSubstr("expected at most 100000000"));
  EXPECT_THAT(reading(safetensors_bytes("{}", "", ~std::uint64_t{0} - 1)),
              HasSubstr("a length of 18446744073709551614"));
  EXPECT_THAT(reading(safetensors_bytes(" {}")), HasSubstr("no '{' at its start"));
}

TEST(SafetensorsDamage, every_truncation_of_a_good_file_is_an_error) {
  const std::vector<std::byte> good = to_safetensors(small_model());
  EXPECT_EQ(reading(good), "no error");
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(reading({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}), "no error") << size;
  }
}

TEST(SafetensorsDamage, changed_bytes_are_read_or_refused_but_never_worse) {
  // Up to four bytes changed at random places, most of them in the header. What is still read must be a valid net;
  // the sanitizer build watches for the rest.
  const std::vector<std::byte> good = to_safetensors(small_model());
  const Random random(20261121);
  int refused = 0;
  constexpr int kFiles = 3000;
  for (std::uint64_t file = 0; file < kFiles; ++file) {
    std::vector<std::byte> bytes = good;
    const std::uint64_t changes = 1 + random.bits(file, 0) % 4;
    for (std::uint32_t i = 0; i < changes; ++i) {
      const std::uint64_t bits = random.bits(file, 1 + i);
      const char palette[] = "0123456789[]{}\",:.-\\\xff";
      const std::size_t range = bits % 8 == 0 ? 8 : bytes.size() - 8;
      bytes[(bits % 8 == 0 ? 0 : 8) + (bits >> 8) % range] =
          static_cast<std::byte>(bits % 2 == 0 ? palette[(bits >> 40) % (sizeof palette - 1)] : bits >> 40);
    }
    try {
      read_safetensors(bytes, "net").validate();
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, kFiles / 4) << "seed 20261121";
  EXPECT_LT(refused, kFiles) << "seed 20261121";
}

TEST(SafetensorsDamage, headers_that_are_no_json_are_placed) {
  EXPECT_THAT(reading_header("{"),
              AllOf(HasSubstr("net: header: found damaged JSON at byte"), HasSubstr("expected JSON")));
  EXPECT_THAT(reading_header("{} x"), HasSubstr("damaged JSON at byte"));
  EXPECT_THAT(reading_header("{\"\xff\":1}"), HasSubstr("damaged JSON at byte"));
}

TEST(SafetensorsDamage, headers_of_another_structure_are_refused) {
  EXPECT_THAT(reading_header(R"({"a":1})"), HasSubstr("header tensor \"a\": found 1, expected an object"));
  EXPECT_THAT(reading_header(R"({"a":{"dtype":4}})"), HasSubstr("found 4 for \"dtype\", expected a string"));
  EXPECT_THAT(reading_header(R"({"a":{"shape":"x"}})"), HasSubstr("expected a list of whole numbers"));
  EXPECT_THAT(reading_header(R"({"a":{"shape":[-1]}})"), HasSubstr("found -1 in \"shape\""));
  EXPECT_THAT(reading_header(R"({"a":{"shape":[1.5]}})"), HasSubstr("found 1.5 in \"shape\""));
  EXPECT_THAT(reading_header(R"({"a":{"shape":[18446744073709551616]}})"), HasSubstr("found 18446744073709551616 in"));
  EXPECT_THAT(reading_header(R"({"a":{"shape":[[1]]}})"), HasSubstr("found a list in \"shape\""));
  EXPECT_THAT(reading_header(R"({"a":{"shape":null}})"), HasSubstr("found null"));
  EXPECT_THAT(reading_header(R"({"a":{"more":1}})"), HasSubstr("found key \"more\""));
  EXPECT_THAT(reading_header(R"({"a":{"dtype":"F32","shape":[1]}})"), HasSubstr("found no data_offsets"));
  EXPECT_THAT(reading_header(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})"), HasSubstr("found no shape"));
  EXPECT_THAT(reading_header(R"({"a":{"shape":[1],"data_offsets":[0,4]}})"), HasSubstr("found no dtype"));
  EXPECT_THAT(reading_header(R"({"a":{"data_offsets":[0,4,8]}})"), HasSubstr("data_offsets of 3 numbers"));
  EXPECT_THAT(reading_header(R"({"__metadata__":{"a":1}})"),
              HasSubstr("header __metadata__: found 1 for \"a\", expected a string"));
  EXPECT_THAT(reading_header(R"({"__metadata__":"x"})"), HasSubstr("expected an object of strings"));
  EXPECT_THAT(reading_header("{\"a\":" + std::string(100000, '[')), HasSubstr("found a list"));
}

TEST(SafetensorsDamage, repeated_keys_are_refused) {
  const std::string tensor = entry("0.weight", "F32", "[2,2]", 0, 16);
  EXPECT_THAT(reading_header("{" + tensor + "," + tensor + "}"), HasSubstr("found key \"0.weight\" a second time"));
  EXPECT_THAT(reading_header(R"({"__metadata__":{"a":"","a":""}})"), HasSubstr("found key \"a\" a second time"));
  EXPECT_THAT(reading_header(R"({"__metadata__":{},"__metadata__":{}})"),
              HasSubstr("key \"__metadata__\" a second time"));
  EXPECT_THAT(reading_header(R"({"a":{"dtype":"F32","dtype":"F32"}})"), HasSubstr("key \"dtype\" a second time"));
}

TEST(SafetensorsDamage, offsets_must_cover_the_data_once) {
  const auto one = [](std::size_t begin, std::size_t end) {
    return reading_header("{" + entry("0.weight", "F32", "[2,2]", begin, end) + "}");
  };
  EXPECT_EQ(one(0, 16), "no error");
  EXPECT_THAT(one(16, 0), HasSubstr("tensor \"0.weight\": found data_offsets [16, 0], expected an end not before"));
  EXPECT_THAT(one(0, 17), HasSubstr("expected an end within the 16 bytes of data"));
  EXPECT_THAT(one(0, ~std::size_t{0}), HasSubstr("an end within the 16 bytes"));
  EXPECT_THAT(one(~std::size_t{0} - 15, ~std::size_t{0}), HasSubstr("an end within the 16 bytes"));
  EXPECT_THAT(one(0, 12), HasSubstr("expected 16 bytes for F32 [2, 2]"));
  EXPECT_THAT(one(4, 16), HasSubstr("expected 16 bytes for F32 [2, 2]"));
  const auto two = [](std::size_t begin, std::size_t bytes) {
    return reading_header("{" + entry("0.weight", "F32", "[2,2]", 0, 16) + "," +
                              entry("2.weight", "F32", "[1,2]", begin, begin + 8) + "}",
                          bytes);
  };
  EXPECT_EQ(two(16, 24), "no error");
  EXPECT_THAT(two(8, 24), HasSubstr("tensor \"2.weight\": found data_offsets [8, 16], expected a beginning at 16"));
  EXPECT_THAT(two(20, 28), HasSubstr("found data_offsets [20, 28], expected a beginning at 16"));
  EXPECT_THAT(two(16, 28), HasSubstr("net: found 4 bytes behind the last tensor, expected none"));
}

TEST(SafetensorsDamage, sizes_beyond_memory_are_refused_unallocated) {
  EXPECT_THAT(reading_header("{" + entry("0.weight", "F32", "[4294967296,4294967296]", 0, 16) + "}"),
              HasSubstr("found shape [4294967296, 4294967296], expected a size below 2^64 bits"));
  // 2^62 x 4 overflows to 0 when multiplied carelessly.
  EXPECT_THAT(reading_header("{" + entry("0.weight", "F32", "[4611686018427387904,4]", 0, 0) + "}", 0),
              HasSubstr("a size below 2^64 bits"));
  EXPECT_THAT(reading_header("{" + entry("0.weight", "F32", "[1000000000,1000]", 0, 16) + "}"),
              HasSubstr("expected 4000000000000 bytes for F32"));
}

TEST(SafetensorsDamage, types_that_are_no_weights_are_named) {
  EXPECT_THAT(reading_header("{" + entry("0.weight", "I8", "[4,4]", 0, 16) + "}"),
              HasSubstr("tensor \"0.weight\": found dtype \"I8\", expected F16, BF16, F32 or F64"));
  EXPECT_THAT(reading_header("{" + entry("0.weight", "F8_E4M3", "[4,4]", 0, 16) + "}"), HasSubstr("\"F8_E4M3\""));
  EXPECT_THAT(reading_header("{" + entry("0.weight", "F4", "[1,3]", 0, 16) + "}"), HasSubstr("expected whole bytes"));
  EXPECT_THAT(reading_header("{" + entry("0.weight", "Q7", "[4,4]", 0, 16) + "}"), HasSubstr("found dtype \"Q7\""));
}

// ---- whole containers that are no net

TEST(SafetensorsNet, nan_and_infinite_weights_are_named) {
  const auto net = [](const std::string& dtype, const std::string& data) {
    return reading(safetensors_bytes("{" + entry("0.weight", dtype, "[2,2]", 0, data.size()) + "}", data));
  };
  EXPECT_THAT(net("F32", packed<float>({1, 2, NAN, 4})),
              HasSubstr("net: tensor \"0.weight\" element [1, 0]: found nan, expected a finite number"));
  EXPECT_THAT(net("F64", packed<double>({1, -INFINITY, 3, 4})), HasSubstr("element [0, 1]: found infinity"));
  EXPECT_THAT(net("F16", packed<std::uint16_t>({0, 0, 0, 0xfc00})), HasSubstr("element [1, 1]: found infinity"));
  EXPECT_THAT(net("BF16", packed<std::uint16_t>({0x7fc0, 0, 0, 0})), HasSubstr("element [0, 0]: found nan"));
}

TEST(SafetensorsNet, layers_that_do_not_chain_are_named) {
  const auto net = [](const std::string& second) {
    return reading(safetensors_bytes(
        "{" + entry("0.weight", "F32", "[3,2]", 0, 24) + "," + entry("2.weight", "F32", second, 24, 48) + "}",
        std::string(48, '\0')));
  };
  EXPECT_EQ(net("[2,3]"), "no error");
  EXPECT_EQ(net("[1,6]"),
            "net: tensor \"2.weight\": found 6 inputs (shape [1, 6]), expected 3, the outputs of layer \"0\"; "
            "check the order of the layers");
  EXPECT_THAT(net("[3,2]"), HasSubstr("transpose it: weights are stored [outputs, inputs]"));
  EXPECT_THAT(net("[6]"), HasSubstr("found shape [6], expected [outputs, inputs]"));
  EXPECT_THAT(net("[1,2,3]"), HasSubstr("found shape [1, 2, 3]"));
}

TEST(SafetensorsNet, layers_that_are_not_dense_are_named_before_anything_else) {
  const auto net = [](const std::string& name) {
    return reading(safetensors_bytes(
        "{" + entry("fc1.weight", "F32", "[3,2]", 0, 24) + "," + entry(name, "F32", "[3]", 24, 36) + "}",
        std::string(36, '\0')));
  };
  EXPECT_THAT(net("norm1.weight"), ::testing::AllOf(HasSubstr("tensor \"norm1.weight\": found shape [3]"),
                                                    HasSubstr("comes by ONNX (torch.onnx.export)")));
  EXPECT_THAT(net("1.running_mean"), ::testing::AllOf(HasSubstr("found the statistics of a batch normalisation"),
                                                      HasSubstr("comes by ONNX (torch.onnx.export)")));
}

TEST(SafetensorsNet, biases_must_fit_and_have_weights) {
  const auto net = [](const std::string& name, const std::string& shape) {
    return reading(safetensors_bytes(
        "{" + entry("0.weight", "F32", "[3,2]", 0, 24) + "," + entry(name, "F32", shape, 24, 40) + "}",
        std::string(40, '\0')));
  };
  EXPECT_THAT(net("0.bias", "[4]"), HasSubstr("tensor \"0.bias\": found shape [4], expected [3], one for each output"));
  EXPECT_THAT(net("2.bias", "[4]"), HasSubstr("layer \"2\": found a bias without a weight"));
}

TEST(SafetensorsNet, the_first_weight_is_known_to_lie_transposed_by_its_bias) {
  // As JAX and Keras keep a net of three inputs and two outputs.
  const std::string transposed = reading(safetensors_bytes(
      "{" + entry("0.weight", "F32", "[3,2]", 0, 24) + "," + entry("0.bias", "F32", "[2]", 24, 32) + "}",
      std::string(32, '\0')));
  EXPECT_THAT(transposed, HasSubstr("tensor \"0.weight\": found shape [3, 2] beside a bias of 2, expected [2, 3]; "
                                    "transpose it: weights are stored [outputs, inputs]"));
}

TEST(SafetensorsNet, unknown_tensors_are_never_skipped) {
  EXPECT_THAT(reading(two_layers("0.weight", "embedding")),
              HasSubstr("tensor \"embedding\": found a name that is no layer's weight or bias"));
  EXPECT_THAT(reading(two_layers("0.weight", "1.running_mean")), HasSubstr("tensor \"1.running_mean\""));
  EXPECT_THAT(reading(two_layers("0.weight", "out.weight")), HasSubstr("tensor \"out.weight\""));
  EXPECT_THAT(reading(two_layers("a.0.weight", "b.1.weight")),
              HasSubstr("tensor \"b.1.weight\": found prefix \"b.\", expected \"a.\""));
  EXPECT_THAT(reading(two_layers("1.weight", "01.weight")), HasSubstr("found the layer's number again"));
  EXPECT_THAT(reading_header("{}", 0), HasSubstr("net: found no layers"));
}

TEST(SafetensorsNet, what_looks_like_a_scaling_or_range_hears_its_name) {
  for (const char* name : {"mean", "scaler.std", "norm.x_mean"}) {
    EXPECT_THAT(reading(two_layers("0.weight", name)), HasSubstr("\"input_mean\" and \"input_stddev\"")) << name;
  }
  EXPECT_THAT(reading(two_layers("0.weight", "x_max")), HasSubstr("called \"input_min\" and \"input_max\""));
  EXPECT_THAT(reading(two_layers("0.weight", "table")), HasSubstr("as torch.nn.Sequential does; a scaling"));
}

TEST(SafetensorsNet, missing_and_wrong_activations_are_explained) {
  const auto bytes = two_layers("0.weight", "2.weight");
  EXPECT_THAT(reading(bytes, {}),
              AllOf(HasSubstr("net: activations: found none in the file, expected one for each of the 2 layers"),
                    HasSubstr("metadata={\"activations\": \"tanh,linear\"}")));
  EXPECT_THAT(reading(bytes, {}), HasSubstr("one for each layer (tanh,linear) or one for the hidden layers (tanh)"));
  EXPECT_THAT(reading(bytes, {.activations = "tanj"}),
              AllOf(HasSubstr("options.activations: found \"tanj\""), HasSubstr("did you mean \"tanh\"")));
  EXPECT_THAT(reading(bytes, {.activations = "tanj,linear"}),
              AllOf(HasSubstr("options.activations[0]: found \"tanj\""), HasSubstr("did you mean \"tanh\"")));
  EXPECT_THAT(reading(bytes, {.activations = "tanh,linear", .hidden_activation = "tanh"}),
              HasSubstr("expected none beside options.hidden_activation"));
  EXPECT_THAT(
      reading(two_layers("0.weight", "2.weight", R"("__metadata__":{"activations":"tanh,linear,linear"},)"), {}),
      HasSubstr("net: activations: found 3 names (tanh,linear,linear), expected 2, one for each layer, or one name for "
                "the hidden layers"));
}

// What is said to give is taken, wherever it is given.
TEST(SafetensorsNet, one_activation_is_that_of_the_hidden_layers) {
  const auto silent = two_layers("0.weight", "2.weight");
  const auto said = two_layers("0.weight", "2.weight", R"("__metadata__":{"activations":"tanh"},)");
  for (const auto& [bytes, options] : {std::pair{silent, ReadOptions{.activations = "tanh"}},
                                       {silent, ReadOptions{.activations = "", .hidden_activation = "tanh"}},
                                       {said, ReadOptions{}},
                                       {said, ReadOptions{.activations = "tanh,linear"}}}) {
    const Mlp mlp = to_mlp(read_safetensors(bytes, "net", options));
    EXPECT_EQ(mlp.layers.at(0).activation, Activation{ActivationKind::tanh});
    EXPECT_EQ(mlp.layers.at(1).activation, Activation{});
  }
  // Of a net of one layer it is that layer's.
  const std::string header = "{" + entry("0.weight", "F32", "[2,2]", 0, 16) + "}";
  const auto one = safetensors_bytes(header, std::string(16, '\0'));
  EXPECT_EQ(to_mlp(read_safetensors(one, "net", {.activations = "tanh"})).layers.at(0).activation,
            Activation{ActivationKind::tanh});
}

TEST(SafetensorsNet, scaling_and_ranges_must_fit) {
  const auto net = [](const std::string& names, const std::string& shape, const std::vector<float>& values) {
    std::string header = "{" + entry("0.weight", "F32", "[2,2]", 0, 16);
    std::size_t place = 16;
    std::string data(16, '\0');
    for (std::size_t begin = 0; begin < names.size(); begin = names.find(' ', begin) + 1) {
      const std::string name = names.substr(begin, names.find(' ', begin) - begin);
      header += "," + entry(name, "F32", shape, place, place + 4 * values.size());
      place += 4 * values.size();
      data += packed(values);
      if (names.find(' ', begin) == std::string::npos) break;
    }
    return reading(safetensors_bytes(header + "}", data));
  };
  EXPECT_EQ(net("input_mean input_stddev", "[2]", {1, 2}), "no error");
  EXPECT_THAT(net("input_mean", "[2]", {1, 2}),
              HasSubstr("found input_mean without input_stddev, expected both or neither"));
  EXPECT_THAT(net("output_stddev", "[2]", {1, 2}), HasSubstr("found output_stddev without output_mean"));
  EXPECT_THAT(net("output_mean output_stddev", "[3]", {1, 2, 3}),
              HasSubstr("tensor \"output_mean\": found shape [3], expected [2], one for each output"));
  EXPECT_THAT(net("input_mean input_stddev", "[2]", {1, 0}),
              HasSubstr("tensor \"input_stddev\" element [1]: found 0, expected a number above 0"));
  EXPECT_THAT(net("input_min", "[1,2]", {1, 2}), HasSubstr("tensor \"input_min\": found shape [1, 2], expected [2]"));
  EXPECT_THAT(net("input_min", "[2]", {1, NAN}), HasSubstr("tensor \"input_min\" element [1]: found nan"));
  EXPECT_EQ(net("input_max", "[2]", {1, INFINITY}), "no error");
}

TEST(SafetensorsNet, names_must_be_one_for_each_feature) {
  EXPECT_THAT(reading(two_layers("0.weight", "2.weight", R"("__metadata__":{"inputs":"a,b,c"},)")),
              HasSubstr("net: metadata \"inputs\": found 3 entries, expected 2, one for each feature"));
  EXPECT_THAT(reading(two_layers("0.weight", "2.weight", R"("__metadata__":{"inputs":"a,a"},)")),
              HasSubstr("found the name \"a\" a second time"));
}

TEST(SafetensorsNet, unusable_paths_are_named) {
  EXPECT_EQ(message_of([] { read_safetensors(std::filesystem::path("absent.safetensors")); }),
            "absent.safetensors: found no such file, expected a model file; check the path");
  EXPECT_THAT(message_of([] { read_safetensors(std::filesystem::path("/")); }), HasSubstr("found a folder"));
  EXPECT_THAT(message_of([] { read_safetensors(std::filesystem::path("/dev/null")); }), HasSubstr("a device or pipe"));
}

}  // namespace
}  // namespace lockstep::nn

#include "lockstep/nn/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/core/hdf5.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/test_folder.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/testing/small_model.h"

namespace lockstep::nn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::small_model;

class LoadTest : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  std::string loading(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = file(name, content);
    return message_of([&] { load(path); });
  }

  TestFolder folder_{"load"};
};

TEST_F(LoadTest, the_content_decides_not_the_name) {
  write_hdf5_model(folder_ / "net.safetensors", small_model());
  write_safetensors(folder_ / "net.h5", small_model());
  EXPECT_EQ(detect_format(folder_ / "net.safetensors"), ModelFormat::lockstep_hdf5);
  EXPECT_EQ(detect_format(folder_ / "net.h5"), ModelFormat::safetensors);
  EXPECT_EQ(load(folder_ / "net.safetensors").digest(), small_model().digest());
  EXPECT_EQ(load(folder_ / "net.h5").digest(), small_model().digest());
}

TEST_F(LoadTest, activations_given_beside_a_files_own_must_be_the_same) {
  write_safetensors(folder_ / "net.safetensors", small_model());
  write_hdf5_model(folder_ / "net.h5", small_model());
  std::string own;
  for (const DenseLayer& layer : to_mlp(small_model()).layers) {
    own += (own.empty() ? "" : ",") + to_string(layer.activation);
  }
  for (const char* name : {"net.safetensors", "net.h5"}) {
    const auto path = folder_ / name;
    EXPECT_EQ(load(path, {.activations = own}).digest(), small_model().digest());
    EXPECT_THAT(message_of([&] { load(path, {.activations = "selu,relu"}); }, ErrorKind::invalid_argument),
                AllOf(HasSubstr("options.activations: found \"selu,relu\", expected \"" + own + "\""),
                      HasSubstr(std::string(name) + " has of its own; leave them out")));
    EXPECT_THAT(message_of([&] { load(path, {.activations = "selu"}); }),
                HasSubstr("options.activations: found \"selu,identity\", expected \"" + own + "\""));
    EXPECT_THAT(message_of([&] { load(path, {.activations = "selu,selu,selu"}); }),
                HasSubstr("found 3 names (selu,selu,selu), expected 2"));
  }
  Model graph = small_model();
  graph.nodes.push_back({"twice", Binary{BinaryKind::add}, {graph.outputs[0].value, graph.outputs[0].value}});
  graph.outputs[0].value = "twice";
  write_hdf5_model(folder_ / "graph.h5", graph);
  EXPECT_THAT(message_of([&] { load(folder_ / "graph.h5", {.hidden_activation = "tanh"}); }),
              AllOf(HasSubstr("options.hidden_activation: found \"tanh\", expected none: "),
                    HasSubstr("graph.h5 says its operations itself")));
}

TEST_F(LoadTest, other_formats_are_named_with_a_way_out) {
  EXPECT_THAT(loading("net.pt", "PK\x03\x04....net/data.pkl...."),
              AllOf(HasSubstr("found a PyTorch file"), HasSubstr("from safetensors.torch import save_file")));
  EXPECT_THAT(loading("net.pkl", std::string("\x80\x04\x95.....", 8)),
              AllOf(HasSubstr("found a Python pickle"), HasSubstr("scikit-learn's as ONNX")));
  EXPECT_THAT(loading("saved_model.pb", std::string("\x08\x01\x12\x07.....", 9)),
              AllOf(HasSubstr("saved_model.pb: found a TensorFlow SavedModel"), HasSubstr("tf2onnx")));
  EXPECT_THAT(message_of([&] { load(folder_.path()); }), HasSubstr("found a TensorFlow SavedModel"));
  std::filesystem::remove(folder_ / "saved_model.pb");
  EXPECT_THAT(loading("net.keras", "PK\x03\x04....metadata.json....model.weights.h5"),
              HasSubstr("found no directory at its end (truncated), expected a whole zip archive"));
  EXPECT_THAT(loading("net.npz", "PK\x03\x04....arr_0.npy...."), HasSubstr("found NumPy arrays"));
  EXPECT_THAT(loading("net.npy", "\x93NUMPY...."), HasSubstr("found NumPy arrays"));
  EXPECT_THAT(loading("net.zip", "PK\x03\x04....readme.txt"), HasSubstr("found a file of no known model format"));
  EXPECT_THAT(loading("net", std::string("\x08\x08\x12\x07pytorch\x1a\x05", 14)), HasSubstr("ONNX"));
  EXPECT_THAT(loading("net.txt", "weights: 1 2 3"),
              AllOf(HasSubstr("net.txt: found a file of no known model format, expected "),
                    HasSubstr("safetensors or a Lockstep model in HDF5")));
  EXPECT_THAT(loading("empty", ""), HasSubstr("no known model format"));
  for (const char* name : {"net.mat", "net.bson", "net.jld2", "net.msgpack"}) {
    EXPECT_THAT(loading(name, "weights"), HasSubstr("docs/bringing_a_net.md has a recipe for nets of ")) << name;
  }
}

TEST_F(LoadTest, a_long_archive_is_known_by_the_names_at_its_end) {
  EXPECT_THAT(loading("net.pt", "PK\x03\x04" + std::string(1 << 20, 'x') + "net/data.pkl"),
              HasSubstr("found a PyTorch file"));
}

TEST_F(LoadTest, hdf5_files_of_others_are_told_apart) {
  {
    hdf5::File keras = hdf5::File::create(folder_ / "keras.h5");
    keras.set_attribute("model_config", "{}");
    keras.publish();
    hdf5::File result = hdf5::File::create(folder_ / "result.h5");
    result.create_group("run");
    result.publish();
  }
  EXPECT_THAT(message_of([&] { load(folder_ / "keras.h5"); }), HasSubstr("keras.h5: found no \"class_name\""));
  EXPECT_THAT(message_of([&] { load(folder_ / "result.h5"); }), HasSubstr("found an HDF5 file without a model"));
}

TEST_F(LoadTest, a_damaged_safetensors_file_gets_its_readers_diagnosis) {
  EXPECT_THAT(loading("net.safetensors", "short"), HasSubstr("found a file of 5 bytes, expected at least 8"));
  EXPECT_THAT(loading("net.safetensors", ""), HasSubstr("found a file of 0 bytes"));
  EXPECT_THAT(loading("net.safetensors", std::string(64, '\0')), HasSubstr("no '{' at its start"));
}

TEST_F(LoadTest, missing_files_are_named) {
  EXPECT_THAT(message_of([&] { load(folder_ / "absent.safetensors"); }),
              HasSubstr("absent.safetensors: found no such file, expected a model file"));
  EXPECT_THAT(message_of([&] { load(folder_.path()); }), HasSubstr("found a folder"));
}

}  // namespace
}  // namespace lockstep::nn

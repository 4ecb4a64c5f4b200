// For tests: ONNX graphs built node by node, what they evaluate to, and the words they are refused with.
#pragma once

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/onnx.h"

namespace lockstep::nn::testing {

// Of this process, so that two runs at once do not write each other's files; removed at its end.
inline const std::filesystem::path& own_folder() {
  struct Folder {
    std::filesystem::path path =
        std::filesystem::path(::testing::TempDir()) / ("lockstep-onnx-graphs-" + std::to_string(::getpid()));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

// Builds a graph of one input "x" [batch, 2] and one output "y", node by node.
class OnnxGraph {
 public:
  OnnxGraph() {
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
  OnnxGraph& around(Between between) {
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
    const std::filesystem::path path = own_folder() / name;
    std::ofstream(path, std::ios::binary) << model_.SerializeAsString();
    return path;
  }

 private:
  onnx::ModelProto model_;
};

inline Activation activation_of(const OnnxGraph& graph) {
  return to_mlp(read_onnx(graph.save())).layers.at(0).activation;
}
inline std::string refusal_of(const OnnxGraph& graph) {
  return message_of([&] { read_onnx(graph.save()); });
}

inline std::vector<double> outputs(const Model& model, std::vector<double> x) {
  std::vector<double> y(model.outputs[0].features.size());
  const auto plan = NetPlan<double>::compile(model);
  plan.evaluate(MatrixView<const double>{x.data(), 1, x.size(), static_cast<std::ptrdiff_t>(x.size()), 1},
                MatrixView<double>::row_major(y.data(), 1, y.size()));
  return y;
}

// Fills the axes or the shape of a node in the way of opset 13 and later.
inline onnx::NodeProto* shaped(OnnxGraph& graph, const std::string& op, const std::string& from,
                               std::vector<float> numbers, const std::string& to) {
  graph.tensor(to + "_numbers", {static_cast<std::int64_t>(numbers.size())}, numbers);
  return graph.node(op, {from, to + "_numbers"}, to);
}

}  // namespace lockstep::nn::testing

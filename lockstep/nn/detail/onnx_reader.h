// Walks an ONNX graph node by node and turns each into steps. The operators are read in four files: layers and
// normalisations, arithmetic, activations, and what moves features about.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lockstep/nn/detail/onnx_graph.h"
#include "lockstep/nn/detail/onnx_steps.h"
#include "lockstep/nn/detail/onnx_tensor.h"

namespace lockstep::nn::detail {

class GraphReader {
 public:
  GraphReader(const onnx::ModelProto& model, const std::filesystem::path& path);

  StepGraph read();

 private:
  using Node = onnx::NodeProto;
  // What depends on the inputs: [batch, features], or [batch] with one feature where the rank is 1. Exporters may turn
  // it round to [features, batch] to take columns, or pass through more dimensions (rank 3 stands for them all).
  struct Data {
    std::size_t step;
    int rank = 2;
    bool turned = false;
    std::vector<std::int64_t> extents = {};  // after the batch's, where there are more dimensions
  };
  using Value = std::variant<OnnxTensor, Data>;
  using Values = std::vector<Value>;

  // ---- onnx_graph.cpp
  std::string field(const std::string& what) const { return path_.string() + ": " + what; }
  std::string where(const Node& node) const;
  std::string place(const Node& node) const { return field(where(node)); }
  [[noreturn]] void unsupported(std::string found, std::string expected, std::string remedy) const;
  [[noreturn]] void unsupported(const Node& node, std::string found, std::string expected,
                                std::string remedy = {}) const;
  void read_opset(const onnx::ModelProto& model);
  std::set<std::string_view> needed_values() const;
  void read_inputs();
  std::size_t width_from_first_layer(const std::string& input) const;
  void read_node(const Node& node);
  Values results_of(const Node& node);
  const Value& known(const std::string& name, const std::string& who) const;
  const Value* operand(const Node& node, int i) const;  // null where it is left out
  const Value& required(const Node& node, int i) const;
  const OnnxTensor* constant(const Node& node, int i) const;  // null where it is data or left out
  const OnnxTensor& constant_operand(const Node& node, int i) const;
  Data data(const Node& node, int i) const;
  Data data_maybe_turned(const Node& node, int i) const;
  // Operand i as a step, be it data or numbers for each feature.
  Data data_or_numbers(const Node& node, int i);
  // A constant that acts on features alone, as x of this rank meets it: one number, or one for each feature.
  std::vector<double> per_feature(const Node& node, const OnnxTensor& tensor, int rank = 2) const;
  double single_number(const Node& node, const OnnxTensor& tensor) const;
  // Whole numbers in an attribute or, in newer opsets, an operand; empty where neither is there.
  std::optional<std::vector<std::int64_t>> whole_numbers(const Node& node, const char* name, int operand) const;
  std::size_t width(const Node& node, const Data& x) const;  // refuses one that is open
  void check_value(const Node& node, const char* name, double found, double expected) const;

  // ---- onnx_layers.cpp
  std::optional<Value> layer(const Node& node);
  Data product(const Node& node);
  Data gemm(const Node& node);
  Data turned_gemm(const Node& node);
  void require_turned(const Node& node, const Data& x) const;
  Data product_of_matrices(const Node& node);
  Step dense(const Node& node, const Data& x, const OnnxTensor& b, bool outputs_first);
  Data batch_normalization(const Node& node);
  Data layer_normalization(const Node& node);
  Data scaler(const Node& node);
  Data softmax(const Node& node);
  Data hardmax(const Node& node);

  // ---- onnx_arithmetic.cpp
  std::optional<Value> arithmetic(const Node& node);
  Data power(const Node& node);
  Value fold_operands(const Node& node);
  Value fold(const Node& node, const Value& a, const Value& b, BinaryKind kind);
  Data clip(const Node& node);
  Data reduce(const Node& node);
  Data choose(const Node& node);
  Data compare(const Node& node);

  // ---- onnx_shapes.cpp
  // Of nodes that read or make a value of more than two dimensions; nothing for others.
  std::optional<Values> more_dimensions(const Node& node);
  // Of functions of each element of [features, batch]; nothing for others.
  std::optional<Values> turned(const Node& node);
  // What the node makes of these values under the names of its operands.
  Values results_with(const Node& node, std::map<std::string, Value> operands);
  std::optional<std::vector<std::int64_t>> new_extents(const Node& node, const Data& x) const;
  static Data in_shape(std::size_t step, std::vector<std::int64_t> extents);
  std::string text_of(const Data& x) const;                            // "[batch, 2, 3]"
  static std::string text_of(const std::vector<std::int64_t>& shape);  // "[2, 3]"

  // ---- onnx_activation.cpp
  std::optional<Value> activation(const Node& node);

  // ---- onnx_columns.cpp
  std::optional<Values> columns(const Node& node);
  Value gather(const Node& node);
  struct SliceAlong {
    std::int64_t start, end, axis, step;
  };
  Value slice(const Node& node);
  Value slice(const Node& node, const Value& from, SliceAlong along);
  Values split(const Node& node);
  Value concat(const Node& node);
  Value shape_of(const Node& node);
  OnnxTensor filled(const Node& node, const OnnxTensor& shape) const;
  Value unchanged(const Node& node);
  Value reshaped(const Node& node, const Data& x);
  OnnxTensor reshaped(const Node& node, const OnnxTensor& tensor) const;
  Data select(const Node& node, const Data& x, std::vector<std::size_t> indices);
  void require_feature_axis(const Node& node, std::int64_t axis, int rank, bool turned = false) const;

  const onnx::GraphProto& graph_;
  const std::filesystem::path& path_;
  StepGraph result_;
  StepBuilder builder_;
  std::map<std::string, Value> values_;
  std::optional<std::int64_t> fixed_batch_;
};

}  // namespace lockstep::nn::detail

// Walks an ONNX graph node by node and turns each into steps. The operators are read in a file for each kind: layers,
// arithmetic, activations, selections, reductions, products, constants, and scikit-learn's own.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/nn/detail/onnx_dimensions.h"
#include "lockstep/nn/detail/onnx_graph.h"
#include "lockstep/nn/detail/onnx_steps.h"
#include "lockstep/nn/detail/onnx_tensor.h"

namespace lockstep::nn::detail {

class GraphReader {
 public:
  GraphReader(const onnx::ModelProto& model, const std::filesystem::path& path);

  StepGraph read(UnreadableOutputs unreadable);

 private:
  using Node = onnx::NodeProto;
  // What depends on the inputs: [batch, features], or [batch] with one feature where the rank is 1. Exporters may turn
  // it round to [features, batch] to take columns, or pass through more dimensions (rank 3 stands for them all).
  struct Data {
    std::size_t step;
    int rank = 2;
    bool turned = false;
    // Where there are more dimensions: those but the batch's, and how many of them stand before it.
    std::vector<std::int64_t> extents = {};
    std::size_t batch = 0;
  };
  // All dimensions of a value, the batch's among them as 1, and which that is; constants have none.
  struct Dimensions {
    Extents extents;
    std::optional<std::size_t> batch;
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
  void require_texts() const;
  void read_initialisers(const onnx::GraphProto& graph);
  Values branch(const Node& node, const OnnxTensor& condition);
  void read_inputs();
  std::size_t typed_input(const onnx::ValueInfoProto& input, const std::string& here, std::size_t step);
  std::size_t read_output(const onnx::ValueInfoProto& output) const;
  void leave_out(const onnx::ValueInfoProto& output, const Error& error, UnreadableOutputs unreadable);
  std::size_t width_from_first_layer(const std::string& input) const;
  void read_node(const Node& node);
  void require_numbers(const Node& node) const;
  void keep_nan(const Node& node, const std::string& name, const Value& value);
  void require_no_integers(const Node& node) const;
  void require_no_sample_numbers(const Node& node) const;
  bool makes_truths(const Node& node) const;
  bool makes_integers(const Node& node) const;
  static bool keeps_type(const std::string& op);  // of its operands, where it chooses or moves their numbers
  Values results_of(const Node& node);
  const Value& known(const std::string& name, const std::string& who) const;
  const Value* operand(const Node& node, int i) const;  // null where it is left out
  const Value& required(const Node& node, int i) const;
  const OnnxTensor* constant(const Node& node, int i) const;  // null where it is data or left out
  const OnnxTensor& constant_operand(const Node& node, int i) const;
  Data data(const Node& node, int i) const;
  Data data_maybe_turned(const Node& node, int i) const;
  // Operand i as a step, be it data or numbers for each feature, which meet x of this rank.
  Data data_or_numbers(const Node& node, int i, int rank = 2);
  // A constant that acts on features alone, as x of this rank meets it: one number, or one for each feature.
  std::vector<double> per_feature(const Node& node, const OnnxTensor& tensor, int rank = 2) const;
  double single_number(const Node& node, const OnnxTensor& tensor) const;
  // Whole numbers in an attribute or, in newer opsets, an operand; empty where neither is there.
  std::optional<std::vector<std::int64_t>> whole_numbers(const Node& node, const char* name, int operand) const;
  std::size_t width(const Node& node, const Data& x) const;  // refuses one that is open

  // ---- onnx_layers.cpp
  std::optional<Value> layer(const Node& node);
  Data product(const Node& node);
  Data gemm(const Node& node);
  Data turned_gemm(const Node& node);
  void require_turned(const Node& node, const Data& x) const;
  Data product_of_matrices(const Node& node);
  void require_finite(const Node& node) const;
  Step dense(const Node& node, const Data& x, const OnnxTensor& b, bool outputs_first);
  Data batch_normalization(const Node& node);
  Data layer_normalization(const Node& node);
  Data softmax(const Node& node);
  Data hardmax(const Node& node);

  // ---- onnx_arithmetic.cpp
  std::optional<Value> arithmetic(const Node& node);
  Data power(const Node& node);
  Value fold_operands(const Node& node);
  Value fold(const Node& node, const Value& a, const Value& b, BinaryKind kind);
  Data clip(const Node& node);
  std::pair<double, double> bounds(const Node& node) const;  // of Clip
  OnnxTensor clipped(const Node& node, OnnxTensor tensor) const;
  std::optional<Data> of_several_functions(const Node& node);
  Data reduce(const Node& node);
  Data choose(const Node& node);
  std::pair<Data, Data> operands_of_one_rank(const Node& node, const std::string& what);
  Data compare(const Node& node);
  Data no_number(const Node& node);
  Value modulo(const Node& node);

  // ---- onnx_shapes.cpp
  // Of nodes that read or make a value of more than two dimensions; nothing for others.
  std::optional<Values> more_dimensions(const Node& node);
  // Of functions of each element, broadcast to each other.
  Values elementwise(const Node& node);
  // What the node makes of these values under the names of its operands.
  Values results_with(const Node& node, std::map<std::string, Value> operands);
  std::optional<Dimensions> reshaped_dimensions(const Node& node, const Data& x) const;
  static std::string text_of(const Dimensions& x);                     // "[batch, 2, 3]"
  static std::string text_of(const std::vector<std::int64_t>& shape);  // "[2, 3]"

  // ---- onnx_views.cpp
  std::optional<Values> view(const Node& node);
  Dimensions dimensions_of(const Node& node, const Value& value) const;
  static Data with_dimensions(std::size_t step, Dimensions dimensions);
  std::size_t axis_of(const Node& node, std::int64_t axis, const Dimensions& x) const;  // refuses the batch's
  Picture picture_of(const Node& node, const Dimensions& x);
  Value pictured(const Node& node, const Value& value, const Picture& picture, std::optional<std::size_t> batch);
  Indices indices_within(const Node& node, const OnnxTensor& tensor, std::int64_t extent) const;
  Indices starts_of(const Node& node, const OnnxTensor& indices, const Extents& extents, std::size_t named) const;
  Picture gathered(const Node& node, const Dimensions& x, const Picture& picture,
                   std::optional<std::size_t>& batch) const;
  Value scattered(const Node& node);
  static bool numbers_samples(const OnnxTensor& indices, std::size_t named);
  Value scatter_reduced(const Node& node, const std::string& reduction, std::size_t x, std::size_t updates,
                        const Indices& targets, const Dimensions& dimensions);
  Values split_dimensions(const Node& node);
  Value concat_dimensions(const Node& node);
  Value padded(const Node& node, const Value& value, const Dimensions& x);
  Value expanded(const Node& node, const Value& value, const Dimensions& x);

  // ---- onnx_rows.cpp
  // Of reductions and of functions of several features together, over any dimensions but the batch's.
  std::optional<Values> over_dimensions(const Node& node);
  static const std::map<std::string_view, ReduceKind>& reductions();  // by operator
  Data reduced(const Node& node, std::size_t step, const std::vector<Indices>& groups, ReduceKind kind);
  Data side_by_side(const Node& node, std::size_t step, const std::vector<Indices>& groups, BinaryKind kind);
  Value reduce_dimensions(const Node& node);
  Value each_row(const Node& node);
  Indices row_axes(const Node& node, const Dimensions& x) const;
  bool reduces_nothing(const Node& node) const;
  Indices reduced_axes(const Node& node, const Dimensions& x) const;
  Data running_sums(const Node& node, std::size_t x, const std::vector<Indices>& rows);

  // ---- onnx_products.cpp
  std::optional<Values> products(const Node& node);
  struct Labelled {
    Value value;
    std::vector<int> labels;  // of each dimension; kFree for one of 1 that nothing else meets
  };
  Labelled contracted(const Node& node, const Labelled& a, const Labelled& b, const std::vector<int>& kept);
  Value in_order(const Node& node, const Labelled& product, const std::vector<int>& order);
  Value product_of_any(const Node& node);
  Value einsum(const Node& node);

  // ---- onnx_ml.cpp
  // Of the domain ai.onnx.ml.
  Value machine_learning(const Node& node);
  std::vector<double> floats(const Node& node, const char* name) const;
  Data scaler(const Node& node);
  Data imputer(const Node& node);
  Data normalizer(const Node& node);
  std::size_t with_norm_one(const Node& node, std::size_t x, const std::string& norm);
  Data linear_regressor(const Node& node);
  static std::size_t classes_of(const Node& node, const char* name);
  Values linear_classifier(const Node& node);
  Data linear_scores(const Node& node, std::size_t targets);

  // ---- onnx_constants.cpp
  // What the node makes of operands that are all constant, where the operator is known here.
  std::optional<Values> folded(const Node& node);
  Value chosen(const Node& node) const;
  void require_fixed(const Node& node, const OnnxTensor& tensor) const;
  OnnxTensor reduced_constant(const Node& node, const OnnxTensor& tensor);
  OnnxTensor rows_of_constant(const Node& node, const OnnxTensor& tensor);

  // ---- onnx_activation.cpp
  std::optional<Value> activation(const Node& node);

  // ---- onnx_columns.cpp
  std::optional<Values> columns(const Node& node);
  Value gather(const Node& node);
  struct SliceAlong {
    std::int64_t start, end, axis, step;
  };
  Value slice(const Node& node);
  std::vector<SliceAlong> slices_of(const Node& node) const;
  Value slice(const Node& node, const Value& from, SliceAlong along);
  bool whole_batch(const SliceAlong& along) const;
  Indices sliced(const Node& node, const SliceAlong& along, std::int64_t extent) const;
  std::vector<std::size_t> split_sizes(const Node& node, std::size_t whole) const;
  Values split(const Node& node);
  Value concat(const Node& node);
  void require_each_sample(const Node& node, const OnnxTensor& tensor) const;
  Value shape_of(const Node& node);
  OnnxTensor filled(const Node& node, const OnnxTensor& shape) const;
  Value unchanged(const Node& node);
  Value cast_like(const Node& node, const Data& x);
  Value reshaped(const Node& node, const Data& x);
  OnnxTensor reshaped(const Node& node, const OnnxTensor& tensor) const;
  Data select(const Node& node, const Data& x, std::vector<std::size_t> indices);
  void require_feature_axis(const Node& node, std::int64_t axis, int rank, bool turned = false) const;

  const onnx::GraphProto& graph_;
  const std::filesystem::path& path_;
  std::set<std::string_view> needed_;  // by the outputs
  StepGraph result_;
  StepBuilder builder_;
  std::map<std::string, Value> values_;
  std::map<std::string, std::string> not_offered_;  // which output of which node, by name
  std::map<std::string, Error> unreadable_;  // by name, why it cannot be read: no matter where no output needs it
  std::map<std::string, std::string> not_numbers_;  // where each constant with a NaN in it comes from, by name
  std::set<std::string> truths_;                    // values that ONNX calls bool
  std::set<std::string> integers_;                  // those that depend on the input and are integers there
  std::optional<std::int64_t> fixed_batch_;
  std::map<std::string, std::int64_t> opsets_;  // of other domains than ONNX' own
};

}  // namespace lockstep::nn::detail

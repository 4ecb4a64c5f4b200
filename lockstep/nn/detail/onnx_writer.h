// Writes a model as an ONNX graph: a node of the model becomes one operator where ONNX has it, else a few that are
// named after it. The operations are written in a file of their own, functions of single elements in another.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/core/precision.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

// Of the standard, as ONNX 1.12 had it (2022): what readers of all kinds have come to know, Debian 12's and Ubuntu
// 24.04's own among them. Before it there was no LayerNormalization; what came after it (Gelu, Mish, Swish) is a few
// operators here.
inline constexpr std::int64_t kWrittenOpset = 17;
inline constexpr std::int64_t kWrittenIrVersion = 8;

class OnnxWriter {
 public:
  // The model is valid.
  OnnxWriter(const Model& model, Precision precision);

  // All values are [batch, features]; constants are [1, features] until something needs them for each sample. The same
  // model gives the same bytes. Throws Error (model) naming a number that does not fit in float32.
  onnx::GraphProto write();
  // The tensors that hold a node's numbers.
  const std::vector<std::string>& tensors_of(const std::string& node) { return tensors_[node]; }

 private:
  using Names = std::vector<std::string>;
  struct Value {
    std::string name;
    bool each_sample = false;  // [batch, features]
    std::string truth = {};    // the same as bool, where it is there
  };

  // ---- onnx_writer.cpp: names, tensors, nodes
  std::string claim(const std::string& wanted);
  void find_readers();
  void name_values();
  void write_inputs();
  void write_outputs();
  void write_node(const Node& node);
  void check_fits(double value, const std::string& what) const;
  std::string tensor(const std::string& name, std::span<const double> values, std::vector<std::int64_t> shape);
  // Of the node being written, "NODE.name".
  std::string tensor_of_node(const std::string& name, std::span<const double> values, std::vector<std::int64_t> shape);
  std::string list(const char* name, const std::vector<double>& values);  // [values]
  std::string number(double value);                                       // a scalar, one for the whole graph
  std::string whole_numbers(const std::string& name, std::span<const std::int64_t> values);
  std::string feature_axis();
  std::string batch_shape();
  std::string each_sample(const Value& value);
  std::string truth_of(std::size_t input);
  bool read_as_number(const Node& node) const;

  // An operator that is part of the node being written, and its attributes.
  std::string piece(const char* op, Names inputs);
  void attribute(const char* name, std::int64_t value);
  void attribute(const char* name, double value);  // float32, as all of ONNX' are
  std::string cast(const std::string& x, onnx::TensorProto::DataType type);
  onnx::TensorProto::DataType type() const {
    return precision_ == Precision::f32 ? onnx::TensorProto::FLOAT : onnx::TensorProto::DOUBLE;
  }
  bool single() const { return precision_ == Precision::f32; }
  const std::string& x(std::size_t input = 0) const { return read_[input].name; }

  // ---- onnx_write_operations.cpp: each returns the name of what it made, by its last piece
  std::string write(const Dense& dense);
  std::string write(const Activate& activate);
  std::string write(const Standardise& standardise);
  std::string write(const Rescale& rescale);
  std::string write(const Constant& constant);
  std::string write(const Concatenate& concatenate);
  std::string write(const Columns& columns);
  std::string write(const Unary& unary);
  std::string write(const Clip& clip);
  std::string write(const DeadZone& zone);
  std::string write(const Binary& binary);
  std::string write(const Choose& choose);
  std::string write(const Softmax& softmax);
  std::string write(const Reduce& reduce);
  std::string write(const LayerNormalise& normalise);
  std::string write(const Select& select);
  std::string write(const Chain& chain);
  std::string write(const Interpolate& table);
  std::string clamped(const std::string& x, double minimum, double maximum);
  std::string remainder();  // of the two read
  std::string over_features(const char* op, const std::string& x);  // ReduceMean, ReduceMin, ReduceMax

  // ---- onnx_write_activations.cpp: of x, and of x times its derivative
  std::string activation(const Activation& activation, const std::string& x);
  std::string derivative(ActivationKind kind, double alpha, const std::string& first, const std::string& x);
  std::string exponential_unit(const std::string& x, const std::string& argument, double below, double above);
  std::string softplus(const std::string& x);
  std::string hard_sigmoid(const std::string& x);
  // In braces, whose elements are written in their order: the same model gives the same bytes by every compiler.
  std::string sum(Names two) { return piece("Add", std::move(two)); }
  std::string difference(Names two) { return piece("Sub", std::move(two)); }
  std::string product(Names two) { return piece("Mul", std::move(two)); }
  std::string quotient(Names two) { return piece("Div", std::move(two)); }
  // Where the condition is true the second, else the third.
  std::string one_of(Names three) { return piece("Where", std::move(three)); }

  const Model& model_;
  Precision precision_;
  onnx::GraphProto graph_;
  std::set<std::string> taken_;
  Names outputs_;  // what the graph calls the output ports: none may be called as an input port there
  std::map<std::string, std::string> named_;      // what the nodes' values are called here
  std::map<std::string, Value> values_;           // of input ports and the nodes written so far
  std::set<std::string> as_numbers_, as_truths_;  // what is read, what by a Select's condition
  std::set<std::string> written_;                 // nodes
  std::map<std::string, Names> tensors_;          // by node
  std::map<double, std::string> numbers_;
  std::string axis_, batch_;
  const Node* node_ = nullptr;  // being written
  std::vector<Value> read_;     // by it
  std::string truth_;           // of it
};

}  // namespace lockstep::nn::detail

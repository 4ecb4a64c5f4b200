// The arithmetic inside an ONNX graph as single steps on feature vectors, before they become a stack or a graph.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/nn/model.h"
#include "lockstep/nn/safetensors.h"

namespace lockstep::nn::detail {

enum class StepKind {
  input,
  constant,    // the numbers in `constant`, the same for every sample
  dense,       // W x + b
  add,         // x + constant
  multiply,    // x * constant
  divide,      // x / constant
  activation,  // element by element
  erf,
  cube,
  gelu_inner,  // x + 0.044715 x^3
  product,     // of two steps
  sum,         // of two steps
  operation,   // any other
};

struct Step {
  StepKind kind = StepKind::input;
  std::string where = {};              // the node, for messages: `node "/2/Gelu" (Gelu, opset 20)`
  std::vector<std::size_t> from = {};  // steps it reads
  std::vector<double> constant = {};   // one number, or one for each feature
  Dense dense = {};
  bool has_bias = false;  // dense: a bias was given
  Activation activation = {};
  Operation operation = Concatenate{};
  std::size_t width = 0;  // features made; 0 where the file leaves them open
};

struct StepPort {
  std::string name;
  std::size_t step;
};

struct StepGraph {
  std::vector<Step> steps;
  std::vector<StepPort> inputs, outputs;
  std::vector<std::string> left_out;  // outputs of the file that are not among them, and why
  std::int64_t opset = 0;
  WeightType weight_type = WeightType::f16;  // the widest of the dense layers'
};

// Throws Error as read_onnx() does.
StepGraph read_steps(const onnx::ModelProto& model, const std::filesystem::path& path, UnreadableOutputs unreadable);

// Is it a multiplication, addition or division with constants, a layer, an activation: a step that a stack may have?
bool may_stand_in_stack(const Step& step);

// The steps that the outputs need as nodes of a model whose ports are the graph's. A layer's missing bias, x * factor +
// term and (x - mean) / deviation become one node where nothing else reads what lies between; all else stays as it is.
Model model_of(const StepGraph& graph);

}  // namespace lockstep::nn::detail

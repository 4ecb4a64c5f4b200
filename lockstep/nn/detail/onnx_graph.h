// An ONNX graph as steps on one feature vector: constants folded, operators spelled out in pieces recognised, what
// changes nothing dropped.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/kernels/activation.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

enum class StepKind {
  input,
  dense,       // W x + b
  add,         // x + constant
  multiply,    // x * constant
  divide,      // x / constant
  activation,  // element by element
  erf,         // this and those below are pieces of activations; alone they are not supported
  cube,
  gelu_inner,  // x + 0.044715 x^3
  product,     // of two steps
  sum,         // of two steps
};

struct Step {
  StepKind kind = StepKind::input;
  std::string where;              // the node, for messages: `node "/2/Gelu" (Gelu, opset 20)`
  std::vector<std::size_t> from;  // steps it reads
  std::vector<double> constant;   // one number, or one for each feature
  Dense dense;
  bool has_bias = false;  // dense: a bias was given
  Activation activation;
};

struct StepGraph {
  std::vector<Step> steps;  // step 0 is the input
  std::size_t output = 0;
  std::size_t input_width = 0;  // 0: the file leaves it open
  std::string input_name, output_name;
  std::int64_t opset = 0;
  WeightType weight_type = WeightType::f16;  // the widest of the dense layers'
};

// Throws Error as read_onnx() does.
StepGraph read_steps(const onnx::ModelProto& model, const std::filesystem::path& path);

}  // namespace lockstep::nn::detail

// What a node of an ONNX graph holds beside its operands, and what it makes of operands that are all constant.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "lockstep/nn/detail/onnx_tensor.h"

namespace lockstep::nn::detail {

// Null where the node has none of that name.
const onnx::AttributeProto* attribute(const onnx::NodeProto& node, std::string_view name);
// Attributes are float32 in the file; what its author wrote is the shortest decimal that rounds to it: 0.2, not
// 0.20000000298. In float32 arithmetic both are the same number.
double number(const onnx::NodeProto& node, std::string_view name, double otherwise);
std::int64_t integer(const onnx::NodeProto& node, std::string_view name, std::int64_t otherwise);

// The three below throw Error, its field being `where`: (model) for numbers that are not finite, (unsupported) for
// shapes and kinds not known here.

// Of a Constant node. `path` is the model's file.
OnnxTensor read_constant(const onnx::NodeProto& node, const std::string& where, const std::filesystem::path& path);
// Add, Sub, Mul, Div of two constants, one of them a single number or both of one size.
OnnxTensor combine_constants(const onnx::NodeProto& node, const OnnxTensor& a, const OnnxTensor& b,
                             const std::string& where);
// Transpose, Sqrt, Neg, Reciprocal of a constant.
OnnxTensor apply_to_constant(const onnx::NodeProto& node, const OnnxTensor& tensor, const std::string& where);

}  // namespace lockstep::nn::detail

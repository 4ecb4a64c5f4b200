// What a node of an ONNX graph holds beside its operands, and what it makes of operands that are all constant.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/kernels/activation.h"
#include "lockstep/nn/detail/onnx_tensor.h"

namespace lockstep::nn::detail {

// Null where the node has none of that name.
const onnx::AttributeProto* attribute(const onnx::NodeProto& node, std::string_view name);
// Attributes are float32 in the file; what its author wrote is the shortest decimal that rounds to it: 0.2, not
// 0.20000000298. In float32 arithmetic both are the same number.
double number(const onnx::NodeProto& node, std::string_view name, double otherwise);
std::int64_t integer(const onnx::NodeProto& node, std::string_view name, std::int64_t otherwise);

// Of an operator that is one of our activations, its attributes read; nothing for others, and for those that take more
// than one.
std::optional<Activation> activation_of(const onnx::NodeProto& node);

bool is_utf8(const std::string& text);

// What to do about a node that cannot be read, where nothing better is known.
inline constexpr const char* kWriteAnother =
    "write it another way in the net and export again, or export the part before it";

// Those below throw Error, its field being `where`: (model) as check_computed(), (unsupported) for
// shapes and kinds not known here.

// "float16", "int64", ...: what ONNX calls its numbers in Python.
std::string type_name(std::int64_t type);
bool has_infinity(const OnnxTensor& tensor);
// Refuses NaN, and infinity where no operand has it: numbers overflowed, or a division was by 0.
void check_computed(const std::string& where, const OnnxTensor& result,
                    std::initializer_list<const OnnxTensor*> operands);
// Of a Constant node. `path` is the model's file.
OnnxTensor read_constant(const onnx::NodeProto& node, const std::string& where, const std::filesystem::path& path);
// Gives truth values of two operands, numbers or truth values.
bool is_comparison(const std::string& op);
// Element by element, broadcast as NumPy does it.
OnnxTensor combine_constants(BinaryKind kind, const OnnxTensor& a, const OnnxTensor& b, const std::string& where);
// Transpose of a matrix, or a function of each number (Sqrt, Exp, Softplus, Elu, ...) of a constant, in float64;
// nothing for other operators.
std::optional<OnnxTensor> apply_to_constant(const onnx::NodeProto& node, const OnnxTensor& tensor,
                                            const std::string& where);
// Numbers cut off or made truth values where `to`, an ONNX type, asks for it. Floats keep the digits they have.
OnnxTensor cast_constant(const OnnxTensor& tensor, std::int64_t to, const std::string& where);
// The parts `indices` of a constant along `axis`. Every index is within it.
enum class AxisKept { no, yes };
OnnxTensor take_constants(const OnnxTensor& tensor, std::size_t axis, std::span<const std::size_t> indices,
                          AxisKept kept, const std::string& where);
OnnxTensor join_constants(std::span<const OnnxTensor* const> parts, std::size_t axis, const std::string& where);

}  // namespace lockstep::nn::detail

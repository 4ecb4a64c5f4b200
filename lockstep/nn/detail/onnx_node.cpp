#include "lockstep/nn/detail/onnx_node.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

[[noreturn]] void unsupported(const std::string& where, std::string found, std::string expected) {
  throw Error(ErrorKind::unsupported, {where, std::move(found), std::move(expected), ""});
}

void check_finite(const std::string& where, const OnnxTensor& tensor) {
  for (const double value : tensor.values) {
    if (!std::isfinite(value)) refuse(where, "constants that are, or give, nan or infinity", "finite numbers");
  }
}

}  // namespace

const onnx::AttributeProto* attribute(const onnx::NodeProto& node, std::string_view name) {
  for (const auto& candidate : node.attribute()) {
    if (candidate.name() == name) return &candidate;
  }
  return nullptr;
}

double number(const onnx::NodeProto& node, std::string_view name, double otherwise) {
  const auto* found = attribute(node, name);
  if (!found) return otherwise;
  std::array<char, 32> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), found->f());
  double value = found->f();
  std::from_chars(text.data(), written.ptr, value);
  return value;
}

std::int64_t integer(const onnx::NodeProto& node, std::string_view name, std::int64_t otherwise) {
  const auto* found = attribute(node, name);
  return found ? found->i() : otherwise;
}

OnnxTensor read_constant(const onnx::NodeProto& node, const std::string& where, const std::filesystem::path& path) {
  OnnxTensor result;
  if (const auto* tensor = attribute(node, "value")) return read_tensor(tensor->t(), where, path);
  if (const auto* one = attribute(node, "value_float")) {
    result.values = {static_cast<double>(one->f())};
  } else if (const auto* many = attribute(node, "value_floats")) {
    result.values.assign(many->floats().begin(), many->floats().end());
    result.shape = {many->floats_size()};
  } else if (const auto* whole = attribute(node, "value_int")) {
    result.values = {static_cast<double>(whole->i())};
  } else if (const auto* wholes = attribute(node, "value_ints")) {
    result.values.assign(wholes->ints().begin(), wholes->ints().end());
    result.shape = {wholes->ints_size()};
  } else {
    unsupported(where, "a constant of another kind than tensors and numbers", "numbers");
  }
  check_finite(where, result);
  return result;
}

OnnxTensor combine_constants(const onnx::NodeProto& node, const OnnxTensor& a, const OnnxTensor& b,
                             const std::string& where) {
  const bool fits = a.is_scalar() || b.is_scalar() || a.values.size() == b.values.size();
  if (!fits || a.values.empty() || b.values.empty())
    unsupported(where, "constants of different shapes", "of one shape");
  const OnnxTensor& larger = a.is_scalar() && !b.is_scalar() ? b : a;
  OnnxTensor result = larger;
  result.type = std::max(a.type, b.type);
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const double x = a.values[a.is_scalar() ? 0 : i], y = b.values[b.is_scalar() ? 0 : i];
    const std::string& op = node.op_type();
    result.values[i] = op == "Add" ? x + y : op == "Sub" ? x - y : op == "Mul" ? x * y : x / y;
  }
  check_finite(where, result);
  return result;
}

OnnxTensor apply_to_constant(const onnx::NodeProto& node, const OnnxTensor& tensor, const std::string& where) {
  OnnxTensor result = tensor;
  if (node.op_type() == "Transpose") {
    if (tensor.shape.size() > 2) unsupported(where, "a tensor of rank above 2", "a matrix");
    const auto* order = attribute(node, "perm");
    const bool kept = order && order->ints_size() == 2 && order->ints(0) == 0;
    if (tensor.shape.size() < 2 || kept) return result;
    const auto rows = static_cast<std::size_t>(tensor.shape[0]), columns = static_cast<std::size_t>(tensor.shape[1]);
    std::swap(result.shape[0], result.shape[1]);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) result.values[c * rows + r] = tensor.values[r * columns + c];
    }
    return result;
  }
  for (double& value : result.values) {
    value = node.op_type() == "Sqrt" ? std::sqrt(value) : node.op_type() == "Neg" ? -value : 1 / value;
  }
  check_finite(where, result);
  return result;
}

}  // namespace lockstep::nn::detail

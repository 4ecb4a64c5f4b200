#include "lockstep/nn/detail/onnx_node.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/kernels/math/math.h"
#include "lockstep/nn/detail/onnx_dimensions.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

[[noreturn]] void unsupported(const std::string& where, std::string found, std::string expected) {
  throw Error(ErrorKind::unsupported, {where, std::move(found), std::move(expected), kWriteAnother});
}

constexpr std::size_t kMostNumbers = std::size_t{1} << 26;  // in a constant computed from others

double between_0_and_1(double x) { return std::min(std::max(x, 0.0), 1.0); }

// A function of each number by the operator's definition, its attributes set; empty for other operators.
std::function<double(double)> function_of(const onnx::NodeProto& node) {
  using Function = double (*)(double);
  static const std::map<std::string_view, Function> plain{
      {"Sqrt", [](double x) { return std::sqrt(x); }},
      {"Neg", [](double x) { return -x; }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Abs", [](double x) { return std::fabs(x); }},
      {"Cos", [](double x) { return std::cos(x); }},
      {"Tan", [](double x) { return std::tan(x); }},
      {"Asin", [](double x) { return std::asin(x); }},
      {"Acos", [](double x) { return std::acos(x); }},
      {"Atan", [](double x) { return std::atan(x); }},
      {"Sinh", [](double x) { return std::sinh(x); }},
      {"Cosh", [](double x) { return std::cosh(x); }},
      {"Asinh", [](double x) { return std::asinh(x); }},
      {"Acosh", [](double x) { return std::acosh(x); }},
      {"Atanh", [](double x) { return std::atanh(x); }},
      {"Erf", [](double x) { return std::erf(x); }},
      {"Sign", [](double x) { return x > 0   ? 1.0
                                     : x < 0 ? -1.0
                                             : 0.0; }},
      {"Not", [](double x) { return x == 0 ? 1.0 : 0.0; }},
      {"Floor", [](double x) { return std::floor(x); }},
      {"Ceil", [](double x) { return std::ceil(x); }},
      {"Round", [](double x) { return std::nearbyint(x); }}};
  const std::string& op = node.op_type();
  if (const auto found = plain.find(op); found != plain.end()) return found->second;
  if (const auto one = activation_of(node)) return [a = *one](double x) { return activate(a, x); };
  const auto alpha = [&](double otherwise) { return number(node, "alpha", otherwise); };
  if (op == "ThresholdedRelu") return [a = alpha(1)](double x) { return x > a ? x : 0; };
  if (op == "Selu") {
    const double gamma = number(node, "gamma", 1.0507009873554805);
    return [a = Activation{ActivationKind::elu, alpha(1.6732632423543772)}, gamma](double x) {
      return gamma * activate(a, x);
    };
  }
  if (op == "Swish") {
    return [a = alpha(1)](double x) { return x * activate(Activation{ActivationKind::sigmoid}, a * x); };
  }
  if (op == "HardSigmoid") {
    return [a = alpha(0.2), b = number(node, "beta", 0.5)](double x) { return between_0_and_1(a * x + b); };
  }
  if (op == "Shrink") {
    return [edge = number(node, "lambd", 0.5), bias = number(node, "bias", 0)](double x) {
      return x < -edge ? x + bias : x > edge ? x - bias : 0;
    };
  }
  return {};
}

double combined(BinaryKind kind, double x, double y) {
  switch (kind) {
    case BinaryKind::add:
      return x + y;
    case BinaryKind::subtract:
      return x - y;
    case BinaryKind::multiply:
      return x * y;
    case BinaryKind::divide:
      return x / y;
    case BinaryKind::minimum:
      return std::min(x, y);
    case BinaryKind::maximum:
      return std::max(x, y);
    case BinaryKind::modulo:
      return math::modulo(x, y);
    default:
      return std::pow(x, y);
  }
}

// Where one at least stands for the size of the batch or the number of a sample: the other must leave that as it is.
double combined_of_batch(BinaryKind kind, double x, double y, const std::string& where) {
  const bool adds = kind == BinaryKind::add, times = kind == BinaryKind::multiply;
  if ((y == 0 && (adds || kind == BinaryKind::subtract)) || (y == 1 && (times || kind == BinaryKind::divide))) return x;
  if ((x == 0 && adds) || (x == 1 && times)) return y;
  if (!is_of_sample(x) && !is_of_sample(y))
    unsupported(where, "arithmetic with the size of the batch", "fixed numbers");
  return kOfSampleNumber;
}

}  // namespace

bool has_infinity(const OnnxTensor& tensor) {
  return std::ranges::any_of(tensor.values, [](double value) { return std::isinf(value); });
}

void check_computed(const std::string& where, const OnnxTensor& result,
                    std::initializer_list<const OnnxTensor*> operands) {
  const bool given = std::ranges::any_of(operands, [](const OnnxTensor* operand) { return has_infinity(*operand); });
  for (const double value : result.values) {
    if (std::isfinite(value) || (given && std::isinf(value))) continue;
    refuse(where, std::string("constants that are, or give, ") + (std::isnan(value) ? "nan" : "infinity"), "numbers");
  }
}

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

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

std::string type_name(std::int64_t type) {
  if (type == onnx::TensorProto::FLOAT) return "float32";
  if (type == onnx::TensorProto::DOUBLE) return "float64";
  if (type != static_cast<int>(type) || !onnx::TensorProto::DataType_IsValid(static_cast<int>(type))) {
    return "ONNX type " + std::to_string(type);
  }
  std::string name = onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(type));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
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
    result.whole = true;
  } else if (const auto* wholes = attribute(node, "value_ints")) {
    result.values.assign(wholes->ints().begin(), wholes->ints().end());
    result.shape = {wholes->ints_size()};
    result.whole = true;
  } else {
    unsupported(where, "a constant of another kind than tensors and numbers", "numbers");
  }
  return result;
}

bool is_comparison(const std::string& op) {
  static const std::set<std::string_view> known{"Equal",          "Less", "LessOrEqual", "Greater",
                                                "GreaterOrEqual", "And",  "Or",          "Xor"};
  return known.contains(op);
}

OnnxTensor combine_constants(BinaryKind kind, const OnnxTensor& a, const OnnxTensor& b, const std::string& where) {
  const std::size_t rank = std::max(a.shape.size(), b.shape.size());
  OnnxTensor result;
  result.type = std::max(a.type, b.type);
  result.whole = a.whole && (b.whole || kind == BinaryKind::power);  // a power has the type of its base
  result.each_sample = a.each_sample || b.each_sample;
  result.shape.assign(rank, 1);
  std::vector<std::size_t> a_step(rank, 0), b_step(rank, 0);
  std::size_t count = 1, a_count = 1, b_count = 1;
  for (std::size_t i = rank; i-- > 0;) {
    const std::size_t from_end = rank - i;
    const std::int64_t in_a = from_end <= a.shape.size() ? a.shape[a.shape.size() - from_end] : 1;
    const std::int64_t in_b = from_end <= b.shape.size() ? b.shape[b.shape.size() - from_end] : 1;
    if (in_a != in_b && in_a != 1 && in_b != 1) unsupported(where, "constants of different shapes", "of one shape");
    result.shape[i] = std::max(in_a, in_b);
    if (in_a > 1) a_step[i] = a_count;
    if (in_b > 1) b_step[i] = b_count;
    a_count *= static_cast<std::size_t>(in_a);
    b_count *= static_cast<std::size_t>(in_b);
    if (count > kMostNumbers / std::max<std::size_t>(static_cast<std::size_t>(result.shape[i]), 1)) {
      unsupported(where, "a constant of more numbers than a net has", "at most 2^26");
    }
    count *= static_cast<std::size_t>(result.shape[i]);
  }
  if (a.values.empty() || b.values.empty()) unsupported(where, "an empty constant", "numbers");
  result.values.resize(count);
  std::vector<std::size_t> at(rank, 0);
  std::size_t in_a = 0, in_b = 0;
  for (double& value : result.values) {
    const double x = a.values[in_a], y = b.values[in_b];
    const bool of_batch = (a.holds_batch && is_of_batch(x)) || (b.holds_batch && is_of_batch(y));
    value = of_batch ? combined_of_batch(kind, x, y, where) : combined(kind, x, y);
    result.holds_batch = result.holds_batch || of_batch;
    if (result.whole) value = std::trunc(value);
    for (std::size_t i = rank; i-- > 0;) {  // the next place, as an odometer
      in_a += a_step[i];
      in_b += b_step[i];
      if (++at[i] < static_cast<std::size_t>(result.shape[i])) break;
      in_a -= a_step[i] * at[i];
      in_b -= b_step[i] * at[i];
      at[i] = 0;
    }
  }
  check_computed(where, result, {&a, &b});
  return result;
}

std::optional<OnnxTensor> apply_to_constant(const onnx::NodeProto& node, const OnnxTensor& tensor,
                                            const std::string& where) {
  const std::string& op = node.op_type();
  OnnxTensor result = tensor;
  if (op == "Transpose") {
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
  const std::function<double(double)> function = function_of(node);
  if (function == nullptr) return {};
  if (tensor.holds_batch) unsupported(where, "arithmetic with the size of the batch", "fixed numbers");
  for (double& value : result.values) value = function(value);
  check_computed(where, result, {&tensor});
  return result;
}

OnnxTensor cast_constant(const OnnxTensor& tensor, std::int64_t to, const std::string& where) {
  OnnxTensor result = tensor;
  switch (to) {
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
      result.whole = false;
      return result;
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::INT32:
      for (double& value : result.values) value = std::trunc(value);
      break;
    case onnx::TensorProto::BOOL:
      if (tensor.holds_batch) unsupported(where, "the size of the batch as a truth value", "fixed numbers");
      for (double& value : result.values) value = value != 0 ? 1 : 0;
      break;
    default:
      unsupported(where, "a rounding to " + type_name(to), "floats, int32, int64 or truth values");
  }
  result.whole = true;
  return result;
}

OnnxTensor take_constants(const OnnxTensor& tensor, std::size_t axis, std::span<const std::size_t> indices,
                          AxisKept kept, const std::string& where) {
  std::size_t before = 1, after = 1;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (i < axis) before *= static_cast<std::size_t>(tensor.shape[i]);
    if (i > axis) after *= static_cast<std::size_t>(tensor.shape[i]);
  }
  if (before * after > 0 && indices.size() > kMostNumbers / (before * after)) {
    unsupported(where, "a constant of more numbers than a net has", "at most 2^26");
  }
  OnnxTensor result{tensor.shape, {}, tensor.type, tensor.holds_batch, tensor.whole, tensor.each_sample};
  result.values = taken(tensor.values, tensor.shape, axis, indices, 0.0);
  result.shape[axis] = static_cast<std::int64_t>(indices.size());
  if (kept == AxisKept::no) result.shape.erase(result.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  result.holds_batch = tensor.holds_batch && std::ranges::any_of(result.values, is_of_batch);
  return result;
}

OnnxTensor join_constants(std::span<const OnnxTensor* const> parts, std::size_t axis, const std::string& where) {
  OnnxTensor result{parts[0]->shape, {}, parts[0]->type, false, parts[0]->whole};
  result.shape[axis] = 0;
  std::size_t total = 0;
  for (const OnnxTensor* part : parts) total += part->values.size();
  if (total > kMostNumbers) unsupported(where, "a constant of more numbers than a net has", "at most 2^26");
  std::size_t before = 1;
  for (std::size_t i = 0; i < axis; ++i) before *= static_cast<std::size_t>(result.shape[i]);
  for (const OnnxTensor* part : parts) {
    std::vector<std::int64_t> shape = part->shape;
    if (shape.size() != result.shape.size()) unsupported(where, "constants of different ranks", "of one rank");
    shape[axis] = result.shape[axis];
    if (shape != result.shape) unsupported(where, "constants of different shapes", "of one shape but for the axis");
    result.shape[axis] += part->shape[axis];
    result.type = std::max(result.type, part->type);
    result.holds_batch = result.holds_batch || part->holds_batch;
    result.each_sample = result.each_sample || part->each_sample;
  }
  for (std::size_t b = 0; b < before; ++b) {
    for (const OnnxTensor* part : parts) {
      const std::size_t run = part->values.size() / std::max<std::size_t>(before, 1);
      const auto first = part->values.begin() + static_cast<std::ptrdiff_t>(b * run);
      result.values.insert(result.values.end(), first, first + static_cast<std::ptrdiff_t>(run));
    }
  }
  return result;
}

}  // namespace lockstep::nn::detail

// Values of other shapes than [batch, features]. Of more dimensions, [batch, ...]: a net may pass through them, element
// by element and by products with matrices, and come back. Turned round, [features, batch]: element by element.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_reader.h"

namespace lockstep::nn::detail {
namespace {

bool is_elementwise(const std::string& op) {
  static const std::set<std::string_view> known{"Identity",    "Dropout",
                                                "Cast",        "Relu",
                                                "Tanh",        "Sigmoid",
                                                "Softplus",    "Softsign",
                                                "Mish",        "HardSwish",
                                                "Sin",         "Cos",
                                                "LeakyRelu",   "Elu",
                                                "Celu",        "Selu",
                                                "Erf",         "Gelu",
                                                "Swish",       "Sign",
                                                "HardSigmoid", "ThresholdedRelu",
                                                "Shrink",      "Sqrt",
                                                "Exp",         "Log",
                                                "Abs",         "Neg",
                                                "Reciprocal",  "Clip",
                                                "Add",         "Sub",
                                                "Mul",         "Div",
                                                "Min",         "Max",
                                                "Pow",         "Sum",
                                                "Mean",        "PRelu",
                                                "SwiGLU"};
  return known.contains(op);
}

// Of a value of `rank` dimensions, ascending; nothing where one is the batch's, out of range, or named twice.
std::optional<std::vector<std::size_t>> feature_axes(std::vector<std::int64_t> axes, std::size_t rank) {
  std::vector<std::size_t> result;
  for (std::int64_t axis : axes) {
    if (axis < 0) axis += static_cast<std::int64_t>(rank);
    if (axis < 1 || axis >= static_cast<std::int64_t>(rank)) return {};
    result.push_back(static_cast<std::size_t>(axis));
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) return {};
  return result;
}

// For each number of `to`, in order, the one that it meets of an operand broadcast to it; nothing where that does not
// fit. Both are extents after the batch's; constants may begin with a 1 for it.
std::optional<std::vector<std::size_t>> broadcast(std::vector<std::int64_t> from, const std::vector<std::int64_t>& to) {
  if (from.size() == to.size() + 1 && from[0] == 1) from.erase(from.begin());
  if (from.size() > to.size()) return {};
  from.insert(from.begin(), to.size() - from.size(), 1);
  std::vector<std::size_t> indices{0};
  std::size_t numbers = 1;  // of `from`, in the dimensions met so far
  for (std::size_t axis = to.size(); axis-- > 0;) {
    if (from[axis] != to[axis] && from[axis] != 1) return {};
    const std::size_t inner = indices.size();
    if (static_cast<std::size_t>(to[axis]) > kMostFeatures / inner) return {};
    for (std::int64_t at = 1; at < to[axis]; ++at) {
      for (std::size_t i = 0; i < inner; ++i) {
        indices.push_back(indices[i] + (from[axis] == 1 ? 0 : static_cast<std::size_t>(at) * numbers));
      }
    }
    numbers *= static_cast<std::size_t>(from[axis]);
  }
  return indices;
}

}  // namespace

std::string GraphReader::text_of(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += (text.empty() ? "[" : ", ") + std::to_string(extent);
  return text.empty() ? "[]" : text + "]";
}

std::string GraphReader::text_of(const Data& x) const {
  if (x.rank == 1) return "[batch]";
  const std::vector<std::int64_t> features{static_cast<std::int64_t>(builder_.width(x.step))};
  return "[batch, " + text_of(x.rank == 2 ? features : x.extents).substr(1);
}

GraphReader::Data GraphReader::in_shape(std::size_t step, std::vector<std::int64_t> extents) {
  if (extents.size() < 2) return {step, extents.empty() ? 1 : 2};
  return {step, 3, false, std::move(extents)};
}

// The extents after the batch's that Flatten, Reshape, Squeeze or Unsqueeze gives x; nothing where it does not keep the
// batch, or the width is open.
std::optional<std::vector<std::int64_t>> GraphReader::new_extents(const Node& node, const Data& x) const {
  const std::string& op = node.op_type();
  const auto features = static_cast<std::int64_t>(builder_.width(x.step));
  if (features == 0 || x.turned) return {};
  std::vector<std::int64_t> from = x.extents;
  if (x.rank == 2) from = {features};
  if (op == "Flatten") {
    if (integer(node, "axis", 1) != 1) return {};
    return std::vector<std::int64_t>{features};
  }
  if (op == "Unsqueeze" || op == "Squeeze") {
    const bool adds = op == "Unsqueeze";
    const auto given = whole_numbers(node, "axes", 1);
    std::vector<std::int64_t> to;
    if (!given) {
      if (adds) return {};
      std::copy_if(from.begin(), from.end(), std::back_inserter(to), [](std::int64_t extent) { return extent != 1; });
      return to;
    }
    const auto axes = feature_axes(*given, 1 + from.size() + (adds ? given->size() : 0));
    if (!axes) return {};
    const std::size_t rank = 1 + from.size() + (adds ? axes->size() : 0);
    for (std::size_t axis = 1, next = 0; axis < rank; ++axis) {
      const bool named = std::binary_search(axes->begin(), axes->end(), axis);
      if (adds) {
        to.push_back(named ? 1 : from[next++]);
      } else if (!named) {
        to.push_back(from[axis - 1]);
      } else if (from[axis - 1] != 1) {
        return {};
      }
    }
    return to;
  }
  const OnnxTensor& shape = constant_operand(node, 1);
  if (shape.values.empty()) return {};
  const double batch = shape.values[0];
  if (batch != 0 && batch != -1 && !(fixed_batch_ && batch == static_cast<double>(*fixed_batch_))) return {};
  std::vector<std::int64_t> to;
  std::int64_t product = 1;
  std::size_t open = 0;  // the place of -1
  for (std::size_t i = 1; i < shape.values.size(); ++i) {
    double extent = shape.values[i];
    if (extent == 0 && i <= from.size()) extent = static_cast<double>(from[i - 1]);
    if (extent == -1 && open == 0 && (batch != -1 || shape.holds_batch)) {
      open = i;
      extent = 1;
    }
    if (!(extent >= 1 && extent <= static_cast<double>(features))) return {};
    to.push_back(static_cast<std::int64_t>(extent));
    product *= to.back();
    if (product > features) return {};
  }
  if (open > 0) product *= to[open - 1] = features / product;
  if (product != features) return {};
  return to;
}

// What Flatten, Reshape, Squeeze or Unsqueeze make of a constant: the same numbers in the same order.
OnnxTensor GraphReader::reshaped(const Node& node, const OnnxTensor& tensor) const {
  const std::string& op = node.op_type();
  const auto rank = static_cast<std::int64_t>(tensor.shape.size());
  OnnxTensor result = tensor;
  result.shape.clear();
  const auto not_possible = [&](const std::string& asked) {
    unsupported(node, text_of(tensor.shape) + " as " + asked, "a shape of as many numbers");
  };
  if (op == "Flatten") {
    std::int64_t axis = integer(node, "axis", 1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis > rank) not_possible("a matrix split at axis " + std::to_string(axis));
    result.shape = {1, 1};
    for (std::int64_t i = 0; i < rank; ++i) result.shape[i < axis ? 0 : 1] *= tensor.shape[static_cast<std::size_t>(i)];
    return result;
  }
  if (op == "Reshape") {
    const OnnxTensor& to = constant_operand(node, 1);
    if (to.holds_batch) unsupported(node, "a constant of as many parts as the batch", "constants of fixed extents");
    const auto numbers = static_cast<double>(tensor.values.size());
    const bool copies = integer(node, "allowzero", 0) == 0;
    double product = 1;
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < to.values.size(); ++i) {
      double extent = to.values[i];
      if (extent == 0 && copies && i < tensor.shape.size()) extent = static_cast<double>(tensor.shape[i]);
      if (extent == -1 && !open) {
        open = i;
        extent = 1;
      }
      if (!(extent >= 1 && (product *= extent) <= numbers)) not_possible("the shape asked for");
      result.shape.push_back(static_cast<std::int64_t>(extent));
    }
    if (open) result.shape[*open] = static_cast<std::int64_t>(numbers / product);
    if ((open ? std::fmod(numbers, product) : numbers - product) != 0) not_possible(text_of(result.shape));
    return result;
  }
  const bool adds = op == "Unsqueeze";
  const auto axes = whole_numbers(node, "axes", 1);
  if (!axes) {
    if (adds) not_possible("one of more dimensions that are not named");
    std::copy_if(tensor.shape.begin(), tensor.shape.end(), std::back_inserter(result.shape),
                 [](std::int64_t extent) { return extent != 1; });
    return result;
  }
  const std::int64_t all = rank + (adds ? static_cast<std::int64_t>(axes->size()) : 0);
  std::set<std::int64_t> named;
  for (const std::int64_t axis : *axes) named.insert(axis < 0 ? axis + all : axis);
  if (named.size() != axes->size() || (!named.empty() && (*named.begin() < 0 || *named.rbegin() >= all))) {
    not_possible("one with axes " + text_of(*axes));
  }
  for (std::int64_t axis = 0, next = 0; axis < all; ++axis) {
    if (adds) {
      result.shape.push_back(named.contains(axis) ? 1 : tensor.shape[static_cast<std::size_t>(next++)]);
    } else if (!named.contains(axis)) {
      result.shape.push_back(tensor.shape[static_cast<std::size_t>(axis)]);
    } else if (tensor.shape[static_cast<std::size_t>(axis)] != 1) {
      not_possible("one without axis " + std::to_string(axis));
    }
  }
  return result;
}

std::optional<GraphReader::Values> GraphReader::more_dimensions(const Node& node) {
  const std::string& op = node.op_type();
  if (op == "Flatten" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze") {
    const auto* const x = std::get_if<Data>(&required(node, 0));
    if (x == nullptr) return {};
    auto extents = new_extents(node, *x);
    if (!extents || (x->rank < 3 && extents->size() < 2)) return {};
    return Values{in_shape(x->step, std::move(*extents))};
  }
  std::vector<std::int64_t> extents;  // of the operands, as broadcast to each other
  bool alike = true;
  for (int i = 0; i < node.input_size(); ++i) {
    const Value* const value = operand(node, i);
    const auto* const x = value ? std::get_if<Data>(value) : nullptr;
    if (x == nullptr || x->rank < 3) continue;
    if (extents.empty()) extents.assign(x->extents.size(), 1);
    alike = alike && extents.size() == x->extents.size();
    for (std::size_t axis = 0; alike && axis < extents.size(); ++axis) {
      extents[axis] = std::max(extents[axis], x->extents[axis]);
    }
  }
  if (extents.empty() || op == "Shape") return {};
  if (op == "MatMul") return Values{product_of_matrices(node)};
  const std::string shape = "[batch, " + text_of(extents).substr(1);
  if (!is_elementwise(op)) {
    unsupported(node, shape, "[batch, features]", "bring it back to that shape first (Squeeze, Reshape)");
  }
  std::map<std::string, Value> operands;
  for (int i = 0; i < node.input_size() && alike; ++i) {
    const Value* const value = operand(node, i);
    if (value == nullptr) continue;
    if (const auto* const x = std::get_if<Data>(value)) {
      const auto indices = x->rank == 3 ? broadcast(x->extents, extents) : std::nullopt;
      alike = indices.has_value();
      if (alike) operands.emplace(node.input(i), select(node, {x->step}, *indices));
      continue;
    }
    const auto& numbers = std::get<OnnxTensor>(*value);
    if (numbers.is_scalar() && numbers.shape.size() <= extents.size() + 1) {
      OnnxTensor number = numbers;
      number.shape.clear();
      operands.emplace(node.input(i), std::move(number));
      continue;
    }
    const auto indices = broadcast(numbers.shape, extents);
    alike = indices && !numbers.values.empty() && !numbers.holds_batch;
    if (!alike) continue;
    OnnxTensor all{{1, static_cast<std::int64_t>(indices->size())}, {}, numbers.type, false};
    for (const std::size_t index : *indices) all.values.push_back(numbers.values[index]);
    operands.emplace(node.input(i), std::move(all));
  }
  if (!alike) {
    unsupported(node, "operands of other shapes than " + shape, "shapes that are broadcast to it, or one number");
  }
  Values results = results_with(node, std::move(operands));
  for (Value& result : results) {
    if (auto* const made = std::get_if<Data>(&result)) *made = in_shape(made->step, extents);
  }
  return results;
}

std::optional<GraphReader::Values> GraphReader::turned(const Node& node) {
  if (!is_elementwise(node.op_type())) return {};
  bool any = false, all = true;
  for (int i = 0; i < node.input_size(); ++i) {
    const Value* const value = operand(node, i);
    const auto* const x = value ? std::get_if<Data>(value) : nullptr;
    any = any || (x && x->turned);
  }
  if (!any) return {};
  std::map<std::string, Value> operands;
  for (int i = 0; i < node.input_size(); ++i) {
    const Value* const value = operand(node, i);
    if (value == nullptr) continue;
    if (const auto* const x = std::get_if<Data>(value)) {
      all = all && x->turned;
      operands.emplace(node.input(i), Data{x->step});
      continue;
    }
    OnnxTensor numbers = std::get<OnnxTensor>(*value);
    if (numbers.is_scalar()) continue;
    all = all && numbers.shape.size() == 2 && numbers.shape[1] == 1;
    if (all) std::swap(numbers.shape[0], numbers.shape[1]);
    operands.emplace(node.input(i), std::move(numbers));
  }
  if (!all) {
    unsupported(node, "an operand that is not [features, batch] beside one that is",
                "both so, constants [features, 1] or one number", "transpose one of them in the net");
  }
  Values results = results_with(node, std::move(operands));
  for (Value& result : results) {
    if (auto* const made = std::get_if<Data>(&result)) made->turned = true;
  }
  return results;
}

GraphReader::Values GraphReader::results_with(const Node& node, std::map<std::string, Value> operands) {
  for (auto& [name, value] : operands) std::swap(values_[name], value);
  Values results = results_of(node);
  for (auto& [name, value] : operands) std::swap(values_[name], value);
  return results;
}

}  // namespace lockstep::nn::detail

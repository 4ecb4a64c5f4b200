// Values of more than two dimensions, [batch, ...]: a net may pass through such a shape, element by element, and come
// back to [batch, features]; the numbers and their order stay as they are.
#include <algorithm>
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
                                                "Mean"};
  return known.contains(op);
}

std::string text_of(const std::vector<std::int64_t>& extents) {
  std::string text = "[batch";
  for (const std::int64_t extent : extents) text += ", " + std::to_string(extent);
  return text + "]";
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

}  // namespace

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

std::optional<GraphReader::Values> GraphReader::more_dimensions(const Node& node) {
  const std::string& op = node.op_type();
  if (op == "Flatten" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze") {
    const auto* const x = std::get_if<Data>(&required(node, 0));
    if (x == nullptr) return {};
    auto extents = new_extents(node, *x);
    if (!extents || (x->rank < 3 && extents->size() < 2)) return {};
    return Values{in_shape(x->step, std::move(*extents))};
  }
  const std::vector<std::int64_t>* shape = nullptr;
  bool alike = true;
  for (int i = 0; i < node.input_size(); ++i) {
    const Value* const value = operand(node, i);
    const auto* const x = value ? std::get_if<Data>(value) : nullptr;
    if (x == nullptr || x->rank < 3) continue;
    alike = alike && (shape == nullptr || *shape == x->extents);
    shape = &x->extents;
  }
  if (shape == nullptr) return {};
  std::vector<std::int64_t> extents = *shape;
  // A product for each sample is one with its only row.
  const bool one_row = std::all_of(extents.begin(), extents.end() - 1, [](std::int64_t extent) { return extent == 1; });
  const bool product = op == "MatMul" && one_row;
  if (!product && !is_elementwise(op)) {
    unsupported(node, text_of(extents), "[batch, features]", "bring it back to that shape first (Squeeze, Reshape)");
  }
  // One number, or one for each feature of an only row.
  const auto meets = [&](const OnnxTensor& numbers) {
    return numbers.is_scalar() || (one_row && !numbers.shape.empty() && numbers.shape.back() == extents.back() &&
                                   static_cast<std::int64_t>(numbers.values.size()) == extents.back());
  };
  std::map<std::string, Value> kept;
  for (int i = 0; i < node.input_size(); ++i) {
    const Value* const value = operand(node, i);
    if (value == nullptr) continue;
    const auto* const x = std::get_if<Data>(value);
    if (x != nullptr && x->rank == 3) {
      kept.emplace(node.input(i), *x);
    } else if (!product) {
      alike = alike && x == nullptr && meets(std::get<OnnxTensor>(*value));
    }
  }
  if (!alike) unsupported(node, "operands of other shapes than " + text_of(extents), "the same shape, or one number");
  for (const auto& [name, value] : kept) values_[name] = Data{std::get<Data>(value).step};
  Values results = results_of(node);
  for (auto& [name, value] : kept) values_[name] = std::move(value);
  for (Value& result : results) {
    auto* const made = std::get_if<Data>(&result);
    if (made == nullptr) continue;
    if (product) extents.back() = static_cast<std::int64_t>(builder_.width(made->step));
    *made = in_shape(made->step, extents);
  }
  return results;
}

}  // namespace lockstep::nn::detail

// Values of other shapes than [batch, features]: of more dimensions, the batch's any of them, or [features, batch]. A
// net may pass through them, and come back.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "lockstep/nn/detail/onnx_dimensions.h"
#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_reader.h"

namespace lockstep::nn::detail {
namespace {

constexpr std::size_t kMostShown = 16;  // dimensions, in messages

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
                                                "SwiGLU",      "Where",
                                                "Equal",       "Less",
                                                "Greater",     "LessOrEqual",
                                                "And",         "GreaterOrEqual",
                                                "Or",          "Not",
                                                "CastLike",    "Sinh",
                                                "Cosh",        "Tan",
                                                "Xor",         "IsNaN",
                                                "IsInf",       "Floor",
                                                "Ceil",        "Round",
                                                "Mod",         "Asin",
                                                "Acos",        "Atan",
                                                "Asinh",       "Acosh",
                                                "Atanh"};
  return known.contains(op);
}

// Of a value of `rank` dimensions, ascending; nothing where one is out of range or named twice.
std::optional<Indices> resolved(const std::vector<std::int64_t>& axes, std::size_t rank) {
  Indices result;
  for (std::int64_t axis : axes) {
    if (axis < 0) axis += static_cast<std::int64_t>(rank);
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return {};
    result.push_back(static_cast<std::size_t>(axis));
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) return {};
  return result;
}

}  // namespace

std::string GraphReader::text_of(const std::vector<std::int64_t>& shape) { return text_of(Dimensions{shape, {}}); }

std::string GraphReader::text_of(const Dimensions& x) {
  std::string text;
  for (std::size_t i = 0; i < std::min(x.extents.size(), kMostShown); ++i) {
    text += (text.empty() ? "[" : ", ") + (x.batch == i ? std::string("batch") : std::to_string(x.extents[i]));
  }
  return text.empty() ? "[]" : text + (x.extents.size() > kMostShown ? ", ...]" : "]");
}

// What Flatten, Reshape, Squeeze or Unsqueeze makes of the dimensions; nothing where it does not keep the batch by
// itself, or the width is open.
std::optional<GraphReader::Dimensions> GraphReader::reshaped_dimensions(const Node& node, const Data& x) const {
  const std::string& op = node.op_type();
  if (builder_.width(x.step) == 0) return {};
  const Dimensions from = dimensions_of(node, x);
  const std::size_t rank = from.extents.size(), batch = *from.batch;
  const auto features = static_cast<std::int64_t>(builder_.width(x.step));
  if (op == "Flatten") {
    const std::int64_t given = integer(node, "axis", 1), extents = static_cast<std::int64_t>(rank);
    const std::int64_t axis = given < 0 ? given + extents : given;
    if (axis < 0 || axis > extents) return {};
    const bool in_front = static_cast<std::int64_t>(batch) < axis;
    Dimensions to{{1, 1}, in_front ? 0 : 1};
    for (std::size_t i = 0; i < rank; ++i) to.extents[static_cast<std::int64_t>(i) < axis ? 0 : 1] *= from.extents[i];
    if (to.extents[*to.batch] != 1) return {};  // the batch beside others
    return to;
  }
  if (op == "Unsqueeze" || op == "Squeeze") {
    const bool adds = op == "Unsqueeze";
    const auto given = whole_numbers(node, "axes", 1);
    Dimensions to;
    if (!given && adds) return {};
    std::optional<Indices> axes = Indices{};
    if (given) {
      axes = resolved(*given, rank + (adds ? given->size() : 0));
    } else {
      for (std::size_t i = 0; i < rank; ++i) {
        if (i != batch && from.extents[i] == 1) axes->push_back(i);
      }
    }
    if (!axes) return {};
    const std::size_t all = rank + (adds ? axes->size() : 0);
    for (std::size_t axis = 0, next = 0; axis < all; ++axis) {
      const bool named = std::binary_search(axes->begin(), axes->end(), axis);
      if (adds && named) {
        to.extents.push_back(1);
        continue;
      }
      if (named && (next == batch || from.extents[next] != 1)) return {};
      if (!named && next == batch) to.batch = to.extents.size();
      if (!named) to.extents.push_back(from.extents[next]);
      ++next;
    }
    return to;
  }
  const std::vector<double>& shape = constant_operand(node, 1).values;
  std::int64_t before = 1;  // numbers before the batch
  for (std::size_t i = 0; i < batch; ++i) before *= from.extents[i];
  Dimensions to;
  std::int64_t product = 1;
  std::optional<std::size_t> open;  // the place of -1
  for (std::size_t i = 0; i < shape.size(); ++i) {
    double extent = shape[i];
    const bool copied = extent == 0 && i < rank;
    const bool may_be_batch = (copied && i == batch) || extent == -1 || extent == kBatchExtent ||
                              (fixed_batch_ && extent == static_cast<double>(*fixed_batch_));
    if (!to.batch && may_be_batch && (extent == kBatchExtent || (product == before && !open))) {
      to.batch = i;
      to.extents.push_back(1);
      continue;
    }
    if (copied && i != batch) extent = static_cast<double>(from.extents[i]);
    if (extent == -1 && !open && (to.batch ? shape[*to.batch] != -1 : true)) {
      open = i;
      extent = 1;
    }
    if (!(extent >= 1 && extent <= static_cast<double>(features))) return {};
    to.extents.push_back(static_cast<std::int64_t>(extent));
    product *= to.extents.back();
    if (product > features) return {};
  }
  if (open) product *= to.extents[*open] = features / product;
  if (!to.batch || product != features) return {};
  for (std::size_t i = 0; i < *to.batch; ++i) {
    if (before % to.extents[i] != 0) return {};
    before /= to.extents[i];
  }
  if (before != 1) return {};
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
    if (to.holds_batch && !tensor.each_sample) {
      unsupported(node, "a constant of as many parts as the batch", "constants of fixed extents");
    }
    const auto numbers = static_cast<double>(tensor.values.size());
    const bool copies = integer(node, "allowzero", 0) == 0;
    double product = 1;
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < to.values.size(); ++i) {
      double extent = to.values[i] == kBatchExtent ? 1 : to.values[i];
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
    if (op == "Reshape" && integer(node, "allowzero", 0) != 0 &&
        std::ranges::count(constant_operand(node, 1).values, 0.0) > 0) {
      unsupported(node, "allowzero = 1 with an extent of 0", "at least one feature", "write the extents as they are");
    }
    const auto to = reshaped_dimensions(node, *x);
    // Between [batch, features] and [batch] as ever.
    if (!to || (x->rank < 3 && !x->turned && to->extents.size() < 3 && to->batch == 0)) return {};
    return Values{with_dimensions(x->step, *to)};
  }
  std::optional<Dimensions>
      more;  // of the operand of the most dimensions, where it is not [batch, features] or [batch]
  bool turned = false;
  for (int i = 0; i < node.input_size(); ++i) {
    const Value* const value = operand(node, i);
    const auto* const x = value ? std::get_if<Data>(value) : nullptr;
    if (x == nullptr) continue;
    turned = turned || x->turned;
    if (x->rank == 3 && (!more || more->extents.size() <= x->extents.size())) more = dimensions_of(node, *x);
  }
  if (op == "Shape") return {};
  if (op == "MatMul" || op == "Einsum") return products(node);
  if (auto values = over_dimensions(node)) return values;
  static const std::set<std::string_view> only_views{"Tile",     "Pad",       "Expand",
                                                     "GatherND", "ScatterND", "ScatterElements"};
  const OnnxTensor* const second = constant(node, 1);
  const bool tabular = op == "Gather" && second && second->shape.size() > 1;
  const bool joined = turned && (op == "Concat" || op == "Split");
  if (more || tabular || joined || only_views.contains(op)) {
    if (auto values = view(node)) return values;
  }
  if (!more && !turned) return {};
  if (op == "CastLike" && constant(node, 0)) return {};
  if (is_elementwise(op)) return elementwise(node);
  if (!more) return {};
  unsupported(
      node, "this operator on " + text_of(*more),
      "functions of each element, products, reductions and selections of such values",
      "write it with those (a convolution as matrix products), or bring the value to [batch, features] before it");
}

GraphReader::Values GraphReader::elementwise(const Node& node) {
  Dimensions all;
  std::size_t from_end = 0;  // where the batch stands
  bool alike = true;
  std::string operands_text;
  const int count = node.op_type() == "CastLike" ? 1 : node.input_size();  // of whose second the type alone is taken
  for (int i = 0; i < count; ++i) {
    const Value* const value = operand(node, i);
    if (value == nullptr) continue;
    const Dimensions x = dimensions_of(node, *value);
    operands_text += (operands_text.empty() ? "" : " and ") + text_of(x);
    all.extents.resize(std::max(all.extents.size(), x.extents.size()), 1);
    if (!x.batch) continue;
    alike = alike && (from_end == 0 || from_end == x.extents.size() - *x.batch);
    from_end = x.extents.size() - *x.batch;
  }
  const std::size_t rank = all.extents.size();
  all.batch = rank - from_end;
  for (int i = 0; i < count && alike; ++i) {
    const Value* const value = operand(node, i);
    if (value == nullptr) continue;
    const Dimensions x = dimensions_of(node, *value);
    for (std::size_t axis = 0; axis < x.extents.size(); ++axis) {
      std::int64_t& extent = all.extents[rank - 1 - axis];
      extent = std::max(extent, x.extents[x.extents.size() - 1 - axis]);
    }
  }
  alike = alike && all.extents[*all.batch] == 1 && numbers_in(all.extents, kMostFeatures);
  std::map<std::string, Value> operands;
  for (int i = 0; i < count && alike; ++i) {
    const Value* const value = operand(node, i);
    if (value == nullptr) continue;
    const auto* const numbers = std::get_if<OnnxTensor>(value);
    if (numbers && numbers->is_scalar()) {
      OnnxTensor one = *numbers;
      one.shape.clear();
      operands.emplace(node.input(i), std::move(one));
      continue;
    }
    const Extents own = dimensions_of(node, *value).extents;
    if (!numbers && own == all.extents) {
      operands.emplace(node.input(i), Data{std::get<Data>(*value).step});
      continue;
    }
    builder_.work(*numbers_in(all.extents, kMostFeatures), place(node));
    const auto indices = broadcast(own, all.extents);
    alike = indices && !(numbers && (numbers->values.empty() || numbers->holds_batch));
    if (!alike) continue;
    if (!numbers) {
      operands.emplace(node.input(i), select(node, {std::get<Data>(*value).step}, *indices));
      continue;
    }
    OnnxTensor each{{1, static_cast<std::int64_t>(indices->size())}, {}, numbers->type, false, numbers->whole};
    for (const std::size_t index : *indices) each.values.push_back(numbers->values[index]);
    operands.emplace(node.input(i), std::move(each));
  }
  if (!alike) {
    unsupported(node, "operands " + operands_text, "shapes that are broadcast to each other, each sample for itself",
                "give them the same dimensions in the same order (unsqueeze, transpose)");
  }
  const auto* const like = count < node.input_size() ? std::get_if<Data>(&required(node, count)) : nullptr;
  if (like) operands.emplace(node.input(count), Data{like->step});
  Values results = results_with(node, std::move(operands));
  for (Value& result : results) {
    if (auto* const made = std::get_if<Data>(&result)) *made = with_dimensions(made->step, all);
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

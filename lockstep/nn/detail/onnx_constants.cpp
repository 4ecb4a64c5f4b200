// Nodes whose operands are all constant: weights that are computed from others (positive, normalised, masked ones), and
// shapes that exporters compute while the net runs.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "lockstep/nn/detail/onnx_dimensions.h"
#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_reader.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

double compared(const std::string& op, double a, double b) {
  if (op == "Equal") return a == b ? 1 : 0;
  if (op == "Less") return a < b ? 1 : 0;
  if (op == "LessOrEqual") return a <= b ? 1 : 0;
  if (op == "Greater") return a > b ? 1 : 0;
  if (op == "GreaterOrEqual") return a >= b ? 1 : 0;
  if (op == "And") return a != 0 && b != 0 ? 1 : 0;
  if (op == "Xor") return (a != 0) != (b != 0) ? 1 : 0;
  return a != 0 || b != 0 ? 1 : 0;
}

}  // namespace

std::optional<GraphReader::Values> GraphReader::folded(const Node& node) {
  if (node.input_size() == 0 || node.domain() == "ai.onnx.ml") return {};
  for (int i = 0; i < node.input_size(); ++i) {
    if (operand(node, i) != nullptr && constant(node, i) == nullptr) return {};
  }
  const std::string &op = node.op_type(), here = place(node);
  if (constant(node, 0) == nullptr) return {};
  if (op == "MatMul") return Values{product_of_any(node)};
  if (op == "Einsum") return Values{einsum(node)};
  if (is_comparison(op) || op == "Where") return Values{chosen(node)};
  if (op.starts_with("Reduce")) return Values{reduced_constant(node, *constant(node, 0))};
  if (op == "Tile" || op == "Pad" || op == "GatherND" || op == "Expand" || op.starts_with("Scatter")) return view(node);
  const OnnxTensor& tensor = *constant(node, 0);
  if ((op == "Transpose" && tensor.shape.size() > 2) ||
      (op == "Gather" && constant_operand(node, 1).shape.size() > 1)) {
    return view(node);
  }
  static const std::set<std::string_view> of_rows{
      "Softmax", "LogSoftmax", "Hardmax", "LayerNormalization", "RMSNormalization", "CumSum", "LpNormalization"};
  if (of_rows.contains(op)) return Values{rows_of_constant(node, tensor)};
  if (op == "Split") {
    require_fixed(node, tensor);
    const std::size_t axis = axis_of(node, integer(node, "axis", 0), {tensor.shape, {}});
    Values parts;
    std::size_t first = 0;
    for (const std::size_t size : split_sizes(node, static_cast<std::size_t>(tensor.shape[axis]))) {
      Indices indices(size);
      std::iota(indices.begin(), indices.end(), std::exchange(first, first + size));
      builder_.work(tensor.values.size(), here);
      parts.emplace_back(take_constants(tensor, axis, indices, AxisKept::yes, here));
    }
    return parts;
  }
  if (op == "Size") {
    if (tensor.each_sample) require_fixed(node, tensor);
    OnnxTensor size{{}, {static_cast<double>(tensor.values.size())}, WeightType::f64, false, true};
    return Values{std::move(size)};
  }
  if (op == "Range" && constant_operand(node, 1).values == std::vector{kBatchExtent} &&
      tensor.values == std::vector{0.0} && constant_operand(node, 2).values == std::vector{1.0}) {
    return Values{OnnxTensor{{1}, {kSampleNumber}, WeightType::f64, true, true, true}};
  }
  if (op == "Range") {
    const double start = single_number(node, tensor), limit = single_number(node, constant_operand(node, 1)),
                 delta = single_number(node, constant_operand(node, 2));
    const double count = delta == 0 ? 0 : std::ceil((limit - start) / delta);
    if (!(count >= 1 && count <= kMostFeatures)) unsupported(node, "a range of other lengths", "1 to 2^20 numbers");
    OnnxTensor range{{static_cast<std::int64_t>(count)}, {}, tensor.type, false, tensor.whole};
    for (double i = 0; i < count; ++i) range.values.push_back(start + i * delta);
    return Values{std::move(range)};
  }
  if (op == "NonZero") {
    require_fixed(node, tensor);
    builder_.work(tensor.values.size(), here);
    OnnxTensor found{{static_cast<std::int64_t>(tensor.shape.size()), 0}, {}, WeightType::f64, false, true};
    Indices nonzero;
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      if (tensor.values[i] != 0) nonzero.push_back(i);
    }
    const Indices strides = strides_of(tensor.shape);
    found.shape[1] = static_cast<std::int64_t>(nonzero.size());
    for (std::size_t axis = 0; axis < strides.size(); ++axis) {
      for (const std::size_t i : nonzero) {
        found.values.push_back(static_cast<double>(i / strides[axis] % static_cast<std::size_t>(tensor.shape[axis])));
      }
    }
    return Values{std::move(found)};
  }
  if (op == "Trilu") {
    const bool upper = integer(node, "upper", 1) != 0;
    const double k = operand(node, 1) != nullptr ? single_number(node, constant_operand(node, 1)) : 0;
    const std::size_t rank = tensor.shape.size();
    if (rank < 2) refuse(here, "a constant " + text_of(tensor.shape), "a matrix");
    const auto rows = static_cast<std::size_t>(tensor.shape[rank - 2]),
               columns = static_cast<std::size_t>(tensor.shape[rank - 1]);
    OnnxTensor part = tensor;
    for (std::size_t i = 0; i < part.values.size(); ++i) {
      const double above = static_cast<double>(i % columns) - static_cast<double>(i / columns % rows);
      if (upper ? above < k : above > k) part.values[i] = 0;
    }
    return Values{std::move(part)};
  }
  if (op == "CastLike") {
    const OnnxTensor& like = constant_operand(node, 1);
    return Values{like.whole ? cast_constant(tensor, onnx::TensorProto::INT64, here)
                             : cast_constant(tensor, onnx::TensorProto::DOUBLE, here)};
  }
  if (op == "PRelu") {  // max(x, 0) + slope min(x, 0)
    OnnxTensor positive = tensor, negative = tensor;
    for (double& value : positive.values) value = std::max(value, 0.0);
    for (double& value : negative.values) value = std::min(value, 0.0);
    negative = combine_constants(BinaryKind::multiply, negative, constant_operand(node, 1), here);
    return Values{combine_constants(BinaryKind::add, positive, negative, here)};
  }
  // What a net makes of fixed inputs, f(x) - f(0): a constant [1, features] goes through it as any sample does.
  if ((op == "Gemm" || op == "BatchNormalization") && tensor.shape.size() == 2 && tensor.shape[0] == 1 &&
      !tensor.values.empty()) {
    return results_with(node, {{node.input(0), Data{builder_.constant(tensor.values, here)}}});
  }
  return {};
}

// Truth values of comparisons, or what Where takes of its two.
GraphReader::Value GraphReader::chosen(const Node& node) const {
  std::vector<const OnnxTensor*> parts;
  const bool where = node.op_type() == "Where";
  OnnxTensor result{{}, {}, WeightType::f64, false, true};
  for (int i = 0; i < (where ? 3 : 2); ++i) {
    const OnnxTensor& part = constant_operand(node, i);
    if (part.holds_batch && !where && node.op_type() != "Equal") {
      unsupported(node, "the size of the batch as a number", "fixed numbers");
    }
    if (result.shape.size() < part.shape.size()) {
      result.shape.insert(result.shape.begin(), part.shape.size() - result.shape.size(), 1);
    }
    for (std::size_t axis = 0; axis < part.shape.size(); ++axis) {
      std::int64_t& extent = result.shape[result.shape.size() - 1 - axis];
      const std::int64_t own = part.shape[part.shape.size() - 1 - axis];
      if (extent == 1) extent = own;
    }
    result.each_sample = result.each_sample || part.each_sample;
    parts.push_back(&part);
  }
  std::vector<Indices> from;
  for (const OnnxTensor* part : parts) {
    const auto indices =
        numbers_in(result.shape, std::size_t{1} << 24) ? broadcast(part->shape, result.shape) : std::nullopt;
    if (!indices) unsupported(node, "constants of different shapes", "of one shape, of at most 2^24 numbers");
    from.push_back(*indices);
  }
  for (std::size_t i = 0; i < from[0].size(); ++i) {
    const double a = parts[0]->values[from[0][i]], b = parts[1]->values[from[1][i]];
    result.values.push_back(where ? (a != 0 ? b : parts[2]->values[from[2][i]]) : compared(node.op_type(), a, b));
  }
  if (where) {
    result.type = std::max(parts[1]->type, parts[2]->type);
    result.whole = parts[1]->whole && parts[2]->whole;
    result.holds_batch =
        (parts[1]->holds_batch || parts[2]->holds_batch) && std::ranges::any_of(result.values, is_of_batch);
  }
  return result;
}

// Neither a shape with the batch nor what was expanded to it: sums of those depend on how many samples there are.
void GraphReader::require_fixed(const Node& node, const OnnxTensor& tensor) const {
  if (tensor.holds_batch) unsupported(node, "the size of the batch as a number", "fixed numbers");
  if (tensor.each_sample) {
    unsupported(node, "a constant expanded to the batch, summed or counted", "each sample for itself",
                "sum the constant before it is expanded");
  }
}

OnnxTensor GraphReader::reduced_constant(const Node& node, const OnnxTensor& tensor) {
  const std::string& op = node.op_type();
  require_fixed(node, tensor);
  builder_.work(tensor.values.size(), place(node));
  const Dimensions x{tensor.shape, {}};
  const Indices axes = reduced_axes(node, x);
  OnnxTensor result{{}, {}, tensor.type, false, tensor.whole};
  for (std::size_t axis = 0; axis < x.extents.size(); ++axis) {
    const bool away = std::binary_search(axes.begin(), axes.end(), axis);
    if (!away || integer(node, "keepdims", 1) != 0) result.shape.push_back(away ? 1 : x.extents[axis]);
  }
  for (const Indices& group : groups_along(x.extents, axes)) {
    if (group.empty() && op != "ReduceProd" && op != "ReduceSum")
      unsupported(node, "a reduction of nothing", "numbers");
    double total = op == "ReduceProd" ? 1 : op == "ReduceMin" || op == "ReduceMax" ? tensor.values[group[0]] : 0;
    for (const std::size_t place : group) {
      const double value = tensor.values[place];
      if (op == "ReduceSum" || op == "ReduceMean" || op == "ReduceLogSum") total += value;
      if (op == "ReduceProd") total *= value;
      if (op == "ReduceMin") total = std::min(total, value);
      if (op == "ReduceMax") total = std::max(total, value);
      if (op == "ReduceL1") total += std::fabs(value);
      if (op == "ReduceL2" || op == "ReduceSumSquare") total += value * value;
      if (op == "ReduceLogSumExp") total += std::exp(value);
    }
    if (op == "ReduceMean") total /= static_cast<double>(group.size());
    if (op == "ReduceL2") total = std::sqrt(total);
    if (op == "ReduceLogSum" || op == "ReduceLogSumExp") total = std::log(total);
    result.values.push_back(tensor.whole ? std::trunc(total) : total);
  }
  check_computed(place(node), result, {&tensor});
  return result;
}

// What acts on the numbers of a row and gives as many.
OnnxTensor GraphReader::rows_of_constant(const Node& node, const OnnxTensor& tensor) {
  const std::string &op = node.op_type(), here = place(node);
  const Dimensions x{tensor.shape, {}};
  const Indices axes = row_axes(node, x);
  const bool perhaps_batch = std::ranges::any_of(axes, [&](std::size_t axis) { return tensor.shape[axis] == 1; });
  if (tensor.holds_batch || perhaps_batch) require_fixed(node, tensor);
  if (tensor.values.empty()) unsupported(node, "an empty constant", "numbers");
  builder_.work(tensor.values.size(), here);
  OnnxTensor result = tensor;
  std::vector<double> row;
  const auto numbers = [&](int i, double otherwise) {
    std::vector<double> list{otherwise};
    if (operand(node, i) != nullptr) list = constant_operand(node, i).values;
    if (list.size() != 1 && list.size() != row.size()) {
      unsupported(node, std::to_string(list.size()) + " numbers for " + text_of(tensor.shape),
                  "one for each of what is normalised");
    }
    list.resize(row.size(), list[0]);
    return list;
  };
  // Of f(value), of all of the row.
  const auto sum = [&](auto f) {
    double total = 0;
    for (const double value : row) total += f(value);
    return total;
  };
  const auto square = [](double value) { return value * value; };
  for (const Indices& group : groups_along(x.extents, axes)) {
    row.clear();
    for (const std::size_t from : group) row.push_back(tensor.values[from]);
    const auto count = static_cast<double>(row.size());
    const auto largest = std::max_element(row.begin(), row.end());
    if (op == "Hardmax") {
      const auto first = static_cast<std::size_t>(largest - row.begin());
      row.assign(row.size(), 0.0);
      row[first] = 1;
    } else if (op == "Softmax" || op == "LogSoftmax") {
      const double shift = *largest;
      const double total = sum([&](double value) { return std::exp(value - shift); });
      for (double& value : row)
        value = op == "Softmax" ? std::exp(value - shift) / total : value - shift - std::log(total);
    } else if (op == "CumSum") {
      const bool without = integer(node, "exclusive", 0) != 0, from_last = integer(node, "reverse", 0) != 0;
      if (from_last) std::reverse(row.begin(), row.end());
      double total = 0;
      for (double& value : row) {
        const double before = std::exchange(total, total + value);
        value = without ? before : total;
      }
      if (from_last) std::reverse(row.begin(), row.end());
    } else if (op == "LpNormalization") {
      const std::int64_t p = integer(node, "p", 2);
      if (p != 1 && p != 2) unsupported(node, "p = " + std::to_string(p), "1 or 2");
      const double norm = p == 2 ? std::sqrt(sum(square)) : sum([](double value) { return std::fabs(value); });
      for (double& value : row) value = norm == 0 ? value : value / norm;
    } else {
      const bool centred = op == "LayerNormalization";
      const std::vector<double> scale = numbers(1, 1), shift = numbers(centred ? 2 : 3, 0);
      const double mean = centred ? sum([](double value) { return value; }) / count : 0;
      for (double& value : row) value -= mean;
      const double deviation = std::sqrt(sum(square) / count + number(node, "epsilon", 1e-5));
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = row[i] / deviation * scale[i] + shift[i];
    }
    for (std::size_t i = 0; i < group.size(); ++i) result.values[group[i]] = row[i];
  }
  check_computed(here, result, {&tensor});
  return result;
}

}  // namespace lockstep::nn::detail

// ONNX operators that act on several features together, over any dimensions but the batch's: reductions, softmax,
// normalisations and running sums. Each becomes the same on several choices of features.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "lockstep/nn/detail/onnx_dimensions.h"
#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_reader.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

constexpr std::size_t kMostRows = 1024;

}  // namespace

const std::map<std::string_view, ReduceKind>& GraphReader::reductions() {
  static const std::map<std::string_view, ReduceKind> kinds{
      {"ReduceSum", ReduceKind::sum},       {"ReduceMean", ReduceKind::mean},     {"ReduceMin", ReduceKind::minimum},
      {"ReduceMax", ReduceKind::maximum},   {"ReduceSumSquare", ReduceKind::sum}, {"ReduceL1", ReduceKind::sum},
      {"ReduceL2", ReduceKind::sum},        {"ReduceProd", ReduceKind::sum},      {"ReduceLogSum", ReduceKind::sum},
      {"ReduceLogSumExp", ReduceKind::sum},
  };
  return kinds;
}

std::optional<GraphReader::Values> GraphReader::over_dimensions(const Node& node) {
  const std::string& op = node.op_type();
  static const std::set<std::string_view> rows{"Softmax",
                                               "LogSoftmax",
                                               "Hardmax",
                                               "LayerNormalization",
                                               "RMSNormalization",
                                               "InstanceNormalization",
                                               "GroupNormalization",
                                               "CumSum",
                                               "LpNormalization"};
  const bool reduces = reductions().contains(op);
  if (!reduces && !rows.contains(op)) return {};
  const auto* const x = std::get_if<Data>(&required(node, 0));
  if (x == nullptr) return {};
  const bool plain = x->rank == 2 && !x->turned;
  const bool over_nothing = reduces && reduces_nothing(node);
  if (reduces && plain && !over_nothing && op != "ReduceProd" && op != "ReduceLogSum" && op != "ReduceLogSumExp") {
    return {};
  }
  const bool known_elsewhere = op == "Softmax" || op == "LogSoftmax" || op == "Hardmax" || op == "LayerNormalization";
  if (known_elsewhere && x->rank < 3 && !x->turned) return {};
  Values values;
  values.push_back(reduces ? reduce_dimensions(node) : each_row(node));
  return values;
}

// One feature for each group, of one length all.
GraphReader::Data GraphReader::reduced(const Node& node, std::size_t step, const std::vector<Indices>& groups,
                                       ReduceKind kind) {
  const std::size_t length = groups.empty() ? 0 : groups[0].size();
  if (length == 0) unsupported(node, "a reduction of nothing", "at least one feature");
  if (length == 1) {
    Indices all;
    for (const Indices& group : groups) all.push_back(group[0]);
    return select(node, {step}, std::move(all));
  }
  if (groups.size() == 1)
    return {builder_.operation(Reduce{kind}, {select(node, {step}, groups[0]).step}, place(node))};
  if (length > groups.size() && groups.size() <= kMostRows) {
    std::vector<std::size_t> parts;
    for (const Indices& group : groups) parts.push_back(reduced(node, step, {group}, kind).step);
    return {builder_.operation(Concatenate{}, std::move(parts), place(node))};
  }
  const BinaryKind binary = kind == ReduceKind::minimum   ? BinaryKind::minimum
                            : kind == ReduceKind::maximum ? BinaryKind::maximum
                                                          : BinaryKind::add;
  const Data result = side_by_side(node, step, groups, binary);
  if (kind != ReduceKind::mean) return result;
  return {builder_.with_constant(result.step, StepKind::divide, {static_cast<double>(length)}, place(node))};
}

// One feature for each group: all groups side by side, one member of each after another.
GraphReader::Data GraphReader::side_by_side(const Node& node, std::size_t step, const std::vector<Indices>& groups,
                                            BinaryKind kind) {
  const std::size_t length = groups[0].size();
  if (length > kMostRows) unsupported(node, "reductions of " + std::to_string(length) + " features", "at most 1024");
  std::optional<std::size_t> result;
  for (std::size_t i = 0; i < length; ++i) {
    Indices members;
    for (const Indices& group : groups) members.push_back(group[i]);
    const std::size_t next = select(node, {step}, std::move(members)).step;
    result = !result ? next : builder_.operation(Binary{kind}, {*result, next}, place(node));
  }
  return {*result};
}

// Without axes: over all of them, or, where the node says so, over none, each number for itself.
bool GraphReader::reduces_nothing(const Node& node) const {
  const auto given = whole_numbers(node, "axes", 1);
  return (!given || given->empty()) && integer(node, "noop_with_empty_axes", 0) != 0;
}

Indices GraphReader::reduced_axes(const Node& node, const Dimensions& x) const {
  const auto given = whole_numbers(node, "axes", 1);
  Indices axes;
  if (reduces_nothing(node)) return axes;
  if (!given || given->empty()) {
    if (x.batch)
      unsupported(node, "a reduction over all axes, the batch among them", "over features: each sample alone");
    axes.resize(x.extents.size());
    std::iota(axes.begin(), axes.end(), std::size_t{0});
    return axes;
  }
  for (const std::int64_t axis : *given) axes.push_back(axis_of(node, axis, x));
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) refuse(place(node), "an axis twice", "once");
  return axes;
}

GraphReader::Value GraphReader::reduce_dimensions(const Node& node) {
  const std::string &op = node.op_type(), here = place(node);
  const Value& value = required(node, 0);
  Dimensions x = dimensions_of(node, value);
  const Indices axes = reduced_axes(node, x);
  picture_of(node, x);  // refuses what is too large
  const std::vector<Indices> groups = groups_along(x.extents, axes);
  std::size_t step = std::get<Data>(value).step;
  if (op == "ReduceProd") {
    step = side_by_side(node, step, groups, BinaryKind::multiply).step;
  } else if (op == "ReduceLogSumExp" &&
             !axes.empty()) {  // log(sum(exp(x - m))) + m with m the largest: no exponential overflows
    const std::size_t largest = reduced(node, step, groups, ReduceKind::maximum).step;
    Indices of_group(x.extents.empty() ? 1 : builder_.width(step));
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const std::size_t member : groups[g]) of_group[member] = g;
    }
    // Infinity and NaN are no shift: the sum of the exponentials is right by itself.
    const std::size_t size = builder_.operation(Unary{UnaryKind::absolute}, {largest}, here);
    const std::size_t infinity = builder_.constant({std::numeric_limits<double>::infinity()}, here);
    const std::size_t finite = builder_.operation(Binary{BinaryKind::less}, {size, infinity}, here);
    const std::size_t shift = builder_.operation(Select{}, {finite, largest, builder_.constant({0}, here)}, here);
    const std::size_t spread = select(node, {shift}, of_group).step;
    const std::size_t shifted = builder_.operation(Binary{BinaryKind::subtract}, {step, spread}, here);
    const std::size_t powers = builder_.operation(Unary{UnaryKind::exp}, {shifted}, here);
    const std::size_t sum = reduced(node, powers, groups, ReduceKind::sum).step;
    step = builder_.sum(builder_.operation(Unary{UnaryKind::log}, {sum}, here), shift, here);
  } else {
    const bool root = op == "ReduceL2" && !axes.empty();  // of the square of one number: its absolute value
    if (op == "ReduceSumSquare" || root) step = builder_.activation(step, {ActivationKind::square}, here);
    if (op == "ReduceL1" || (op == "ReduceL2" && !root)) {
      step = builder_.operation(Unary{UnaryKind::absolute}, {step}, here);
    }
    step = reduced(node, step, groups, reductions().at(op)).step;
    if (root) step = builder_.operation(Unary{UnaryKind::square_root}, {step}, here);
    if (op == "ReduceLogSum") step = builder_.operation(Unary{UnaryKind::log}, {step}, here);
  }
  const bool kept = integer(node, "keepdims", 1) != 0;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    x.extents[*axis] = 1;
    if (kept) continue;
    x.extents.erase(x.extents.begin() + static_cast<std::ptrdiff_t>(*axis));
    if (*x.batch > *axis) --*x.batch;
  }
  return with_dimensions(step, std::move(x));
}

// Of what an operator takes for a row.
Indices GraphReader::row_axes(const Node& node, const Dimensions& x) const {
  const std::string& op = node.op_type();
  if (op == "CumSum") {
    const double given = single_number(node, constant_operand(node, 1)), most = static_cast<double>(x.extents.size());
    return {axis_of(node, static_cast<std::int64_t>(std::clamp(given, -most - 1, most)), x)};
  }
  const bool softmax = op == "Softmax" || op == "LogSoftmax" || op == "Hardmax", old = softmax && result_.opset < 13;
  const std::size_t axis = axis_of(node, integer(node, "axis", old ? 1 : -1), x);
  Indices axes{axis};
  const bool trailing = op == "LayerNormalization" || op == "RMSNormalization" || old;
  for (std::size_t i = axis + 1; trailing && i < x.extents.size(); ++i) axes.push_back(i);
  if (x.batch && *x.batch > axis && trailing) unsupported(node, text_of(x), "the batch before the axis");
  return axes;
}

// What acts on a row of features and gives as many.
GraphReader::Value GraphReader::each_row(const Node& node) {
  const std::string &op = node.op_type(), here = place(node);
  require_finite(node);
  const Value& value = required(node, 0);
  const Dimensions x = dimensions_of(node, value);
  const std::size_t rank = x.extents.size();
  picture_of(node, x);  // refuses what is too large
  const bool channels = op == "InstanceNormalization" || op == "GroupNormalization";
  const bool softmax = op == "Softmax" || op == "LogSoftmax" || op == "Hardmax";
  std::vector<Indices> rows;
  std::size_t groups = 0;  // a sample's
  if (channels) {
    if (rank < 2 || x.batch != 0 || (rank == 2 && op == "InstanceNormalization")) {
      unsupported(node, text_of(x), "[batch, channels, ...]");
    }
    groups = static_cast<std::size_t>(op == "GroupNormalization" ? integer(node, "num_groups", 0) : x.extents[1]);
    const std::size_t features = builder_.width(std::get<Data>(value).step);
    if (groups == 0 || static_cast<std::size_t>(x.extents[1]) % groups != 0) {
      refuse(here, std::to_string(groups) + " groups of " + std::to_string(x.extents[1]) + " channels", "a divisor");
    }
    for (std::size_t g = 0; g < groups; ++g) {
      Indices& row = rows.emplace_back(features / groups);
      std::iota(row.begin(), row.end(), g * (features / groups));
    }
  } else {
    rows = groups_along(x.extents, row_axes(node, x));
  }
  if (rows.size() > kMostRows) unsupported(node, std::to_string(rows.size()) + " rows a sample", "at most 1024");
  const std::size_t length = rows[0].size();
  if (op == "CumSum")
    return pictured(node, running_sums(node, std::get<Data>(value).step, rows), whole(x.extents), x.batch);
  // One number for each feature of a row; channels have one for each channel or, in older opsets, group.
  const auto list = [&](int i, double otherwise, std::size_t row) {
    std::vector<double> result(length, otherwise);
    if (operand(node, i) == nullptr) return result;
    const OnnxTensor& tensor = constant_operand(node, i);
    const std::size_t count = tensor.values.size();
    const auto each = channels ? count / rows.size() : count;
    if (each == 0 || (channels && count % rows.size() != 0) || length % each != 0 ||
        (!channels && each != 1 && each != length)) {
      unsupported(node, std::to_string(count) + " numbers for " + text_of(x), "one for each of what is normalised");
    }
    for (std::size_t j = 0; j < length; ++j)
      result[j] = tensor.values[(channels ? row * each : 0) + j / (length / each)];
    return result;
  };
  std::vector<std::size_t> parts;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::size_t row = select(node, {std::get<Data>(value).step}, rows[r]).step;
    if (softmax) {
      Node alone = node;  // over [batch, features]
      alone.clear_attribute();
      auto* last = alone.add_attribute();
      last->set_name("axis");
      last->set_i(1);
      const Values made = results_with(alone, {{node.input(0), Data{row}}});
      parts.push_back(std::get<Data>(made[0]).step);
    } else if (op == "LpNormalization") {
      const std::int64_t p = integer(node, "p", 2);
      if (p != 1 && p != 2) unsupported(node, "p = " + std::to_string(p), "1 or 2");
      parts.push_back(with_norm_one(node, row, p == 1 ? "L1" : "L2"));
    } else if (op == "RMSNormalization") {
      const std::size_t square = builder_.activation(row, {ActivationKind::square}, here);
      const std::size_t mean = builder_.operation(Reduce{ReduceKind::mean}, {square}, here);
      const std::size_t above = builder_.with_constant(mean, StepKind::add, {number(node, "epsilon", 1e-5)}, here);
      const std::size_t root = builder_.operation(Unary{UnaryKind::square_root}, {above}, here);
      const std::size_t made = builder_.operation(Binary{BinaryKind::divide}, {row, root}, here);
      parts.push_back(builder_.with_constant(made, StepKind::multiply, list(1, 1, r), here));
    } else {
      const double epsilon = number(node, "epsilon", 1e-5);
      parts.push_back(builder_.operation(LayerNormalise{list(1, 1, r), list(2, 0, r), epsilon}, {row}, here));
    }
  }
  const std::size_t joined = parts.size() == 1 ? parts[0] : builder_.operation(Concatenate{}, parts, here);
  Picture back{x.extents, Indices(length * rows.size())};
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t j = 0; j < length; ++j) back.from[rows[r][j]] = r * length + j;
  }
  return pictured(node, Data{joined}, back, x.batch);
}

// Of each row, from its first feature or its last, with or without the one itself. All rows side by side, one addition
// after another: as a layer of 0 and 1, infinity and NaN would reach the sums before them.
GraphReader::Data GraphReader::running_sums(const Node& node, std::size_t x, const std::vector<Indices>& rows) {
  const std::string here = place(node);
  const std::size_t length = rows[0].size();
  if (length > kMostRows) unsupported(node, "a running sum of " + std::to_string(length) + " features", "at most 1024");
  const bool without = integer(node, "exclusive", 0) != 0, from_last = integer(node, "reverse", 0) != 0;
  std::optional<std::size_t> sum;
  std::vector<std::size_t> sums;
  if (without) sums.push_back(builder_.constant(std::vector<double>(rows.size(), 0.0), here));
  for (std::size_t j = 0; sums.size() < length; ++j) {
    Indices members;
    for (const Indices& row : rows) members.push_back(row[from_last ? length - 1 - j : j]);
    const std::size_t next = select(node, {x}, std::move(members)).step;
    sum = !sum ? next : builder_.operation(Binary{BinaryKind::add}, {*sum, next}, here);
    sums.push_back(*sum);
  }
  const std::size_t joined = length == 1 ? sums[0] : builder_.operation(Concatenate{}, std::move(sums), here);
  Indices back(length * rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t j = 0; j < length; ++j) back[rows[r][from_last ? length - 1 - j : j]] = j * rows.size() + r;
  }
  return select(node, {joined}, std::move(back));
}

}  // namespace lockstep::nn::detail

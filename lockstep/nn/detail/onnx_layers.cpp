// ONNX operators that carry weights or act on all features together: dense layers and normalisations.
#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_reader.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {

std::optional<GraphReader::Value> GraphReader::layer(const Node& node) {
  const std::string& op = node.op_type();
  if (op == "Gemm") return gemm(node);
  if (op == "MatMul") return product(node);
  if (op == "BatchNormalization") return batch_normalization(node);
  if (op == "LayerNormalization") return layer_normalization(node);
  if (op == "Softmax" || op == "LogSoftmax") return softmax(node);
  if (op == "Hardmax") return hardmax(node);
  return {};
}

// x W of [batch, features], or W x of [features, batch].
GraphReader::Data GraphReader::product(const Node& node) {
  if (!constant(node, 0)) {
    const Data x = data(node, 0);
    if (x.rank != 2) unsupported(node, "a product with one number a sample", "[batch, features]");
    return {builder_.append(dense(node, x, constant_operand(node, 1), false))};
  }
  const Data x = data_maybe_turned(node, 1);
  require_turned(node, x);
  return {builder_.append(dense(node, x, *constant(node, 0), true)), 2, true};
}

void GraphReader::require_turned(const Node& node, const Data& x) const {
  if (x.turned) return;
  unsupported(node, "a constant W on the left of [batch, features]",
              "x W or W x of [features, batch]: each sample alone",
              "give W on the right, transposed where it is [outputs, inputs] (torch.nn.functional.linear(x, W)), or "
              "transpose x before the product and its result after it");
}

// y = alpha x B + beta C, or with B transposed; C may be numbers or another branch.
GraphReader::Data GraphReader::gemm(const Node& node) {
  if (constant(node, 0)) return turned_gemm(node);
  Data x = data_maybe_turned(node, 0);
  if (x.turned != (integer(node, "transA", 0) != 0)) {
    unsupported(node, x.turned ? "[features, batch]" : "transA = 1 of [batch, features]", "the batch in front");
  }
  x.turned = false;
  Step step = dense(node, x, constant_operand(node, 1), integer(node, "transB", 0) != 0);
  const double alpha = number(node, "alpha", 1), beta = number(node, "beta", 1);
  if (alpha != 1) {
    for (double& weight : step.dense.weights) weight *= alpha;
  }
  const Value* c = operand(node, 2);
  if (c == nullptr) return {builder_.append(std::move(step))};
  if (std::holds_alternative<Data>(*c)) {
    const Data branch = data(node, 2);
    if (branch.rank != 2) unsupported(node, "a C of one number a sample", "[batch, features]");
    const std::size_t product = builder_.append(std::move(step));
    const std::size_t added =
        beta == 1 ? branch.step : builder_.with_constant(branch.step, StepKind::multiply, {beta}, place(node));
    return {builder_.sum(product, added, place(node))};
  }
  const std::vector<double> numbers = per_feature(node, std::get<OnnxTensor>(*c));
  if (numbers.size() != 1 && numbers.size() != step.dense.outputs) {
    refuse(place(node), std::to_string(numbers.size()) + " numbers in C", std::to_string(step.dense.outputs));
  }
  for (std::size_t j = 0; j < step.dense.outputs; ++j) {
    step.dense.bias[j] = beta * numbers[numbers.size() == 1 ? 0 : j];
  }
  step.has_bias = true;
  return {builder_.append(std::move(step))};
}

// y = alpha A x + beta C of x [features, batch], which transB makes of [batch, features].
GraphReader::Data GraphReader::turned_gemm(const Node& node) {
  Data x = data_maybe_turned(node, 1);
  if (integer(node, "transB", 0) != 0) x.turned = !x.turned;
  require_turned(node, x);
  Step step = dense(node, x, *constant(node, 0), integer(node, "transA", 0) == 0);
  const double alpha = number(node, "alpha", 1), beta = number(node, "beta", 1);
  for (double& weight : step.dense.weights) weight *= alpha;
  if (operand(node, 2) != nullptr) {
    const OnnxTensor& c = constant_operand(node, 2);
    const bool one_a_feature = c.shape.size() == 2 && c.shape[1] == 1 && c.values.size() == step.dense.outputs;
    if (!c.is_scalar() && !one_a_feature) {
      unsupported(node, "a C of another shape", "[" + std::to_string(step.dense.outputs) + ", 1], or one number");
    }
    for (std::size_t j = 0; j < step.dense.outputs; ++j) step.dense.bias[j] = beta * c.values[c.is_scalar() ? 0 : j];
    step.has_bias = true;
  }
  return {builder_.append(std::move(step)), 2, true};
}

// Of [batch, ..., rows, k] times [k, m], or [m, k] times [batch, ..., k, columns]: the layer of each row or column.
GraphReader::Data GraphReader::product_of_matrices(const Node& node) {
  constexpr std::size_t kMostVectors = 256;
  const bool left = constant(node, 0) != nullptr;
  OnnxTensor matrix = left ? *constant(node, 0) : constant_operand(node, 1);
  const Data x = std::get<Data>(required(node, left ? 1 : 0));
  while (matrix.shape.size() > 2 && matrix.shape[0] == 1) matrix.shape.erase(matrix.shape.begin());
  std::vector<std::int64_t> extents = x.extents;
  std::int64_t& changed = extents[extents.size() - (left ? 2 : 1)];
  if (x.rank < 3 || matrix.shape.size() != 2 || matrix.shape[left ? 1 : 0] != changed) {
    unsupported(node, "factors " + text_of(dimensions_of(node, x)) + " and " + text_of(matrix.shape),
                "one matrix for all samples that fits " + text_of(dimensions_of(node, x)));
  }
  const auto k = static_cast<std::size_t>(changed), m = static_cast<std::size_t>(matrix.shape[left ? 0 : 1]);
  const std::size_t columns = left ? static_cast<std::size_t>(extents.back()) : 1, features = width(node, x);
  if (features / k > kMostVectors) {
    unsupported(node, "a product with " + std::to_string(features / k) + " vectors a sample", "at most 256");
  }
  std::vector<std::size_t> parts;
  for (std::size_t first = 0; first < features; first += k * columns) {
    for (std::size_t column = 0; column < columns; ++column) {
      std::vector<std::size_t> indices(k);
      for (std::size_t i = 0; i < k; ++i) indices[i] = first + i * columns + column;
      parts.push_back(builder_.append(dense(node, select(node, {x.step}, std::move(indices)), matrix, left)));
    }
  }
  changed = static_cast<std::int64_t>(m);
  Data result{parts[0]};
  if (parts.size() > 1) result.step = builder_.operation(Concatenate{}, parts, place(node));
  if (columns > 1) {  // [..., column, m] there, [..., m, column] wanted
    std::vector<std::size_t> indices(parts.size() * m);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::size_t within = i % (m * columns);
      indices[i] = i - within + within % columns * m + within / columns;
    }
    result = select(node, result, std::move(indices));
  }
  extents.insert(extents.begin(), 1);
  return with_dimensions(result.step, {std::move(extents), 0});
}

// The weights of layers, unlike other constants, may not be infinite.
void GraphReader::require_finite(const Node& node) const {
  for (int i = 0; i < node.input_size(); ++i) {
    const OnnxTensor* const tensor = constant(node, i);
    if (tensor == nullptr || !has_infinity(*tensor)) continue;
    refuse(place(node) + ": \"" + node.input(i) + '"', "infinity", "finite numbers", "train or export the net again");
  }
}

Step GraphReader::dense(const Node& node, const Data& x, const OnnxTensor& b, bool outputs_first) {
  if (b.shape.size() != 2 || b.values.empty()) {
    unsupported(node, "weights of rank " + std::to_string(b.shape.size()), "a matrix");
  }
  require_finite(node);
  Step step{.kind = StepKind::dense, .where = place(node), .from = {x.step}};
  const auto rows = static_cast<std::size_t>(b.shape[0]), columns = static_cast<std::size_t>(b.shape[1]);
  step.dense.inputs = outputs_first ? columns : rows;
  step.dense.outputs = outputs_first ? rows : columns;
  step.dense.weights.resize(rows * columns);
  step.dense.bias.assign(step.dense.outputs, 0.0);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      step.dense.weights[outputs_first ? r * columns + c : c * rows + r] = b.values[r * columns + c];
    }
  }
  result_.weight_type = std::max(result_.weight_type, b.type);
  return step;
}

// (x - mean) / sqrt(variance + epsilon) * scale + shift, as one factor and one term.
GraphReader::Data GraphReader::batch_normalization(const Node& node) {
  if (integer(node, "training_mode", 0) != 0) unsupported(node, "training_mode = 1", "0: export for inference");
  std::size_t x = data(node, 0).step;
  const auto& scale = constant_operand(node, 1).values;
  const auto& shift = constant_operand(node, 2).values;
  const auto& mean = constant_operand(node, 3).values;
  const auto& variance = constant_operand(node, 4).values;
  if (shift.size() != scale.size() || mean.size() != scale.size() || variance.size() != scale.size() || scale.empty()) {
    refuse(place(node), "scale, shift, mean and variance of different lengths", "one number a feature in each");
  }
  require_finite(node);
  const double epsilon = number(node, "epsilon", 1e-5);
  std::vector<double> factor(scale.size()), term(scale.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    factor[i] = scale[i] / std::sqrt(variance[i] + epsilon);
    term[i] = shift[i] - mean[i] * factor[i];
    if (!std::isfinite(term[i])) refuse(place(node), "a variance that is not positive", "one above 0");
  }
  x = builder_.with_constant(x, StepKind::multiply, std::move(factor), place(node));
  return {builder_.with_constant(x, StepKind::add, std::move(term), place(node))};
}

GraphReader::Data GraphReader::layer_normalization(const Node& node) {
  const Data x = data(node, 0);
  require_feature_axis(node, integer(node, "axis", -1), x.rank);
  const std::size_t features = width(node, x);
  require_finite(node);
  const auto list = [&](int i, double otherwise) {
    if (operand(node, i) == nullptr) return std::vector<double>(features, otherwise);
    std::vector<double> values = per_feature(node, constant_operand(node, i));
    if (values.size() == 1) values.assign(features, values[0]);
    return values;
  };
  for (int i = 1; i < node.output_size(); ++i) {
    if (!node.output(i).empty()) {
      unsupported(node, "mean and deviation as outputs", "the normalised values alone", "export for inference");
    }
  }
  return {
      builder_.operation(LayerNormalise{list(1, 1), list(2, 0), number(node, "epsilon", 1e-5)}, {x.step}, place(node))};
}

GraphReader::Data GraphReader::softmax(const Node& node) {
  const Data x = data(node, 0);
  require_feature_axis(node, integer(node, "axis", result_.opset < 13 ? 1 : -1), x.rank);
  const SoftmaxKind kind = node.op_type() == "Softmax" ? SoftmaxKind::plain : SoftmaxKind::logarithm;
  return {builder_.operation(Softmax{kind}, {x.step}, place(node))};
}

// 1 for the first of the largest, else 0: it equals the largest, and none before it does.
GraphReader::Data GraphReader::hardmax(const Node& node) {
  constexpr std::size_t kMost = 1024;
  const Data x = data(node, 0);
  require_feature_axis(node, integer(node, "axis", result_.opset < 13 ? 1 : -1), x.rank);
  const std::size_t features = width(node, x);
  if (features > kMost) unsupported(node, std::to_string(features) + " features", "at most 1024");
  const std::string here = place(node);
  const std::size_t largest = builder_.operation(Reduce{ReduceKind::maximum}, {x.step}, here);
  const std::size_t equal = builder_.operation(Binary{BinaryKind::equal}, {x.step, largest}, here);
  Step before{.kind = StepKind::dense, .where = here, .from = {equal}};
  before.dense = {features, features, std::vector<double>(features * features), std::vector<double>(features)};
  for (std::size_t j = 0; j < features; ++j)
    std::fill_n(before.dense.weights.begin() + static_cast<std::ptrdiff_t>(j * features), j, 1.0);
  const std::size_t count = builder_.append(std::move(before));
  const std::size_t first = builder_.operation(Binary{BinaryKind::equal}, {count, builder_.constant({0}, here)}, here);
  return {builder_.product(equal, first, here)};
}

}  // namespace lockstep::nn::detail

// ONNX operators that select, join and rename features, or change shapes in ways that keep the batch.
#include <algorithm>
#include <utility>

#include "lockstep/core/text.h"
#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_reader.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

constexpr const char* kComputed = "float32 or float64";
constexpr const char* kInFloat32 = "export the net in float32 (net.float())";
// Integers that depend on the input choose rows of a table.
constexpr const char* kWithoutIntegers =
    "write it another way and export again: an embedding as one-hot features times its weights, interpolation between "
    "knots (jnp.interp) as a sum of relu";
constexpr const char* kBatchAlone =
    "keep the batch a dimension of its own: nn.MultiheadAttention joins it with the heads, and so does PyTorch's "
    "default exporter with those of F.scaled_dot_product_attention: export that with torch.onnx.export(.., "
    "dynamo=False), or write it as softmax(q @ k.transpose(-1, -2) / sqrt(d), -1) @ v on [batch, head, place, feature]";

std::vector<std::size_t> ascending(std::size_t first, std::size_t count) {
  std::vector<std::size_t> indices(count);
  for (std::size_t i = 0; i < count; ++i) indices[i] = first + i;
  return indices;
}

}  // namespace

std::optional<GraphReader::Values> GraphReader::columns(const Node& node) {
  const std::string& op = node.op_type();
  const auto one = [](Value value) {
    Values values;
    values.push_back(std::move(value));
    return values;
  };
  if (op == "Gather") return one(gather(node));
  if (op == "Slice") return one(slice(node));
  if (op == "Split") return split(node);
  if (op == "Concat") return one(concat(node));
  if (op == "Shape" || op == "ConstantOfShape") return one(shape_of(node));
  if (op == "Identity" || op == "Dropout" || op == "Cast" || op == "Flatten" || op == "Reshape" || op == "Squeeze" ||
      op == "Unsqueeze" || op == "Transpose" || op == "CastLike") {
    return one(unchanged(node));
  }
  return {};
}

void GraphReader::require_feature_axis(const Node& node, std::int64_t axis, int rank, bool turned) const {
  if (rank == 2 && (turned ? axis == 0 || axis == -2 : axis == 1 || axis == -1)) return;
  unsupported(node, "axis " + std::to_string(axis) + " of " + (rank == 2 ? "[batch, features]" : "[batch]"),
              "axis 1 or -1 of [batch, features]: each sample for itself");
}

GraphReader::Data GraphReader::select(const Node& node, const Data& x, std::vector<std::size_t> indices) {
  builder_.work(indices.size(), place(node));
  if (indices == ascending(0, width(node, x))) return x;
  return {builder_.operation(Columns{std::move(indices)}, {x.step}, place(node)), x.rank, x.turned};
}

GraphReader::Value GraphReader::gather(const Node& node) {
  if (constant(node, 1) == nullptr && operand(node, 1) != nullptr) {
    unsupported(node, "indices that depend on the input", "constant ones", kWithoutIntegers);
  }
  const OnnxTensor& wanted = constant_operand(node, 1);
  std::int64_t axis = integer(node, "axis", 0);
  const OnnxTensor* tensor = constant(node, 0);
  if (tensor && axis < 0) axis += static_cast<std::int64_t>(tensor->shape.size());
  if (tensor && (axis < 0 || axis >= static_cast<std::int64_t>(tensor->shape.size()))) {
    refuse(place(node), "axis " + std::to_string(axis), "one of the constant's own");
  }
  const Data x = tensor ? Data{0} : data_maybe_turned(node, 0);
  if (!tensor) require_feature_axis(node, axis, x.rank, x.turned);
  const std::size_t extent =
      tensor ? static_cast<std::size_t>(tensor->shape[static_cast<std::size_t>(axis)]) : width(node, x);
  if (wanted.shape.size() > 1) unsupported(node, "indices of rank 2 or more", "a list of indices, or one");
  Indices indices = indices_within(node, wanted, static_cast<std::int64_t>(extent));
  if (indices.empty()) refuse(place(node), "no indices", "at least one");
  if (tensor) {
    const bool single = wanted.shape.empty();
    return take_constants(*tensor, static_cast<std::size_t>(axis), indices, single ? AxisKept::no : AxisKept::yes,
                          place(node));
  }
  Data selected = select(node, x, std::move(indices));
  if (wanted.shape.empty()) selected = {selected.step, 1};
  return selected;
}

// Beside what depends on the input: ONNX joins no [1, features] to [batch, features].
void GraphReader::require_each_sample(const Node& node, const OnnxTensor& tensor) const {
  if (tensor.each_sample || fixed_batch_ == 1) return;
  unsupported(node, "a constant " + text_of(tensor.shape) + " beside values of each sample",
              "as many rows as the batch", "expand it to the batch (c.expand(x.shape[0], -1)) before it is joined");
}

std::vector<GraphReader::SliceAlong> GraphReader::slices_of(const Node& node) const {
  const auto starts = whole_numbers(node, "starts", 1), ends = whole_numbers(node, "ends", 2);
  auto axes = whole_numbers(node, "axes", 3), steps = whole_numbers(node, "steps", 4);
  if (!starts || !ends || starts->empty()) refuse(place(node), "no starts or no ends", "one for each axis");
  const std::size_t count = starts->size();
  if (!axes) {
    axes.emplace();
    for (std::size_t i = 0; i < count; ++i) axes->push_back(static_cast<std::int64_t>(i));
  }
  if (!steps) steps.emplace(count, 1);
  if (ends->size() != count || axes->size() != count || steps->size() != count) {
    refuse(place(node), "starts, ends, axes and steps of different lengths", "one of each for every axis");
  }
  std::vector<SliceAlong> slices;
  for (std::size_t i = 0; i < count; ++i) slices.push_back({(*starts)[i], (*ends)[i], (*axes)[i], (*steps)[i]});
  return slices;
}

GraphReader::Value GraphReader::slice(const Node& node) {
  Value value = required(node, 0);
  for (const SliceAlong& along : slices_of(node)) value = slice(node, value, along);
  return value;
}

// All samples, in their order.
bool GraphReader::whole_batch(const SliceAlong& along) const {
  const bool to_end = along.end >= INT32_MAX || (fixed_batch_ && along.end == *fixed_batch_) ||
                      along.end == static_cast<std::int64_t>(kBatchExtent);
  return along.start == 0 && to_end && along.step == 1;
}

// The places along an axis of this extent.
Indices GraphReader::sliced(const Node& node, const SliceAlong& along, std::int64_t extent) const {
  if (along.step == 0) refuse(place(node), "a step of 0", "another");
  constexpr auto kBatch = static_cast<std::int64_t>(kBatchExtent);
  if (along.start == kBatch || along.end == kBatch) {
    unsupported(node, "a slice of as many parts as the batch", "fixed numbers: each sample for itself");
  }
  const auto bounded = [&](std::int64_t at, std::int64_t least, std::int64_t most) {
    if (at < 0) at = at < -extent ? -1 : at + extent;
    return std::clamp(at, least, most);
  };
  Indices indices;
  if (along.step > 0) {
    const std::int64_t end = bounded(along.end, 0, extent);
    for (std::int64_t i = bounded(along.start, 0, extent); i < end; i += std::min(along.step, extent + 1)) {
      indices.push_back(static_cast<std::size_t>(i));
    }
  } else {
    const std::int64_t end = along.end < -extent ? -1 : bounded(along.end, -1, extent - 1);
    for (std::int64_t i = bounded(along.start, -1, extent - 1); i > end; i += std::max(along.step, -extent - 1)) {
      indices.push_back(static_cast<std::size_t>(i));
    }
  }
  return indices;
}

GraphReader::Value GraphReader::slice(const Node& node, const Value& from, SliceAlong along) {
  const auto* tensor = std::get_if<OnnxTensor>(&from);
  const Data x = tensor ? Data{0} : std::get<Data>(from);
  std::int64_t axis = along.axis;
  if (tensor && axis < 0) axis += static_cast<std::int64_t>(tensor->shape.size());
  if (tensor && (axis < 0 || axis >= static_cast<std::int64_t>(tensor->shape.size()))) {
    refuse(place(node), "axis " + std::to_string(axis), "one of the constant's own");
  }
  const bool batch = x.turned ? axis == 1 || axis == -1 : axis == 0 || axis == -x.rank;
  if (!tensor && batch && whole_batch(along)) return x;
  if (!tensor) require_feature_axis(node, axis, x.rank, x.turned);
  const std::int64_t extent =
      tensor ? tensor->shape[static_cast<std::size_t>(axis)] : static_cast<std::int64_t>(width(node, x));
  if (tensor) builder_.work(tensor->values.size(), place(node));
  Indices indices = sliced(node, along, extent);
  if (tensor) return take_constants(*tensor, static_cast<std::size_t>(axis), indices, AxisKept::yes, place(node));
  if (indices.empty()) unsupported(node, "an empty slice", "at least one feature");
  return select(node, x, std::move(indices));
}

GraphReader::Values GraphReader::split(const Node& node) {
  const Data x = data(node, 0);
  require_feature_axis(node, integer(node, "axis", 0), x.rank);
  Values parts;
  std::size_t first = 0;
  for (const std::size_t size : split_sizes(node, width(node, x))) {
    parts.emplace_back(select(node, x, ascending(first, size)));
    first += size;
  }
  return parts;
}

std::vector<std::size_t> GraphReader::split_sizes(const Node& node, std::size_t whole) const {
  const auto count = static_cast<std::size_t>(node.output_size());
  std::vector<std::size_t> sizes;
  if (const auto given = whole_numbers(node, "split", 1)) {
    for (const std::int64_t size : *given) {
      if (size < 1 || static_cast<std::size_t>(size) > whole) {
        refuse(place(node), "a part of " + std::to_string(size), "1 to " + std::to_string(whole));
      }
      sizes.push_back(static_cast<std::size_t>(size));
    }
  } else {
    const std::size_t each = (whole + count - 1) / count;  // the last may be smaller, from opset 18
    for (std::size_t i = 0; i < count; ++i) sizes.push_back(std::min(each, whole - std::min(whole, i * each)));
  }
  std::size_t sum = 0;
  for (const std::size_t size : sizes) sum += size;
  if (sizes.size() != count || sum != whole || sizes.back() == 0) {
    refuse(place(node), std::to_string(sizes.size()) + " parts of " + std::to_string(sum) + " features",
           std::to_string(count) + " of " + std::to_string(whole));
  }
  return sizes;
}

GraphReader::Value GraphReader::concat(const Node& node) {
  std::vector<const OnnxTensor*> constants;
  for (int i = 0; i < node.input_size(); ++i) {
    if (const OnnxTensor* tensor = constant(node, i)) constants.push_back(tensor);
  }
  std::int64_t axis = integer(node, "axis", 1);
  if (!constants.empty() && constants.size() == static_cast<std::size_t>(node.input_size())) {
    const auto rank = static_cast<std::int64_t>(constants[0]->shape.size());
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) refuse(place(node), "axis " + std::to_string(axis), "one of the constants' own");
    return join_constants(constants, static_cast<std::size_t>(axis), place(node));
  }
  std::vector<std::size_t> steps;
  for (int i = 0; i < node.input_size(); ++i) {
    if (const OnnxTensor* tensor = constant(node, i)) require_each_sample(node, *tensor);
    const Data part = data_or_numbers(node, i);
    require_feature_axis(node, axis, part.rank);
    width(node, part);
    steps.push_back(part.step);
  }
  if (steps.empty()) refuse(place(node), "nothing to join", "at least one operand");
  if (steps.size() == 1) return Data{steps[0]};
  return Data{builder_.operation(Concatenate{}, std::move(steps), place(node))};
}

// Shapes that exporters compute while the net runs: the batch's size stands in them as kBatchExtent.
GraphReader::Value GraphReader::shape_of(const Node& node) {
  if (node.op_type() == "Shape") {
    OnnxTensor shape{{}, {}, WeightType::f64, false, true};
    if (const OnnxTensor* tensor = constant(node, 0)) {
      shape.values.assign(tensor->shape.begin(), tensor->shape.end());
      if (tensor->each_sample) {
        const auto ones = std::count(shape.values.begin(), shape.values.end(), 1.0);
        if (ones == 0 || (ones > 1 && shape.values.size() > 2)) {
          unsupported(node, "the shape of a constant expanded to the batch", "one with the batch in a known place");
        }
        *std::find(shape.values.begin(), shape.values.end(), 1.0) = kBatchExtent;
      }
    } else {
      const Dimensions x = dimensions_of(node, required(node, 0));
      shape.values.assign(x.extents.begin(), x.extents.end());
      shape.values[*x.batch] = kBatchExtent;
    }
    const auto rank = static_cast<std::int64_t>(shape.values.size());
    const auto within = [&](std::int64_t at) { return std::clamp(at < 0 ? at + rank : at, std::int64_t{0}, rank); };
    const std::int64_t start = within(integer(node, "start", 0)), end = within(integer(node, "end", rank));
    shape.values = {shape.values.begin() + start, shape.values.begin() + std::max(start, end)};
    shape.holds_batch = std::count(shape.values.begin(), shape.values.end(), kBatchExtent) > 0;
    shape.shape = {static_cast<std::int64_t>(shape.values.size())};
    return shape;
  }
  const OnnxTensor& wanted = constant_operand(node, 0);
  const std::size_t rank = wanted.values.size();
  if (!wanted.holds_batch) return filled(node, wanted);
  std::size_t last = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const double extent = wanted.values[i];
    const bool batch = i + 1 < rank && (extent == kBatchExtent || extent == -1 || extent == 1);
    if (!batch && !(extent >= 1 && extent <= kMostFeatures && i + 1 == rank)) {
      unsupported(node, "a shape of other dimensions", "[batch, features] or [features]");
    }
    if (!batch) last = static_cast<std::size_t>(extent);
  }
  if (rank == 0 || rank > 2) unsupported(node, "a shape of rank " + std::to_string(rank), "1 or 2");
  OnnxTensor result = filled(node, {{2}, {1, static_cast<double>(last)}, WeightType::f64, false, true});
  result.each_sample = true;
  return result;
}

// One number in every place of a shape without the batch.
OnnxTensor GraphReader::filled(const Node& node, const OnnxTensor& shape) const {
  constexpr double kMost = std::size_t{1} << 24;
  OnnxTensor result{{}, {}, WeightType::f16, false};
  double count = 1;
  for (const double extent : shape.values) {
    if (!(extent >= 1 && extent <= kMost)) {
      unsupported(node, "a shape of other dimensions", "[batch, features], or extents of 1 to 2^24");
    }
    result.shape.push_back(static_cast<std::int64_t>(extent));
    count *= extent;
    if (count > kMost) unsupported(node, "a constant of more numbers than a net has", "at most 2^24");
  }
  double number = 0;
  if (const auto* value = attribute(node, "value")) {
    const OnnxTensor given = read_tensor(value->t(), place(node), path_);
    number = single_number(node, given);
    result.whole = given.whole;
  }
  result.values.assign(static_cast<std::size_t>(count), number);
  return result;
}

GraphReader::Value GraphReader::unchanged(const Node& node) {
  const std::string& op = node.op_type();
  if (const OnnxTensor* tensor = constant(node, 0)) {
    if (op == "Cast") return cast_constant(*tensor, integer(node, "to", 0), place(node));
    if (op == "Identity" || op == "Dropout") return *tensor;
    if (op == "CastLike") {  // to the type of what depends on the input
      const bool truths = truths_.contains(node.input(1));
      return cast_constant(*tensor, truths ? onnx::TensorProto::BOOL : onnx::TensorProto::DOUBLE, place(node));
    }
    return reshaped(node, *tensor);
  }
  if (op == "Transpose") {
    Data x = data_maybe_turned(node, 0);
    const auto order = whole_numbers(node, "perm", -1);
    const bool kept = x.rank == 1 || (order && order->size() == 2 && (*order)[0] == 0);
    if (!kept) x.turned = !x.turned;
    return x;
  }
  if (const Value& value = required(node, 0); op == "Reshape" && std::get<Data>(value).rank > 2) {
    unsupported(node,
                "a shape that joins the batch of " + text_of(dimensions_of(node, value)) + " with other dimensions",
                "[batch, features]", kBatchAlone);
  }
  const Data x = data(node, 0);
  if (op == "Cast") {
    const std::int64_t to = integer(node, "to", 0);
    if (to == onnx::TensorProto::BOOL) return Data{builder_.truth(x.step, place(node)), x.rank};
    const bool shorter = to == onnx::TensorProto::FLOAT16 || to == onnx::TensorProto::BFLOAT16;
    if (to != onnx::TensorProto::FLOAT && to != onnx::TensorProto::DOUBLE) {
      unsupported(node, "a rounding to " + type_name(to), kComputed, shorter ? kInFloat32 : kWithoutIntegers);
    }
  } else if (op == "CastLike") {
    return cast_like(node, x);
  } else if (op == "Dropout") {
    const OnnxTensor* training = constant(node, 2);
    if (training && training->is_scalar() && training->values[0] != 0) {
      unsupported(node, "dropout in training mode", "inference", "export the net after net.eval()");
    }
  } else if (op != "Identity") {
    return reshaped(node, x);
  }
  return x;
}

// To the type of another value: numbers that depend on the input are computed in one precision throughout.
GraphReader::Value GraphReader::cast_like(const Node& node, const Data& x) {
  const Value& like = required(node, 1);
  if (const auto* tensor = std::get_if<OnnxTensor>(&like)) {
    const bool short_type = tensor->type == WeightType::f16 || tensor->type == WeightType::bf16;
    if (tensor->whole || short_type) {
      unsupported(node, tensor->whole ? "a rounding to integers" : "a rounding to " + to_string(tensor->type),
                  kComputed, tensor->whole ? kWithoutIntegers : kInFloat32);
    }
    return x;
  }
  if (!truths_.contains(node.input(1))) return x;
  return Data{builder_.truth(x.step, place(node)), x.rank};
}

// Flatten, Reshape, Squeeze, Unsqueeze between [batch, features] and, with one feature, [batch].
GraphReader::Value GraphReader::reshaped(const Node& node, const Data& x) {
  const std::string& op = node.op_type();
  const std::size_t features = builder_.width(x.step);
  const auto axes = op == "Flatten" || op == "Reshape" ? std::nullopt : whole_numbers(node, "axes", 1);
  if (op == "Flatten") {
    const std::int64_t axis = integer(node, "axis", 1);
    if (axis != 1 && !(axis == -1 && x.rank == 2))
      unsupported(node, "axis = " + std::to_string(axis), "axis = 1: the batch kept");
    return Data{x.step, 2};
  }
  if (op == "Unsqueeze") {
    if (x.rank == 1 && axes && axes->size() == 1 && ((*axes)[0] == 1 || (*axes)[0] == -1)) return Data{x.step, 2};
    unsupported(node, "another rank than [batch, features]", "axis 1 of [batch]");
  }
  if (op == "Squeeze") {
    const bool feature_axis = !axes || (axes->size() == 1 && ((*axes)[0] == 1 || (*axes)[0] == -1));
    if (x.rank == 2 && features == 1 && feature_axis) return Data{x.step, 1};
    if (!axes && features > 1 && fixed_batch_ != 1) return x;  // nothing of extent 1 but, perhaps, the batch
    unsupported(node, "another rank than [batch, features]", "axis 1 of [batch, 1]");
  }
  const OnnxTensor& shape = constant_operand(node, 1);
  const auto is_batch = [&](double extent) {
    return extent == 0 || extent == -1 || extent == kBatchExtent ||
           (fixed_batch_ && extent == static_cast<double>(*fixed_batch_));
  };
  const std::vector<double>& to = shape.values;
  if (to.size() == 1 && features == 1 && is_batch(to[0])) return Data{x.step, 1};
  const bool open = to.size() == 2 && to[1] == -1 && to[0] != -1;
  const bool kept = to.size() == 2 && (to[1] == static_cast<double>(features) || (to[1] == 0 && x.rank == 2) ||
                                       (features == 0 && to[1] > 0));
  // skl2onnx ends regressors of several targets so; the numbers are the same, and in the same order.
  const std::string& made = node.output(0);
  const bool listed = to.size() == 2 && to[0] == -1 && to[1] == 1 &&
                      std::ranges::any_of(graph_.output(), [&](const auto& output) { return output.name() == made; }) &&
                      std::ranges::none_of(graph_.node(), [&](const Node& other) {
                        return std::ranges::count(other.input(), made) > 0;
                      });
  if (to.size() != 2 || !is_batch(to[0]) || (!open && !kept && !listed)) {
    unsupported(node, "a shape that does not keep the batch", "[-1, features]", kBatchAlone);
  }
  return Data{x.step, 2};
}

}  // namespace lockstep::nn::detail

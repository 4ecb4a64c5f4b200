// What a node computes, in operators of ONNX.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/core/text.h"
#include "lockstep/nn/detail/onnx_writer.h"
#include "lockstep/nn/detail/refuse.h"
#include "lockstep/nn/shared_weights.h"

namespace lockstep::nn::detail {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

}  // namespace

std::string OnnxWriter::write(const Dense& dense) {
  const auto outputs = static_cast<std::int64_t>(dense.outputs), inputs = static_cast<std::int64_t>(dense.inputs);
  const std::string weight = tensor_of_node("weight", dense.weights, {outputs, inputs});
  std::vector<std::string> read{x(), weight};
  if (!lacks_bias(dense)) read.push_back(list("bias", dense.bias));
  std::string made = piece("Gemm", read);
  attribute("transB", std::int64_t{1});
  return made;
}

std::string OnnxWriter::write(const Activate& activate) { return activation(activate.activation, x()); }

std::string OnnxWriter::write(const Standardise& standardise) {
  for (std::size_t i = 0; single() && i < standardise.scale.size(); ++i) {
    if (static_cast<float>(standardise.scale[i]) != 0) continue;
    refuse(node_->name + ".scale[" + std::to_string(i) + "]", number_text(standardise.scale[i]),
           "a number that is not 0 in float32", "write the net in float64");
  }
  const std::string centred = difference({x(), list("shift", standardise.shift)});
  return quotient({centred, list("scale", standardise.scale)});
}

std::string OnnxWriter::write(const Rescale& rescale) {
  const std::string scaled = product({x(), list("scale", rescale.scale)});
  return sum({scaled, list("shift", rescale.shift)});
}

std::string OnnxWriter::write(const Constant& constant) {
  const std::string& name = tensors_[node_->name].emplace_back(named_[node_->name]);
  return tensor(name, constant.values, {1, static_cast<std::int64_t>(constant.values.size())});
}

std::string OnnxWriter::write(const Concatenate&) {
  const bool any = std::ranges::any_of(read_, &Value::each_sample);
  Names parts;
  for (const Value& value : read_) parts.push_back(any ? each_sample(value) : value.name);
  std::string made = piece("Concat", std::move(parts));
  attribute("axis", std::int64_t{1});
  return made;
}

std::string OnnxWriter::write(const Columns& columns) {
  const std::vector<std::int64_t> indices(columns.indices.begin(), columns.indices.end());
  std::string made = piece("Gather", {x(), whole_numbers(node_->name + ".indices", indices)});
  attribute("axis", std::int64_t{1});
  return made;
}

std::string OnnxWriter::write(const Unary& unary) {
  switch (unary.kind) {
    case UnaryKind::square_root:
      return piece("Sqrt", {x()});
    case UnaryKind::exp:
      return piece("Exp", {x()});
    case UnaryKind::log:
      return piece("Log", {x()});
    case UnaryKind::absolute:
      return piece("Abs", {x()});
    case UnaryKind::negate:
      return piece("Neg", {x()});
    case UnaryKind::reciprocal:
      return piece("Reciprocal", {x()});
    case UnaryKind::erf:
      return piece("Erf", {x()});
    case UnaryKind::cosine:
      return piece("Cos", {x()});
    case UnaryKind::arctangent:
      return piece("Atan", {x()});
    case UnaryKind::floor:
      return piece("Floor", {x()});
    case UnaryKind::round:
      break;
  }
  return piece("Round", {x()});
}

std::string OnnxWriter::write(const Clip& clip) { return clamped(x(), clip.minimum, clip.maximum); }

// Where ONNX Runtime (1.32) puts a Relu and a Clip after it together, it fails for a Clip of float64.
std::string OnnxWriter::clamped(const std::string& x, double minimum, double maximum) {
  const bool from_below = minimum != -kUnbounded, from_above = maximum != kUnbounded;
  if (!from_below && !from_above) return piece("Identity", {x});
  if (!single()) {
    const std::string raised = from_below ? piece("Max", {x, number(minimum)}) : x;
    return from_above ? piece("Min", {raised, number(maximum)}) : raised;
  }
  Names operands{x, from_below ? number(minimum) : ""};
  if (from_above) operands.push_back(number(maximum));
  return piece("Clip", std::move(operands));
}

// x <= upper ? (x < lower ? x + bias : 0) : x - bias, so that NaN stays.
std::string OnnxWriter::write(const DeadZone& zone) {
  std::string within = number(0);
  if (zone.lower != -kUnbounded) {
    within = one_of({piece("Less", {x(), number(zone.lower)}), sum({x(), number(zone.bias)}), within});
  }
  return one_of({piece("LessOrEqual", {x(), number(zone.upper)}), within, difference({x(), number(zone.bias)})});
}

std::string OnnxWriter::write(const Binary& binary) {
  const auto arithmetic = [&](const char* op) { return piece(op, {x(), x(1)}); };
  const auto comparison = [&](const char* op) {
    truth_ = piece(op, {x(), x(1)});
    return read_as_number(*node_) ? cast(truth_, type()) : truth_;
  };
  switch (binary.kind) {
    case BinaryKind::add:
      return arithmetic("Add");
    case BinaryKind::subtract:
      return arithmetic("Sub");
    case BinaryKind::multiply:
      return arithmetic("Mul");
    case BinaryKind::divide:
      return arithmetic("Div");
    case BinaryKind::minimum:
      return arithmetic("Min");
    case BinaryKind::maximum:
      return arithmetic("Max");
    case BinaryKind::power:
      return arithmetic("Pow");
    case BinaryKind::less:
      return comparison("Less");
    case BinaryKind::less_or_equal:
      return comparison("LessOrEqual");
    case BinaryKind::equal:
      return comparison("Equal");
    case BinaryKind::modulo:
      break;
  }
  return remainder();
}

// That of the dividend's sign, and the divisor more where the signs differ.
std::string OnnxWriter::remainder() {
  const std::string rest = piece("Mod", {x(), x(1)});
  attribute("fmod", std::int64_t{1});
  const std::string sign = product({piece("Sign", {rest}), piece("Sign", {x(1)})});
  return one_of({piece("Less", {sign, number(0)}), sum({rest, x(1)}), rest});
}

std::string OnnxWriter::write(const Choose& choose) {
  onnx::TensorProto& mask = *graph_.add_initializer();
  mask.set_name(claim(node_->name + ".mask"));
  mask.set_data_type(onnx::TensorProto::BOOL);
  mask.add_dims(static_cast<std::int64_t>(choose.mask.size()));
  for (const std::uint8_t first : choose.mask) mask.mutable_raw_data()->push_back(first != 0 ? 1 : 0);
  return one_of({mask.name(), x(), x(1)});
}

std::string OnnxWriter::write(const Softmax& softmax) {
  std::string made = piece(softmax.kind == SoftmaxKind::plain ? "Softmax" : "LogSoftmax", {x()});
  attribute("axis", std::int64_t{1});
  return made;
}

// The axis became an operand of ReduceSum in opset 13, of the others in 18.
std::string OnnxWriter::write(const Reduce& reduce) {
  if (reduce.kind == ReduceKind::sum) return piece("ReduceSum", {x(), feature_axis()});
  return over_features(reduce.kind == ReduceKind::mean      ? "ReduceMean"
                       : reduce.kind == ReduceKind::minimum ? "ReduceMin"
                                                            : "ReduceMax",
                       x());
}

std::string OnnxWriter::over_features(const char* op, const std::string& x) {
  std::string made = piece(op, {x});
  onnx::AttributeProto& axes = *graph_.mutable_node()->rbegin()->add_attribute();
  axes.set_name("axes");
  axes.set_type(onnx::AttributeProto::INTS);
  axes.add_ints(1);
  return made;
}

std::string OnnxWriter::write(const LayerNormalise& normalise) {
  const std::string scale = list("scale", normalise.scale), shift = list("shift", normalise.shift);
  if (single() || static_cast<float>(normalise.epsilon) == normalise.epsilon) {
    check_fits(normalise.epsilon, ".epsilon");
    std::string made = piece("LayerNormalization", {x(), scale, shift});
    attribute("axis", std::int64_t{1});
    attribute("epsilon", normalise.epsilon);
    return made;
  }
  // The operator's epsilon has the digits of a float32.
  const std::string centred = difference({x(), over_features("ReduceMean", x())});
  const std::string variance = over_features("ReduceMean", product({centred, centred}));
  const std::string deviation = piece("Sqrt", {sum({variance, number(normalise.epsilon)})});
  return sum({product({quotient({centred, deviation}), scale}), shift});
}

std::string OnnxWriter::write(const Select&) {
  const std::string condition = truth_of(0);
  return one_of({condition, x(1), x(2)});
}

std::string OnnxWriter::write(const Chain& chain) {
  return derivative(chain.activation.kind, chain.activation.alpha, x(), x(1));
}

// For each sample a row with a 1 at its knot and 0 at the others selects that knot's number and coefficients: a product
// without a rounding, whatever its order of summation. ONNX could gather them by index as well; few readers of nets
// know that of indices which are computed.
std::string OnnxWriter::write(const Interpolate& table) {
  const std::size_t knots = table.knots.size();
  const auto width = static_cast<std::int64_t>(knots), outputs = static_cast<std::int64_t>(table.outputs);
  const std::string at = tensor_of_node("knots", table.knots, {1, width});
  std::vector<double> ends(table.knots.begin() + 1, table.knots.end());
  ends.push_back(kUnbounded);
  const std::string inside = clamped(x(), table.knots.front(), table.knots.back());
  const std::string here =
      piece("And", {piece("LessOrEqual", {at, inside}), piece("Less", {inside, list("ends", ends)})});
  const std::string selected = cast(here, type());
  const auto of_knot = [&](const std::string& numbers) {
    std::string made = piece("Gemm", {selected, numbers});
    attribute("transB", std::int64_t{1});
    return made;
  };
  std::string value, distance;
  for (std::size_t power = 0; power < table.powers(); ++power) {
    std::vector<double> matrix;
    for (std::size_t output = 0; output < table.outputs; ++output) {
      const auto first =
          table.coefficients.begin() + static_cast<std::ptrdiff_t>((output * table.powers() + power) * knots);
      matrix.insert(matrix.end(), first, first + static_cast<std::ptrdiff_t>(knots));
    }
    const std::string coefficient =
        of_knot(tensor_of_node("coefficients." + std::to_string(power), matrix, {outputs, width}));
    if (power == 1) distance = difference({inside, of_knot(at)});
    value = power == 0 ? coefficient : sum({product({value, distance}), coefficient});
  }
  return value;
}

}  // namespace lockstep::nn::detail

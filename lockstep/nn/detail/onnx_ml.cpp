// The operators of the domain ai.onnx.ml that scikit-learn's converter puts around a net: scaling, norms, linear
// models, and what joins and selects columns.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/nn/detail/onnx_dimensions.h"
#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_reader.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {

std::vector<double> GraphReader::floats(const Node& node, const char* name) const {
  std::vector<double> values;
  if (const auto* found = attribute(node, name)) values.assign(found->floats().begin(), found->floats().end());
  for (const double value : values) {
    if (!std::isfinite(value)) refuse(place(node) + "." + name, "nan or infinity", "finite numbers");
  }
  return values;
}

GraphReader::Value GraphReader::machine_learning(const Node& node) {
  const std::string& op = node.op_type();
  if (op == "Scaler") return scaler(node);
  if (op == "Normalizer") return normalizer(node);
  if (op == "LinearRegressor") return linear_regressor(node);
  if (op == "Imputer") return imputer(node);
  if (op == "Binarizer") {  // 1 above the threshold
    const Data x = data(node, 0);
    const std::size_t edge = builder_.constant({number(node, "threshold", 0)}, place(node));
    return Data{builder_.operation(Binary{BinaryKind::less}, {edge, x.step}, place(node)), x.rank};
  }
  if (op == "ArrayFeatureExtractor") {  // of the last dimension
    const Value& value = required(node, 0);
    const Dimensions x = dimensions_of(node, value);
    const std::size_t axis = axis_of(node, -1, x);
    const Indices wanted = indices_within(node, constant_operand(node, 1), x.extents[axis]);
    return pictured(node, value, taken(picture_of(node, x), axis, wanted), x.batch);
  }
  if (op == "ZipMap") {  // a number for each class, by its name: the numbers in the order of classes
    const Data x = data(node, 0);
    if (classes_of(node, "classlabels_int64s") != width(node, x)) {
      refuse(place(node),
             std::to_string(width(node, x)) + " numbers for " + std::to_string(classes_of(node, "classlabels_int64s")) +
                 " classes",
             "one for each");
    }
    return x;
  }
  if (op == "FeatureVectorizer") {
    std::vector<std::size_t> steps;
    const auto* const asked = attribute(node, "inputdimensions");
    for (int i = 0; i < node.input_size(); ++i) {
      const Data part = data_or_numbers(node, i);
      const auto features = static_cast<std::int64_t>(width(node, part));
      if (asked && (i >= asked->ints_size() || asked->ints(i) != features)) {
        unsupported(node, "inputdimensions that cut off or fill up", "the width of each operand");
      }
      steps.push_back(part.step);
    }
    if (steps.empty()) refuse(place(node), "nothing to join", "at least one operand");
    return steps.size() == 1 ? Data{steps[0]} : Data{builder_.operation(Concatenate{}, std::move(steps), place(node))};
  }
  unsupported(
      node, "an operator of scikit-learn's converter that is not supported here",
      "Scaler, Normalizer, LinearRegressor, LinearClassifier, Imputer, Binarizer, ArrayFeatureExtractor, "
      "FeatureVectorizer or ZipMap",
      "export the net (MLPRegressor or MLPClassifier, and the scaling around it) alone, and do the rest before or "
      "after it");
}

// scikit-learn's: (x - offset) * scale, the numbers in attributes.
GraphReader::Data GraphReader::scaler(const Node& node) {
  std::size_t x = data(node, 0).step;
  std::vector<double> offset = floats(node, "offset"), scale = floats(node, "scale");
  for (double& value : offset) value = -value;
  if (!offset.empty()) x = builder_.with_constant(x, StepKind::add, std::move(offset), place(node));
  if (!scale.empty()) x = builder_.with_constant(x, StepKind::multiply, std::move(scale), place(node));
  return {x};
}

// What was not measured, NaN or a number that stands for it, becomes a number of the feature's.
GraphReader::Data GraphReader::imputer(const Node& node) {
  const std::string here = place(node);
  const Data x = data(node, 0);
  std::vector<double> values = floats(node, "imputed_value_floats");
  if (values.empty()) refuse(here, "no imputed_value_floats", "one number, or one for each feature");
  if (values.size() != 1 && values.size() != width(node, x)) {
    refuse(here, std::to_string(values.size()) + " imputed_value_floats", "one, or one for each feature");
  }
  const std::size_t filled = builder_.constant(std::move(values), here);
  const double missing = number(node, "replaced_value_float", 0);
  const auto equal = [&](std::size_t other) {
    return builder_.operation(Binary{BinaryKind::equal}, {x.step, other}, here);
  };
  if (std::isnan(missing)) return {builder_.operation(Select{}, {equal(x.step), x.step, filled}, here), x.rank};
  return {builder_.operation(Select{}, {equal(builder_.constant({missing}, here)), filled, x.step}, here), x.rank};
}

GraphReader::Data GraphReader::normalizer(const Node& node) {
  const auto* given = attribute(node, "norm");
  const std::string norm = given ? given->s() : "MAX";
  if (norm != "L1" && norm != "L2" && norm != "MAX") unsupported(node, "the norm " + norm, "L1, L2 or MAX");
  const Data x = data(node, 0);
  width(node, x);
  return {with_norm_one(node, x.step, norm)};
}

// x / |x|, and x where that is 0. "MAX" is the largest number, not the largest absolute one, as the standard has it.
std::size_t GraphReader::with_norm_one(const Node& node, std::size_t x, const std::string& norm) {
  const std::string here = place(node);
  const std::size_t each = norm == "L2"   ? builder_.activation(x, {ActivationKind::square}, here)
                           : norm == "L1" ? builder_.operation(Unary{UnaryKind::absolute}, {x}, here)
                                          : x;
  const ReduceKind kind = norm == "MAX" ? ReduceKind::maximum : ReduceKind::sum;
  std::size_t length = builder_.operation(Reduce{kind}, {each}, here);
  if (norm == "L2") length = builder_.operation(Unary{UnaryKind::square_root}, {length}, here);
  const std::size_t none = builder_.operation(Binary{BinaryKind::equal}, {length, builder_.constant({0}, here)}, here);
  const std::size_t divisor = builder_.operation(Select{}, {none, builder_.constant({1}, here), length}, here);
  return builder_.operation(Binary{BinaryKind::divide}, {x, divisor}, here);
}

GraphReader::Data GraphReader::linear_regressor(const Node& node) {
  const auto* after = attribute(node, "post_transform");
  if (after && after->s() != "NONE") unsupported(node, "post_transform = " + after->s(), "NONE");
  return linear_scores(node, static_cast<std::size_t>(std::max(integer(node, "targets", 1), std::int64_t{0})));
}

// Their labels are words, or numbers in the attribute of that name.
std::size_t GraphReader::classes_of(const Node& node, const char* name) {
  const auto *words = attribute(node, "classlabels_strings"), *numbers = attribute(node, name);
  return static_cast<std::size_t>(words ? words->strings_size() : numbers ? numbers->ints_size() : 0);
}

// Its second output, the classes' scores; the first is a label. Two classes may have one score s, the second's: the
// first has 1 - s, as ONNX Runtime computes it.
GraphReader::Values GraphReader::linear_classifier(const Node& node) {
  const std::size_t classes = classes_of(node, "classlabels_ints");
  const bool one_score = classes == 2 && floats(node, "intercepts").size() == 1;
  const auto* after = attribute(node, "post_transform");
  const std::string transform = after ? after->s() : "NONE";
  if (transform != "NONE" && transform != "SOFTMAX" && transform != "LOGISTIC") {
    unsupported(node, "post_transform = " + transform, "NONE, SOFTMAX or LOGISTIC");
  }
  if (one_score && transform == "SOFTMAX") unsupported(node, "SOFTMAX of one score", "a score for each class");
  Data scores = linear_scores(node, one_score ? 1 : classes);
  if (transform == "SOFTMAX") scores.step = builder_.operation(Softmax{}, {scores.step}, place(node));
  if (transform == "LOGISTIC") scores.step = builder_.activation(scores.step, {ActivationKind::sigmoid}, place(node));
  if (one_score) {
    const std::size_t negative = builder_.with_constant(scores.step, StepKind::multiply, {-1}, place(node));
    const std::size_t other = builder_.with_constant(negative, StepKind::add, {1}, place(node));
    scores.step = builder_.operation(Concatenate{}, {other, scores.step}, place(node));
  }
  unreadable_.emplace(node.output(0), Error(ErrorKind::unsupported, {place(node), "the label of the largest score",
                                                                     "numbers for each class", kWriteAnother}));
  return {scores, scores};
}

GraphReader::Data GraphReader::linear_scores(const Node& node, std::size_t targets) {
  const std::vector<double> weights = floats(node, "coefficients"), bias = floats(node, "intercepts");
  const Data x = data(node, 0);
  if (targets == 0 || weights.empty() || weights.size() % targets != 0 || (!bias.empty() && bias.size() != targets)) {
    refuse(place(node),
           std::to_string(weights.size()) + " coefficients and " + std::to_string(bias.size()) + " intercepts",
           "for each of " + std::to_string(targets) + " targets one for each feature, and one intercept or none");
  }
  Step step{.kind = StepKind::dense, .where = place(node), .from = {x.step}};
  step.dense = {weights.size() / targets, targets, weights, bias};
  if (bias.empty()) step.dense.bias.assign(targets, 0.0);
  step.has_bias = true;
  result_.weight_type = std::max(result_.weight_type, WeightType::f32);
  return {builder_.append(std::move(step))};
}

}  // namespace lockstep::nn::detail

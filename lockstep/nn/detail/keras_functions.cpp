// Operations of keras.ops of one value: functions of each element, activations, sums over features, casts.
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "lockstep/nn/detail/keras_activation.h"
#include "lockstep/nn/detail/keras_compositions.h"
#include "lockstep/nn/detail/keras_operation_reader.h"

namespace lockstep::nn::detail {
namespace {

constexpr std::array<std::pair<std::string_view, UnaryKind>, 10> kOfOne = {{{"Exp", UnaryKind::exp},
                                                                            {"Log", UnaryKind::log},
                                                                            {"Sqrt", UnaryKind::square_root},
                                                                            {"Absolute", UnaryKind::absolute},
                                                                            {"Negative", UnaryKind::negate},
                                                                            {"Reciprocal", UnaryKind::reciprocal},
                                                                            {"Erf", UnaryKind::erf},
                                                                            {"Cos", UnaryKind::cosine},
                                                                            {"Arctan", UnaryKind::arctangent},
                                                                            {"Floor", UnaryKind::floor}}};
constexpr std::array<std::pair<std::string_view, ReduceKind>, 4> kOverFeatures = {
    {{"Sum", ReduceKind::sum}, {"Mean", ReduceKind::mean}, {"Max", ReduceKind::maximum}, {"Min", ReduceKind::minimum}}};

}  // namespace

std::string KerasOperationReader::function() {
  const auto unary = [&](UnaryKind kind, const std::string& name) { return make(name, Unary{kind}, {x_}); };
  for (const auto& [known, kind] : kOfOne) {
    if (kind_ == known) return unary(kind, name_);
  }
  for (const auto& [known, kind] : kOverFeatures) {
    if (kind_ == known) return reduce(kind);
  }
  if (kind_ == "Square") return make(name_, Activate{{ActivationKind::square}}, {x_});
  if (kind_ == "Rsqrt") {
    return make(name_, Unary{UnaryKind::reciprocal}, {unary(UnaryKind::square_root, part())});
  }
  if (kind_ == "Log2" || kind_ == "Log10") {
    const std::string logarithm = unary(UnaryKind::log, part());
    const double factor = 1 / std::log(kind_ == "Log2" ? 2.0 : 10.0);
    return make(name_, Binary{BinaryKind::multiply}, {logarithm, number({factor})});
  }
  if (kind_ == "Round") {
    if (setting("decimals", 0) != 0) cannot("a rounding to decimals", "decimals=0");
    return unary(UnaryKind::round, name_);
  }
  if (kind_ == "LogicalNot") return not_of(name_, x_);
  if (kind_ == "Clip") {
    return make(name_,
                Clip{setting("x_min", -std::numeric_limits<double>::infinity()),
                     setting("x_max", std::numeric_limits<double>::infinity())},
                {x_});
  }
  if (kind_ == "Norm") return norm();
  if (kind_ == "Cast") return cast();
  if (kind_ == "StopGradient" || kind_ == "Identity") return x_;
  if (kind_ == "ExpandDims" || kind_ == "Squeeze" || kind_ == "Reshape") return reshape();
  if (auto steps = composed_operation(kind_)) return composed(std::move(*steps), {x_});
  return activation();
}

std::string KerasOperationReader::composed(KerasSteps steps, const KerasValues& inputs) {
  for (const std::string& input : inputs) graph_.width_of(input, 0, layer_);
  return graph_.compose(std::move(steps), inputs, name_);
}

std::string KerasOperationReader::activation() {
  const auto one = [&](Operation operation) { return make(name_, std::move(operation), {x_}); };
  if (kind_ == "Softmax" || kind_ == "LogSoftmax") {
    require_features();
    require_axis();
  }
  if (kind_ == "LeakyRelu") return one(Activate{{ActivationKind::leaky_relu, setting("negative_slope", 0.2)}});
  if (kind_ == "Elu") return one(Activate{{ActivationKind::elu, setting("alpha", 1)}});
  if (kind_ == "Celu") return one(Activate{{ActivationKind::celu, setting("alpha", 1)}});
  if (kind_ == "Gelu" && config_flag(layer_.config, "approximate", true)) {
    return one(Activate{{ActivationKind::gelu_tanh}});
  }
  if (kind_ == "HardShrink" || kind_ == "SoftShrink") {
    const double edge = setting("threshold", 0.5);
    return one(DeadZone{-edge, edge, kind_ == "SoftShrink" ? edge : 0});
  }
  if (kind_ == "Squareplus" && setting("b", 4) != 4) cannot("squareplus of another b", "b=4");
  const std::string word = snake_case(kind_);
  if (auto steps = composed_activation(word)) return composed(std::move(*steps), {x_});
  if (const auto steps = keras_activation_of(word)) return graph_.activate(layer_, x_, *steps, name_);
  if (const auto steps = keras_activation_layer(kind_, layer_.config)) {  // keras.activations.relu(x, max_value=6)
    return graph_.activate(layer_, x_, *steps, name_);
  }
  unknown(kind_);
}

std::string KerasOperationReader::reduce(ReduceKind kind) {
  require_features();
  require_axis();
  const auto initial = layer_.config.find("initial");
  if (initial != layer_.config.end() && !initial->is_null()) cannot("an initial value", "none");
  return make(name_, Reduce{kind}, {x_});
}

std::string KerasOperationReader::norm() {
  require_features();
  require_axis();
  if (setting("ord", 2) != 2) cannot("a norm of another order", "ord=2");
  const std::string square = make(part(), Activate{{ActivationKind::square}}, {x_});
  return make(name_, Unary{UnaryKind::square_root}, {make(part(), Reduce{ReduceKind::sum}, {square})});
}

std::string KerasOperationReader::cast() {
  const auto type = layer_.config.find("dtype");
  const std::string name = type != layer_.config.end() && type->is_string() ? type->get<std::string>() : "";
  if (name == "bool") return not_of(name_, not_of(part(), x_));
  if (name != "float32" && name != "float64") cannot("a rounding to " + name, "float32 or float64");
  return x_;
}

// Between [batch] and [batch, 1], and what leaves [batch, features] as it is.
std::string KerasOperationReader::reshape() {
  const std::size_t width = graph_.width_of(x_, 0, layer_);
  if (kind_ == "Reshape") {
    const auto shape = layer_.config.find("newshape");
    const bool listed = shape != layer_.config.end() && shape->is_array() && !shape->empty() && (*shape)[0] == -1;
    if (listed && ((shape->size() == 1 && width == 1) || (shape->size() == 2 && (*shape)[1] == width))) return x_;
    cannot("a reshaping", "one that keeps [batch, features]");
  }
  require_axis();
  if (width != 1 || (kind_ == "ExpandDims" && rank_ == 2)) cannot("more dimensions", "[batch] and [batch, 1]");
  return x_;
}

}  // namespace lockstep::nn::detail

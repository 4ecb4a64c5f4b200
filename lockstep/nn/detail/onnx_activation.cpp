// ONNX's activation operators, each with its attributes.
#include <limits>
#include <utility>

#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_reader.h"
#include "lockstep/nn/detail/onnx_steps.h"

namespace lockstep::nn::detail {
namespace {

constexpr double kSeluAlpha = 1.6732632423543772, kSeluGamma = 1.0507009873554805;

}  // namespace

std::optional<Activation> activation_of(const onnx::NodeProto& node) {
  using Kind = ActivationKind;
  static const std::map<std::string_view, Kind> plain{{"Relu", Kind::relu},         {"Tanh", Kind::tanh},
                                                      {"Sigmoid", Kind::sigmoid},   {"Softplus", Kind::softplus},
                                                      {"Softsign", Kind::softsign}, {"HardSwish", Kind::hard_swish},
                                                      {"Mish", Kind::mish},         {"Sin", Kind::sin}};
  const std::string& op = node.op_type();
  const auto is = [&](const char* name, double value, double otherwise) {
    return is_float32_of(number(node, name, otherwise), value);
  };
  if (const auto found = plain.find(op); found != plain.end()) return Activation{found->second};
  if (op == "LeakyRelu") return Activation{Kind::leaky_relu, number(node, "alpha", 0.01)};
  if (op == "Elu") return Activation{Kind::elu, number(node, "alpha", 1)};
  if (op == "Celu") return Activation{Kind::celu, number(node, "alpha", 1)};
  if (op == "Selu" && is("alpha", kSeluAlpha, kSeluAlpha) && is("gamma", kSeluGamma, kSeluGamma)) {
    return Activation{Kind::selu};
  }
  if (op == "HardSigmoid" && is("alpha", 1.0 / 6, 0.2) && number(node, "beta", 0.5) == 0.5) {
    return Activation{Kind::hard_sigmoid};
  }
  if (op == "Swish" && number(node, "alpha", 1) == 1) return Activation{Kind::silu};
  if (op == "Gelu") {
    const auto* form = attribute(node, "approximate");
    return Activation{form && form->s() == "tanh" ? Kind::gelu_tanh : Kind::gelu};
  }
  return {};
}

std::optional<GraphReader::Value> GraphReader::activation(const Node& node) {
  const std::string& op = node.op_type();
  const std::string here = place(node);
  const auto make = [&](Activation activation) {
    const Data x = data(node, 0);
    return Data{builder_.activation(x.step, activation, here), x.rank};
  };
  const auto scaled = [&](Data x, double factor) {
    return factor == 1 ? x : Data{builder_.with_constant(x.step, StepKind::multiply, {factor}, here), x.rank};
  };
  const auto make_operation = [&](Operation operation, const Data& x) {
    return Data{builder_.operation(std::move(operation), {x.step}, here), x.rank};
  };
  if (const auto one = activation_of(node)) return make(*one);
  if (op == "Erf") {
    const Data x = data(node, 0);
    return Data{builder_.piece(x.step, StepKind::erf, here), x.rank};
  }
  if (op == "PRelu") {
    const Data x = data(node, 0);
    const std::vector<double> slope = per_feature(node, constant_operand(node, 1), x.rank);
    if (slope.size() == 1) return make({ActivationKind::leaky_relu, slope[0]});
    // max(x, 0) + slope min(x, 0): one of the two is 0
    const std::size_t positive = builder_.activation(x.step, {ActivationKind::relu}, here);
    const std::size_t negative = builder_.operation(Clip{-std::numeric_limits<double>::infinity(), 0}, {x.step}, here);
    return Data{builder_.sum(positive, builder_.with_constant(negative, StepKind::multiply, slope, here), here),
                x.rank};
  }
  if (op == "Selu") {
    return scaled(make({ActivationKind::elu, number(node, "alpha", kSeluAlpha)}), number(node, "gamma", kSeluGamma));
  }
  if (op == "HardSigmoid") {
    const double alpha = number(node, "alpha", 0.2), beta = number(node, "beta", 0.5);
    const Data x = data(node, 0);
    const std::size_t line = builder_.with_constant(scaled(x, alpha).step, StepKind::add, {beta}, here);
    return make_operation(Clip{0, 1}, {line, x.rank});
  }
  if (op == "ThresholdedRelu") {
    return make_operation(DeadZone{-std::numeric_limits<double>::infinity(), number(node, "alpha", 1), 0},
                          data(node, 0));
  }
  if (op == "Shrink") {
    const double edge = number(node, "lambd", 0.5);
    return make_operation(DeadZone{-edge, edge, number(node, "bias", 0)}, data(node, 0));
  }
  if (op == "Swish" || op == "SwiGLU") {
    const double alpha = number(node, "alpha", 1);
    Data x = data(node, 0);
    if (alpha == 1) {
      x.step = builder_.activation(x.step, {ActivationKind::silu}, here);
    } else {
      const std::size_t gate = builder_.activation(scaled(x, alpha).step, {ActivationKind::sigmoid}, here);
      x.step = builder_.product(x.step, gate, here);
    }
    if (op == "Swish") return x;
    const Data linear = data(node, 1);
    if (linear.rank != x.rank || width(node, linear) != width(node, x)) {
      unsupported(node, "operands of different shapes", "of one shape, as the operator's definition asks");
    }
    return Data{builder_.product(x.step, linear.step, here), x.rank};
  }
  return {};
}

}  // namespace lockstep::nn::detail

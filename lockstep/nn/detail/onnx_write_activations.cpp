// Activations and their derivatives in operators of ONNX. In float32 each is the operator of its name where opset 17
// has one. In float64 only those that ONNX Runtime computes in float64 are, and whose attributes, which are float32 in
// the file, lose nothing; the others are written out.
#include <cmath>
#include <numbers>

#include "lockstep/kernels/math/format.h"
#include "lockstep/nn/detail/onnx_writer.h"

namespace lockstep::nn::detail {

// x < 0 ? below (e^argument - 1) : above x
std::string OnnxWriter::exponential_unit(const std::string& x, const std::string& argument, double below,
                                         double above) {
  const std::string negative = piece("Less", {x, number(0)});
  const std::string curve = difference({piece("Exp", {argument}), number(1)});
  const std::string left = below == 1 ? curve : product({number(below), curve});
  return one_of({negative, left, above == 1 ? x : product({number(above), x})});
}

// max(x, 0) + log(1 + e^-|x|), which never overflows.
std::string OnnxWriter::softplus(const std::string& x) {
  const std::string decay = piece("Exp", {piece("Neg", {piece("Abs", {x})})});
  return sum({piece("Relu", {x}), piece("Log", {sum({number(1), decay})})});
}

// clamp(x / 6 + 1/2, 0, 1)
std::string OnnxWriter::hard_sigmoid(const std::string& x) {
  return clamped(sum({quotient({x, number(6)}), number(0.5)}), 0, 1);
}

std::string OnnxWriter::activation(const Activation& activation, const std::string& x) {
  const double alpha = activation.alpha;
  const auto with_alpha = [&](const char* op) {
    check_fits(alpha, ".alpha");
    std::string made = piece(op, {x});
    attribute("alpha", alpha);
    return made;
  };
  switch (activation.kind) {
    case ActivationKind::identity:
      return piece("Identity", {x});
    case ActivationKind::relu:
      return piece("Relu", {x});
    case ActivationKind::leaky_relu:
      return single() ? with_alpha("LeakyRelu") : piece("PRelu", {x, number(alpha)});
    case ActivationKind::elu:
      return single() ? with_alpha("Elu") : exponential_unit(x, x, alpha, 1);
    case ActivationKind::selu:
      return single() ? piece("Selu", {x}) : exponential_unit(x, x, math::kSeluScaleAlpha, math::kSeluScale);
    case ActivationKind::celu:
      return single() ? with_alpha("Celu") : exponential_unit(x, quotient({x, number(alpha)}), alpha, 1);
    case ActivationKind::gelu: {  // x / 2 (1 + erf(x / sqrt 2))
      const std::string phi = sum({piece("Erf", {quotient({x, number(std::numbers::sqrt2)})}), number(1)});
      return product({product({x, phi}), number(0.5)});
    }
    case ActivationKind::gelu_tanh: {  // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
      const std::string inner = sum({x, product({product({x, product({x, x})}), number(0.044715)})});
      const std::string bent = piece("Tanh", {product({inner, number(std::sqrt(2 / std::numbers::pi))})});
      return product({product({x, sum({bent, number(1)})}), number(0.5)});
    }
    case ActivationKind::silu:
      return product({x, piece("Sigmoid", {x})});
    case ActivationKind::mish:
      return product({x, piece("Tanh", {single() ? piece("Softplus", {x}) : softplus(x)})});
    case ActivationKind::softplus:
      return single() ? piece("Softplus", {x}) : softplus(x);
    case ActivationKind::softsign:
      return single() ? piece("Softsign", {x}) : quotient({x, sum({number(1), piece("Abs", {x})})});
    case ActivationKind::sigmoid:
      return piece("Sigmoid", {x});
    case ActivationKind::hard_sigmoid: {
      if (!single()) return hard_sigmoid(x);
      std::string made = piece("HardSigmoid", {x});
      attribute("alpha", 1.0 / 6);
      return made;
    }
    case ActivationKind::hard_swish:
      return single() ? piece("HardSwish", {x}) : product({x, hard_sigmoid(x)});
    case ActivationKind::tanh:
      return piece("Tanh", {x});
    case ActivationKind::sin:
      return piece("Sin", {x});
    case ActivationKind::square:
      break;
  }
  return product({x, x});
}

// first f'(x), where x is f's value for those that chain_reads_value().
std::string OnnxWriter::derivative(ActivationKind kind, double alpha, const std::string& first, const std::string& x) {
  const auto times = [&](const std::string& slope) { return product({first, slope}); };
  const auto one_minus = [&](const std::string& y) { return difference({number(1), y}); };
  const auto where_negative = [&](const Names& two) { return one_of({piece("Less", {x, number(0)}), two[0], two[1]}); };
  switch (kind) {
    case ActivationKind::identity:
      return piece("Identity", {first});
    case ActivationKind::relu:
      return one_of({piece("Greater", {x, number(0)}), first, number(0)});
    case ActivationKind::leaky_relu:
      return where_negative({product({number(alpha), first}), first});
    case ActivationKind::elu:
      return where_negative({times(product({number(alpha), piece("Exp", {x})})), first});
    case ActivationKind::selu:
      return where_negative(
          {times(product({number(math::kSeluScaleAlpha), piece("Exp", {x})})), times(number(math::kSeluScale))});
    case ActivationKind::celu:
      return where_negative({times(piece("Exp", {quotient({x, number(alpha)})})), first});
    case ActivationKind::gelu: {  // Phi(x) + x phi(x)
      const std::string bell = piece("Exp", {product({product({x, x}), number(-0.5)})});
      const std::string density = product({bell, number(std::numbers::inv_sqrtpi / std::numbers::sqrt2)});
      const std::string erf = piece("Erf", {quotient({x, number(std::numbers::sqrt2)})});
      return times(sum({product({sum({erf, number(1)}), number(0.5)}), product({x, density})}));
    }
    case ActivationKind::gelu_tanh: {  // with u' = k (1 + 3 c x^2): (1 + tanh u) / 2 + x u' (1 - tanh^2 u) / 2
      const std::string square = product({x, x}), k = number(std::sqrt(2 / std::numbers::pi));
      const std::string u = product({sum({x, product({product({x, square}), number(0.044715)})}), k});
      const std::string bent = piece("Tanh", {u});
      const std::string slope = product({sum({number(1), product({square, number(3 * 0.044715)})}), k});
      const std::string curved = product({product({x, slope}), one_minus(product({bent, bent}))});
      return times(product({sum({sum({number(1), bent}), curved}), number(0.5)}));
    }
    case ActivationKind::silu: {  // s (1 + x (1 - s))
      const std::string s = piece("Sigmoid", {x});
      return times(product({s, sum({number(1), product({x, one_minus(s)})})}));
    }
    case ActivationKind::mish: {  // w + x s (1 - w^2), w = tanh(softplus(x)), s = sigmoid(x)
      const std::string w = piece("Tanh", {single() ? piece("Softplus", {x}) : softplus(x)});
      const std::string bend = product({piece("Sigmoid", {x}), one_minus(product({w, w}))});
      return times(sum({w, product({x, bend})}));
    }
    case ActivationKind::softplus:
      return times(piece("Sigmoid", {x}));
    case ActivationKind::softsign: {
      const std::string whole = sum({number(1), piece("Abs", {x})});
      return quotient({first, product({whole, whole})});
    }
    case ActivationKind::sigmoid:
      return times(product({x, one_minus(x)}));
    case ActivationKind::hard_sigmoid:
      return one_of({piece("Less", {piece("Abs", {x}), number(3)}), quotient({first, number(6)}), number(0)});
    case ActivationKind::hard_swish: {
      const std::string middle = times(sum({quotient({x, number(3)}), number(0.5)}));
      const std::string right = one_of({piece("Less", {x, number(3)}), middle, first});
      return one_of({piece("LessOrEqual", {x, number(-3)}), number(0), right});
    }
    case ActivationKind::tanh:
      return times(one_minus(product({x, x})));
    case ActivationKind::sin:
      return times(piece("Cos", {x}));
    case ActivationKind::square:
      break;
  }
  return times(sum({x, x}));
}

}  // namespace lockstep::nn::detail

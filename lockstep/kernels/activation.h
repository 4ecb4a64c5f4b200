// The activation functions a dense layer may end in.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace lockstep {

enum class ActivationKind {
  identity,
  relu,          // max(x, 0)
  leaky_relu,    // x < 0 ? alpha x : x, default alpha 0.01; also prelu with one slope
  elu,           // x < 0 ? alpha (e^x - 1) : x, default alpha 1
  selu,          // scale * (x < 0 ? alpha (e^x - 1) : x), the constants of Klambauer et al. 2017
  celu,          // x < 0 ? alpha (e^(x/alpha) - 1) : x, default alpha 1
  gelu,          // x Phi(x), by erf
  gelu_tanh,     // the tanh form of Hendrycks & Gimpel 2016
  silu,          // x sigmoid(x)
  mish,          // x tanh(softplus(x))
  softplus,      // log(1 + e^x)
  softsign,      // x / (1 + |x|)
  sigmoid,       // 1 / (1 + e^-x)
  hard_sigmoid,  // clamp(x/6 + 1/2, 0, 1)
  hard_swish,    // x hard_sigmoid(x)
  tanh,
  sin,
  square,  // x^2
};

struct Activation {
  ActivationKind kind = ActivationKind::identity;
  double alpha = 0;  // only read by leaky_relu, elu and celu

  friend bool operator==(const Activation&, const Activation&) = default;
};

// activation(x) and its derivative, of one number; the bits are those of the vectorised forms in math/activation-inl.h.
float activate(const Activation& activation, float x);
double activate(const Activation& activation, double x);
float activate_derivative(const Activation& activation, float x);
double activate_derivative(const Activation& activation, double x);

// f(constant) with the kind as a compile-time constant: a std::integral_constant<ActivationKind, kind>.
template <class F>
auto with_activation_kind(ActivationKind kind, F&& f) {
  using Kind = ActivationKind;
  switch (kind) {
    case Kind::identity:
      return f(std::integral_constant<Kind, Kind::identity>{});
    case Kind::relu:
      return f(std::integral_constant<Kind, Kind::relu>{});
    case Kind::leaky_relu:
      return f(std::integral_constant<Kind, Kind::leaky_relu>{});
    case Kind::elu:
      return f(std::integral_constant<Kind, Kind::elu>{});
    case Kind::selu:
      return f(std::integral_constant<Kind, Kind::selu>{});
    case Kind::celu:
      return f(std::integral_constant<Kind, Kind::celu>{});
    case Kind::gelu:
      return f(std::integral_constant<Kind, Kind::gelu>{});
    case Kind::gelu_tanh:
      return f(std::integral_constant<Kind, Kind::gelu_tanh>{});
    case Kind::silu:
      return f(std::integral_constant<Kind, Kind::silu>{});
    case Kind::mish:
      return f(std::integral_constant<Kind, Kind::mish>{});
    case Kind::softplus:
      return f(std::integral_constant<Kind, Kind::softplus>{});
    case Kind::softsign:
      return f(std::integral_constant<Kind, Kind::softsign>{});
    case Kind::sigmoid:
      return f(std::integral_constant<Kind, Kind::sigmoid>{});
    case Kind::hard_sigmoid:
      return f(std::integral_constant<Kind, Kind::hard_sigmoid>{});
    case Kind::hard_swish:
      return f(std::integral_constant<Kind, Kind::hard_swish>{});
    case Kind::tanh:
      return f(std::integral_constant<Kind, Kind::tanh>{});
    case Kind::sin:
      return f(std::integral_constant<Kind, Kind::sin>{});
    case Kind::square:
      break;
  }
  return f(std::integral_constant<Kind, Kind::square>{});
}

// "tanh", "leaky_relu", "leaky_relu(0.2)": the name, with alpha where it differs from the default.
std::string to_string(const Activation& activation);

// Reads what to_string writes, and other tools' spellings: "linear", "none", "swish", "prelu(0.25)",
// "hardswish", "gelu_new", PyTorch class names such as "LeakyReLU". nullopt when unknown.
std::optional<Activation> parse_activation(std::string_view name);

// Every kind with its default alpha, in declaration order.
std::span<const Activation> all_activations();

}  // namespace lockstep

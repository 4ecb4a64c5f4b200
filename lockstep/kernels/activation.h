// The activation functions a dense layer may end in.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

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
  square,        // x^2
};

struct Activation {
  ActivationKind kind = ActivationKind::identity;
  double alpha = 0;  // only read by leaky_relu, elu and celu

  friend bool operator==(const Activation&, const Activation&) = default;
};

// "tanh", "leaky_relu", "leaky_relu(0.2)": the name, with alpha where it differs from the default.
std::string to_string(const Activation& activation);

// Reads what to_string writes, and other tools' spellings: "linear", "none", "swish", "prelu(0.25)",
// "hardswish", "gelu_new", PyTorch class names such as "LeakyReLU". nullopt when unknown.
std::optional<Activation> parse_activation(std::string_view name);

// Every kind with its default alpha, in declaration order.
std::span<const Activation> all_activations();

}  // namespace lockstep

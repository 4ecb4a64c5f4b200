#include "lockstep/kernels/activation.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

#include "lockstep/core/text.h"
#include "lockstep/kernels/math/math.h"

namespace lockstep {
namespace {

struct Entry {
  Activation activation;  // with the default alpha
  std::string_view name;
  bool takes_alpha = false;
};

constexpr std::array kEntries = {
    Entry{{ActivationKind::identity, 0}, "identity"},
    Entry{{ActivationKind::relu, 0}, "relu"},
    Entry{{ActivationKind::leaky_relu, 0.01}, "leaky_relu", true},
    Entry{{ActivationKind::elu, 1}, "elu", true},
    Entry{{ActivationKind::selu, 0}, "selu"},
    Entry{{ActivationKind::celu, 1}, "celu", true},
    Entry{{ActivationKind::gelu, 0}, "gelu"},
    Entry{{ActivationKind::gelu_tanh, 0}, "gelu_tanh"},
    Entry{{ActivationKind::silu, 0}, "silu"},
    Entry{{ActivationKind::mish, 0}, "mish"},
    Entry{{ActivationKind::softplus, 0}, "softplus"},
    Entry{{ActivationKind::softsign, 0}, "softsign"},
    Entry{{ActivationKind::sigmoid, 0}, "sigmoid"},
    Entry{{ActivationKind::hard_sigmoid, 0}, "hard_sigmoid"},
    Entry{{ActivationKind::hard_swish, 0}, "hard_swish"},
    Entry{{ActivationKind::tanh, 0}, "tanh"},
    Entry{{ActivationKind::sin, 0}, "sin"},
    Entry{{ActivationKind::square, 0}, "square"},
};

// Other tools' words, in the form of plain().
struct Alias {
  std::string_view plain_name;
  ActivationKind kind;
};
constexpr std::array kAliases = {
    Alias{"linear", ActivationKind::identity},
    Alias{"none", ActivationKind::identity},
    Alias{"swish", ActivationKind::silu},
    Alias{"gelunew", ActivationKind::gelu_tanh},
    Alias{"gelupytorchtanh", ActivationKind::gelu_tanh},
    Alias{"logistic", ActivationKind::sigmoid},
    Alias{"sine", ActivationKind::sin},
};

// Lower case, without underscores, hyphens and blanks: "Hard_Swish", "hardswish" and "HardSwish" are one name.
std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c == '_' || c == '-' || c == ' ') continue;
    result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

const Entry& entry_of(ActivationKind kind) {
  for (const Entry& entry : kEntries) {
    if (entry.activation.kind == kind) return entry;
  }
  return kEntries[0];
}

const Entry* find(const std::string& plain_name) {
  for (const Entry& entry : kEntries) {
    if (plain(entry.name) == plain_name) return &entry;
  }
  for (const Alias& alias : kAliases) {
    if (alias.plain_name == plain_name) return &entry_of(alias.kind);
  }
  return nullptr;
}

// "0.2", "alpha=0.2", "negative_slope=0.2"
std::optional<double> parse_alpha(std::string_view text) {
  for (const std::string_view prefix : {"alpha=", "negative_slope="}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

std::string to_string(const Activation& activation) {
  const Entry& entry = entry_of(activation.kind);
  std::string text(entry.name);
  if (!entry.takes_alpha || activation.alpha == entry.activation.alpha) return text;
  return text + "(" + number_text(activation.alpha) + ")";
}

std::optional<Activation> parse_activation(std::string_view name) {
  std::string_view argument;
  if (const std::size_t bracket = name.find('('); bracket != std::string_view::npos) {
    if (!name.ends_with(')')) return std::nullopt;
    argument = name.substr(bracket + 1, name.size() - bracket - 2);
    name = name.substr(0, bracket);
  }
  const std::string plain_name = plain(name);
  // A prelu's slope was learned: there is no default to fall back on.
  if (plain_name == "prelu" && argument.empty()) return std::nullopt;
  const Entry* entry = plain_name == "prelu" ? &entry_of(ActivationKind::leaky_relu) : find(plain_name);
  if (entry == nullptr) return std::nullopt;
  Activation activation = entry->activation;
  if (!argument.empty()) {
    const std::optional<double> alpha = parse_alpha(argument);
    const bool divides_by_it = activation.kind == ActivationKind::celu;
    if (!entry->takes_alpha || !alpha || (divides_by_it && *alpha == 0)) return std::nullopt;
    activation.alpha = *alpha;
  }
  return activation;
}

std::span<const Activation> all_activations() {
  static constexpr auto kAll = [] {
    std::array<Activation, kEntries.size()> all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = kEntries[i].activation;
    return all;
  }();
  return kAll;
}

namespace {

template <class T>
T activate_scalar(const Activation& activation, T x) {
  return with_activation_kind(activation.kind, [&](auto kind) {
    return math::activate<kind(), ScalarLane<T>>(x, static_cast<T>(activation.alpha));
  });
}
template <class T>
T differentiate_scalar(const Activation& activation, T x) {
  return with_activation_kind(activation.kind, [&](auto kind) {
    return math::activate_derivative<kind(), ScalarLane<T>>(x, static_cast<T>(activation.alpha));
  });
}

}  // namespace

float activate(const Activation& activation, float x) { return activate_scalar(activation, x); }
double activate(const Activation& activation, double x) { return activate_scalar(activation, x); }
float activate_derivative(const Activation& activation, float x) { return differentiate_scalar(activation, x); }
double activate_derivative(const Activation& activation, double x) { return differentiate_scalar(activation, x); }

}  // namespace lockstep

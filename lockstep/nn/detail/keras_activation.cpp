#include "lockstep/nn/detail/keras_activation.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::nn::detail {
namespace {

using Kind = ActivationKind;

// Names of keras.activations, with Keras' own defaults (negative_slope 0.2, alpha 1, threshold 0.5).
std::optional<KerasActivation> of_name(std::string_view name, int keras_major) {
  static constexpr std::array<std::pair<std::string_view, Activation>, 18> kPlain = {{
      {"relu", {Kind::relu}},
      {"leaky_relu", {Kind::leaky_relu, 0.2}},
      {"elu", {Kind::elu, 1}},
      {"selu", {Kind::selu}},
      {"celu", {Kind::celu, 1}},
      {"gelu", {Kind::gelu}},
      {"silu", {Kind::silu}},
      {"swish", {Kind::silu}},
      {"mish", {Kind::mish}},
      {"softplus", {Kind::softplus}},
      {"softsign", {Kind::softsign}},
      {"soft_sign", {Kind::softsign}},
      {"sigmoid", {Kind::sigmoid}},
      {"hard_silu", {Kind::hard_swish}},
      {"hard_swish", {Kind::hard_swish}},
      {"tanh", {Kind::tanh}},
      {"sin", {Kind::sin}},
      {"hard_sigmoid", {Kind::hard_sigmoid}},
  }};
  if (name == "linear") return KerasActivation{};
  // Keras 2: clamp(0.2 x + 0.5); since Keras 3: clamp(x / 6 + 0.5), which is ours.
  if (name == "hard_sigmoid" && keras_major < 3)
    return KerasActivation{Rescale{{1.2}, {0}}, Activate{{Kind::hard_sigmoid}}};
  for (const auto& [known, activation] : kPlain) {
    if (known == name) return KerasActivation{Activate{activation}};
  }
  if (name == "sparse_sigmoid") return KerasActivation{Rescale{{0.5}, {0.5}}, Clip{0, 1}};
  if (name == "relu6") return KerasActivation{Clip{0, 6}};
  if (name == "hard_tanh") return KerasActivation{Clip{-1, 1}};
  if (name == "exponential") return KerasActivation{Unary{UnaryKind::exp}};
  if (name == "softmax") return KerasActivation{Softmax{SoftmaxKind::plain}};
  if (name == "log_softmax") return KerasActivation{Softmax{SoftmaxKind::logarithm}};
  if (name == "log_sigmoid") return KerasActivation{Rescale{{-1}, {0}}, Activate{{Kind::softplus}}, Rescale{{-1}, {0}}};
  if (name == "hard_shrink") return KerasActivation{DeadZone{-0.5, 0.5, 0}};
  if (name == "soft_shrink") return KerasActivation{DeadZone{-0.5, 0.5, 0.5}};
  return {};
}
constexpr const char* kKnownActivations =
    "linear, relu, leaky_relu, elu, selu, celu, gelu, silu, swish, mish, softplus, softsign, sigmoid, hard_sigmoid, "
    "hard_silu, hard_swish, tanh, sin, relu6, hard_tanh, exponential, softmax, log_softmax, log_sigmoid, hard_shrink, "
    "soft_shrink, tanh_shrink, squareplus, sparse_plus or sparse_sigmoid";

// The first key that holds a number.
std::optional<double> number_of(const Json& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = config.find(key);
    if (found != config.end() && found->is_number()) return found->get<double>();
    // Keras 2 stores NumPy numbers as {"class_name": "__numpy__", "config": {"value": ...}} or {"value": ...}.
    if (found != config.end() && found->is_object() && found->contains("value") && (*found)["value"].is_number()) {
      return (*found)["value"].get<double>();
    }
  }
  return {};
}

}  // namespace

std::optional<KerasActivation> keras_activation_of(const std::string& name) { return of_name(name, 3); }

std::optional<KerasActivation> keras_activation_layer(const std::string& class_name, const Json& config) {
  const auto one = [](Activation activation) { return KerasActivation{Activate{activation}}; };
  if (class_name == "LeakyReLU") {
    return one({Kind::leaky_relu, number_of(config, {"negative_slope", "alpha"}).value_or(0.3)});
  }
  if (class_name == "ELU") return one({Kind::elu, number_of(config, {"alpha"}).value_or(1)});
  if (class_name == "ReLU") {
    const double slope = number_of(config, {"negative_slope"}).value_or(0);
    const double threshold = number_of(config, {"threshold"}).value_or(0);
    if (threshold < 0 || (threshold != 0 && slope != 0)) return {};
    KerasActivation steps = one(slope == 0 ? Activation{Kind::relu} : Activation{Kind::leaky_relu, slope});
    if (threshold != 0) steps = {DeadZone{-std::numeric_limits<double>::infinity(), threshold, 0}};
    const std::optional<double> most = number_of(config, {"max_value"});
    if (most) steps.push_back(Clip{.maximum = *most});
    return steps;
  }
  if (class_name == "ThresholdedReLU") {  // x above theta, else 0
    return KerasActivation{
        DeadZone{-std::numeric_limits<double>::infinity(), number_of(config, {"theta"}).value_or(1), 0}};
  }
  if (class_name == "Softmax") {
    const auto axis = config.find("axis");
    if (axis != config.end() && *axis != -1 && *axis != 1) return {};
    return KerasActivation{Softmax{SoftmaxKind::plain}};
  }
  return {};
}

KerasActivation keras_activation(const Json& json, int keras_major, const std::string& where) {
  if (json.is_null()) return {};
  if (json.is_object() && json.contains("class_name") && json["class_name"].is_string() && json.contains("config")) {
    const auto name = json["class_name"].get<std::string>();
    if (name == "function") return keras_activation(json["config"], keras_major, where);
    if (name == "Activation" && json["config"].is_object() && json["config"].contains("activation")) {
      return keras_activation(json["config"]["activation"], keras_major, where);
    }
    if (json["config"].is_object()) {
      if (const auto layer = keras_activation_layer(name, json["config"])) return *layer;
    }
    throw Error(ErrorKind::unsupported, {where, "the activation " + name, "one that Lockstep knows", ""});
  }
  const std::string name = json.is_string() ? json.get<std::string>() : json.dump().substr(0, 60);
  const auto found = json.is_string() ? of_name(name, keras_major) : std::nullopt;
  if (!found) throw Error(ErrorKind::unsupported, {where, "the activation \"" + name + '"', kKnownActivations, ""});
  return *found;
}

std::string snake_case(const std::string& class_name) {
  const auto upper = [&](std::size_t i) {
    return i < class_name.size() && std::isupper(static_cast<unsigned char>(class_name[i])) != 0;
  };
  const auto lower = [&](std::size_t i) {
    return i < class_name.size() && std::islower(static_cast<unsigned char>(class_name[i])) != 0;
  };
  std::string result;
  for (std::size_t i = 0; i < class_name.size(); ++i) {
    if (i > 0 && upper(i) && (lower(i + 1) || lower(i - 1))) result += '_';
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(class_name[i])));
  }
  return result;
}

}  // namespace lockstep::nn::detail

// Keras' words for activations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/nn/detail/keras_config.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

// One operation after another; a Rescale of one number is meant for every feature. None at all is linear.
using KerasActivation = std::vector<Operation>;

// By its name among keras.activations since Keras 3; nullopt where it is not known here.
std::optional<KerasActivation> keras_activation_of(const std::string& name);

// A name, or the configuration of a function or of a layer; nothing is linear. Throws Error (unsupported) naming what
// is not known here.
KerasActivation keras_activation(const Json& json, int keras_major, const std::string& where);

// Of the layers that are activations without weights; nullopt for other classes and for variants not known here.
std::optional<KerasActivation> keras_activation_layer(const std::string& class_name, const Json& config);

// "LeakyReLU" -> "leaky_re_lu", as Keras names its groups.
std::string snake_case(const std::string& class_name);

}  // namespace lockstep::nn::detail

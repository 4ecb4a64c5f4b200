// Keras' layers that shift and scale: by stored moments, by those of a sample, or by numbers of the file.
#pragma once

#include <optional>
#include <string>

#include "lockstep/nn/detail/keras_graph.h"

namespace lockstep::nn::detail {

// What a layer of such a class makes of the value x, whose name is returned; nullopt for layers of other classes.
// Throws Error as build_keras_model().
std::optional<std::string> keras_normalisation(KerasGraph& graph, const KerasLayer& layer, const std::string& x,
                                               const KerasWeights& weights, const std::string& name);

}  // namespace lockstep::nn::detail

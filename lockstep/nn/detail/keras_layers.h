// Keras layers as nodes of a Model.
#pragma once

#include <string>

#include "lockstep/nn/detail/keras_config.h"
#include "lockstep/nn/detail/keras_weights.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

// Ports are named after the layers that make them, nodes likewise. `keras_major` decides what "hard_sigmoid" means.
// Notes on what differs go to provenance.notes. Throws Error (unsupported) naming the layer and its class, (model)
// where weights are missing or do not fit.
Model build_keras_model(const KerasModel& keras, const KerasWeights& weights, int keras_major,
                        const std::string& where);

}  // namespace lockstep::nn::detail

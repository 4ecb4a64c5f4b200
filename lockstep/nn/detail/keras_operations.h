// Operations of keras.ops in functional models: slices x[:, :2], arithmetic x * 2 + y, functions of each element.
#pragma once

#include <string>

#include "lockstep/nn/detail/keras_config.h"
#include "lockstep/nn/detail/keras_graph.h"

namespace lockstep::nn::detail {

// Some layers have the same names. Operations have no weights.
bool is_keras_operation(const KerasLayer& layer);

// The values that a call makes of those it reads, which lie in `reads` as in call.reads. Throws Error: (unsupported)
// naming the operation and what of it is not read, what mixes samples among them; (model) for widths that do not fit.
KerasValues keras_operation(KerasGraph& graph, const KerasLayer& layer, const KerasCall& call, const KerasValues& reads,
                            const std::string& name);

}  // namespace lockstep::nn::detail

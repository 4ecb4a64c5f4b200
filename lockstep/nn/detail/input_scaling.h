// Factors and terms that stand before the first layer.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::nn::detail {

// x / scale + term before a layer as (x - shift) / scale, in float64. In the layer's weights a term would cost as many
// digits as it is larger than what it makes (-300 of x = 300 +- 1: two of seven). What float32 does not hold of the
// shift goes into the layer's bias, and signs into its weights [output][input], so that scales stay above 0. Nothing,
// and the layer as it was, where there is no term, which costs no digits in the weights, or where float32 does not hold
// the numbers.
std::optional<InputScaling> as_input_scaling(std::vector<double> scale, const std::vector<double>& term,
                                             std::span<double> weights, std::span<double> bias);

}  // namespace lockstep::nn::detail

// Keras' layers and activations that are several operations with branches between them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

// Reads results of steps before it by their number, or what the layer itself reads: kKerasInput, and a second value
// as kKerasSecondInput.
struct KerasStep {
  Operation operation;
  std::vector<std::size_t> reads;
};
using KerasSteps = std::vector<KerasStep>;
inline constexpr std::size_t kKerasInput = ~std::size_t(0), kKerasSecondInput = kKerasInput - 1;

// tanh_shrink, squareplus, sparse_plus; nullopt for other names.
std::optional<KerasSteps> composed_activation(std::string_view name);

// Of keras.ops, by the names of its classes: Tan, Sinh, Cosh, Arcsin, Arccos, Arcsinh, Arccosh, Arctanh, Log1p, Ceil,
// Sign, and Arctan2 of two values; likewise.
std::optional<KerasSteps> composed_operation(std::string_view class_name);

KerasSteps rms_normalisation(const std::vector<double>& scale, double epsilon);
KerasSteps unit_normalisation();  // x / |x|, the reciprocal at most 1e12
// Every group of neighbours by itself; `groups` divides the width, which gamma and beta have.
KerasSteps group_normalisation(const std::vector<double>& gamma, const std::vector<double>& beta, std::size_t groups,
                               double epsilon);

}  // namespace lockstep::nn::detail

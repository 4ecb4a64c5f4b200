// The plain evaluation that every kernel must match bit for bit; for tests.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::mlp {

// y = net(x) for one sample.
template <class T>
std::vector<T> evaluate_reference(const Mlp& mlp, std::vector<T> x) {
  for (std::size_t c = 0; c < x.size() && !mlp.input_scaling.scale.empty(); ++c) {
    x[c] = (x[c] - static_cast<T>(mlp.input_scaling.shift[c])) / static_cast<T>(mlp.input_scaling.scale[c]);
  }
  for (const DenseLayer& layer : mlp.layers) {
    std::vector<T> y(layer.outputs);
    for (std::size_t j = 0; j < layer.outputs; ++j) {
      T sum = static_cast<T>(layer.bias[j]);
      for (std::size_t k = 0; k < layer.inputs; ++k) {
        sum = std::fma(static_cast<T>(layer.weights[j * layer.inputs + k]), x[k], sum);
      }
      y[j] = activate(layer.activation, sum);
    }
    x = y;
  }
  for (std::size_t c = 0; c < x.size() && !mlp.output_scaling.scale.empty(); ++c) {
    x[c] = std::fma(x[c], static_cast<T>(mlp.output_scaling.scale[c]), static_cast<T>(mlp.output_scaling.shift[c]));
  }
  return x;
}

// A stack of the given widths with weights of Glorot's size; the last layer is linear.
inline Mlp random_mlp(const std::vector<std::size_t>& widths, Activation activation, unsigned seed) {
  std::mt19937 random(seed);
  Mlp mlp;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    DenseLayer layer{.inputs = widths[i], .outputs = widths[i + 1]};
    std::uniform_real_distribution<double> weight(-1, 1);
    const double limit = std::sqrt(6.0 / static_cast<double>(widths[i] + widths[i + 1]));
    for (std::size_t j = 0; j < layer.inputs * layer.outputs; ++j) layer.weights.push_back(limit * weight(random));
    for (std::size_t j = 0; j < layer.outputs; ++j) layer.bias.push_back(0.3 * weight(random));
    if (i + 2 < widths.size()) layer.activation = activation;
    mlp.layers.push_back(layer);
  }
  return mlp;
}

// Another scale for each of some features, on both sides.
inline void give_scaling(Mlp& mlp) {
  for (std::size_t c = 0; c < mlp.inputs(); ++c) {
    mlp.input_scaling.shift.push_back(0.1 * static_cast<double>(c));
    mlp.input_scaling.scale.push_back(1 + 0.25 * static_cast<double>(c % 5));
  }
  for (std::size_t c = 0; c < mlp.outputs(); ++c) {
    mlp.output_scaling.scale.push_back(2 - 0.125 * static_cast<double>(c % 5));
    mlp.output_scaling.shift.push_back(-0.5);
  }
}

template <class T>
std::vector<T> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<T> numbers(count);
  for (T& number : numbers) number = static_cast<T>(normal(random));
  return numbers;
}

}  // namespace lockstep::mlp

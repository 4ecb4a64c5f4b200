// What a net's evaluation on tensor cores should give: its numbers exactly, as the simulator makes them, and a bound on
// how far the hardware's may be from those of exact arithmetic.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/cuda/tensor_number.h"
#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::cuda::testing {

// y = net(x) for one sample: weights and the inputs of each layer rounded to the format, else float32.
template <class Format>
std::vector<float> tensor_reference(const Mlp& mlp, std::vector<float> x) {
  const auto at = [](const std::vector<double>& numbers, std::size_t i, double none) {
    return static_cast<float>(numbers.empty() ? none : numbers[i]);
  };
  const InputScaling& in = mlp.input_scaling;
  const OutputScaling& out = mlp.output_scaling;
  if (!in.shift.empty() || !in.scale.empty())
    for (std::size_t c = 0; c < x.size(); ++c) x[c] = (x[c] - at(in.shift, c, 0)) / at(in.scale, c, 1);
  for (const DenseLayer& layer : mlp.layers) {
    std::vector<float> y(layer.outputs);
    for (float& number : x) number = rounded_to<Format>(number);
    for (std::size_t j = 0; j < layer.outputs; ++j) {
      float sum = static_cast<float>(layer.bias[j]);
      for (std::size_t k = 0; k < layer.inputs; ++k)
        sum = std::fma(rounded_to<Format>(static_cast<float>(layer.weights[j * layer.inputs + k])), x[k], sum);
      y[j] = activate(layer.activation, sum);
    }
    x = y;
  }
  if (!out.shift.empty() || !out.scale.empty())
    for (std::size_t c = 0; c < x.size(); ++c) x[c] = std::fma(x[c], at(out.scale, c, 1), at(out.shift, c, 0));
  return x;
}

// A number of exact arithmetic, and how far the one on tensor cores may be from it.
struct Bounded {
  double value, error;
};

// For nets without scalings whose activations have a slope of at most 1.13 (the largest of ours, of gelu) and whose
// float32 forms are within 4 units of 2^-24 of the largest number in sight. With u the format's unit roundoff, x and w
// exact, x + e the layer's input in the kernel (|e| <= error of x, then rounded: another u (|x| + error) + tiny), a sum
// of n products is off by at most
//   sum |w| e' + u |w| (|x| + e')              weights rounded (tiny where they underflow), inputs off by e'
//   + (n + 2) 2^-22 (sum |w| |x| + |bias|)(1 + u)^2   additions in any order, even cut off (mma_words.cuh), and the
//   bias
// and the activation carries it on times its slope.
template <class Format>
std::vector<Bounded> tensor_bound(const Mlp& mlp, const std::vector<float>& inputs) {
  constexpr double u = Format::kUnit, tiny = Format::kTiny;
  std::vector<Bounded> x;
  for (const float input : inputs) x.push_back({input, 0});
  for (const DenseLayer& layer : mlp.layers) {
    for (Bounded& number : x) number.error += u * (std::fabs(number.value) + number.error) + tiny;
    std::vector<Bounded> y;
    for (std::size_t j = 0; j < layer.outputs; ++j) {
      double sum = layer.bias[j], magnitude = std::fabs(sum), error = 0;
      for (std::size_t k = 0; k < layer.inputs; ++k) {
        const double w = layer.weights[j * layer.inputs + k], size = std::fabs(w);
        sum += w * x[k].value;
        const double most = std::fabs(x[k].value) + x[k].error;
        error += size * x[k].error + (u * size + tiny) * most;
        magnitude += (size * (1 + u) + tiny) * most;
      }
      error += static_cast<double>(layer.inputs + 2) * 0x1p-22 * magnitude;
      const bool linear =
          layer.activation.kind == ActivationKind::identity || layer.activation.kind == ActivationKind::relu;
      const double value = activate(layer.activation, sum);
      y.push_back({value, (linear ? 1 : 1.13) * error + (linear ? 0 : 0x1p-22 * (std::fabs(value) + std::fabs(sum)))});
    }
    x = y;
  }
  return x;
}

}  // namespace lockstep::cuda::testing

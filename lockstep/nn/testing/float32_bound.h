// For tests: how far float32 answers of other tools may lie from ours in float64.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::nn::testing {

// What an evaluation in float32 (unit roundoff u) may differ from one in float64 by, to first order: each sum of k
// products errs by at most gamma(k + 2) (|b| + |W||x|) (Higham, Accuracy and Stability of Numerical Algorithms, 3.1);
// an activation passes on an error times its largest slope, below 1.8 for all of ours but square and sin (selu's
// is 1.76), and adds its own, below 8 u (|x| + |y|) for functions good to a few ulp of their intermediate values.
inline std::vector<double> float32_bound(const Mlp& mlp, std::vector<double> x) {
  constexpr double u = 0x1p-24;
  std::vector<double> error(x.size(), 0);
  for (std::size_t i = 0; i < x.size() && !mlp.input_scaling.scale.empty(); ++i) {
    x[i] = (x[i] - mlp.input_scaling.shift[i]) / mlp.input_scaling.scale[i];
    error[i] = 4 * u * (std::fabs(x[i]) + std::fabs(mlp.input_scaling.shift[i] / mlp.input_scaling.scale[i]));
  }
  for (const DenseLayer& layer : mlp.layers) {
    std::vector<double> y(layer.outputs), y_error(layer.outputs);
    for (std::size_t j = 0; j < layer.outputs; ++j) {
      double sum = layer.bias[j], magnitude = std::fabs(layer.bias[j]), passed = 0;
      for (std::size_t k = 0; k < layer.inputs; ++k) {
        const double weight = layer.weights[j * layer.inputs + k];
        sum += weight * x[k];
        magnitude += std::fabs(weight * x[k]);
        passed += std::fabs(weight) * error[k];
      }
      y[j] = activate(layer.activation, sum);
      // Folded normalisations: a product and a sum more, of numbers no larger than `magnitude` by more than a factor 4.
      y_error[j] = 1.8 * (passed + 4 * static_cast<double>(layer.inputs + 4) * u * magnitude) +
                   8 * u * (std::fabs(sum) + std::fabs(y[j]));
    }
    x = std::move(y);
    error = std::move(y_error);
  }
  for (std::size_t j = 0; j < x.size() && !mlp.output_scaling.scale.empty(); ++j) {
    const double scaled = x[j] * mlp.output_scaling.scale[j];
    error[j] = std::fabs(mlp.output_scaling.scale[j]) * error[j] +
               4 * u * (std::fabs(scaled) + std::fabs(mlp.output_scaling.shift[j]));
  }
  return error;
}

}  // namespace lockstep::nn::testing

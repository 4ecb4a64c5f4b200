// A stack of dense layers as plain numbers: what the kernels need to know of a trained net.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/core/cpp20.h"
#include "lockstep/kernels/activation.h"

namespace lockstep {

// y = activation(W x + b), each output as acc = b[j]; for k ascending acc = fma(W[j][k], x[k], acc).
struct DenseLayer {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::vector<double> weights;  // [output][input]; float32 weights are held exactly
  std::vector<double> bias;     // [output]
  Activation activation;
  bool has_bias = true;  // without one `bias` is zeros, which training leaves alone
};

// One number a feature. An empty vector means none: no shift, a scale of 1.
struct InputScaling {
  std::vector<double> shift;  // x' = (x - shift) / scale: one subtraction, one division
  std::vector<double> scale;
};
struct OutputScaling {
  std::vector<double> scale;  // y' = fma(y, scale, shift)
  std::vector<double> shift;
};

struct Mlp {
  std::vector<DenseLayer> layers;
  InputScaling input_scaling;
  OutputScaling output_scaling;

  std::size_t inputs() const { return layers.empty() ? 0 : layers.front().inputs; }
  std::size_t outputs() const { return layers.empty() ? 0 : layers.back().outputs; }
  std::size_t parameter_count() const;
  // Throws Error (model) naming the layer when sizes do not fit together or a number is not finite.
  void validate() const;
};

}  // namespace lockstep

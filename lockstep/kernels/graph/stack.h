// A plain stack of layers as operations of a graph.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "lockstep/kernels/graph/operation.h"
#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::graph {

// Each reads what the one before it made: the scaling of the inputs, layers and their activations, the scaling of the
// outputs. What changes nothing is left out.
inline std::vector<Operation> operations_of(const Mlp& mlp) {
  const auto filled = [](std::vector<double> values, std::size_t width, double missing) {
    if (values.empty()) values.assign(width, missing);
    return values;
  };
  std::vector<Operation> operations;
  const auto& in = mlp.input_scaling;
  if (!in.shift.empty() || !in.scale.empty())
    operations.push_back(Standardise{filled(in.shift, mlp.inputs(), 0), filled(in.scale, mlp.inputs(), 1)});
  for (const DenseLayer& layer : mlp.layers) {
    operations.push_back(Dense{layer.inputs, layer.outputs, layer.weights, layer.bias, layer.has_bias});
    if (layer.activation.kind != ActivationKind::identity) operations.push_back(Activate{layer.activation});
  }
  const auto& out = mlp.output_scaling;
  if (!out.scale.empty() || !out.shift.empty())
    operations.push_back(Rescale{filled(out.scale, mlp.outputs(), 1), filled(out.shift, mlp.outputs(), 0)});
  return operations;
}

}  // namespace lockstep::graph

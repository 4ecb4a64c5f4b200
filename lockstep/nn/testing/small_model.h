// For tests: a small model to play with.
#pragma once

#include "lockstep/nn/model.h"

namespace lockstep::nn::testing {

// 2 -> 3 tanh -> 1, with scaling, names, units and ranges.
inline Model small_model() {
  Mlp mlp;
  mlp.layers.push_back({2, 3, {1, 2, 3, 4, 5, 6}, {0.5, -0.5, 0.25}, {ActivationKind::tanh, 0}});
  mlp.layers.push_back({3, 1, {1, -1, 0.125}, {2}, {}});
  mlp.input_scaling = {{1, 2}, {3, 4}};
  mlp.output_scaling = {{10}, {20}};
  Model model = Model::from_mlp(mlp);
  model.name = "small";
  model.inputs[0].features = {{"pressure", "Pa", 0, 1e5}, {"temperature", "K", 200, 400}};
  model.outputs[0].features[0].name = "flux";
  model.outputs[0].features[0].unit = "W m-2";
  model.provenance.producer = "a test";
  model.provenance.licence = "CC0-1.0";
  model.metadata["note"] = "two words";
  return model;
}

}  // namespace lockstep::nn::testing

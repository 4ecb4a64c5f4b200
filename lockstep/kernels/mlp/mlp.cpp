#include "lockstep/kernels/mlp/mlp.h"

#include <cmath>
#include <span>
#include <string>

#include "lockstep/core/all_finite.h"
#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"

namespace lockstep {
namespace {

[[noreturn]] void refuse(std::string field, std::string found, std::string expected, std::string remedy) {
  throw Error(ErrorKind::model, {std::move(field), std::move(found), std::move(expected), std::move(remedy)});
}

void require_size(const std::string& field, std::size_t found, std::size_t expected, const std::string& what) {
  if (found == expected) return;
  refuse(field, std::to_string(found) + " numbers", std::to_string(expected) + " (" + what + ")",
         "check the shapes of the net's tensors");
}

void require_finite(const std::string& field, std::span<const double> numbers) {
  if (all_finite(numbers)) return;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isfinite(numbers[i])) continue;
    refuse(field + "[" + std::to_string(i) + "]", std::isnan(numbers[i]) ? "NaN" : "infinity", "a finite number",
           "train the net again or repair the file");
  }
}

void require_features(const std::string& field, const std::vector<double>& numbers, std::size_t features) {
  if (numbers.empty()) return;
  require_size(field, numbers.size(), features, "one a feature, or none");
  require_finite(field, numbers);
}

}  // namespace

std::size_t Mlp::parameter_count() const {
  std::size_t count = 0;
  for (const DenseLayer& layer : layers) count += layer.weights.size() + layer.bias.size();
  return count;
}

void Mlp::validate() const {
  const StandardArithmetic arithmetic;
  if (layers.empty()) refuse("layers", "none", "at least one dense layer", "add a layer");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const DenseLayer& layer = layers[i];
    const std::string name = "layers[" + std::to_string(i) + "]";
    if (layer.inputs == 0) refuse(name + ".inputs", "0", "at least 1", "remove the layer or give it inputs");
    if (layer.outputs == 0) refuse(name + ".outputs", "0", "at least 1", "remove the layer or give it outputs");
    if (i > 0 && layer.inputs != layers[i - 1].outputs) {
      refuse(name + ".inputs", std::to_string(layer.inputs),
             std::to_string(layers[i - 1].outputs) + ", the outputs of the layer before",
             "check the order of the layers and the shapes of their weights");
    }
    require_size(name + ".weights", layer.weights.size(), layer.outputs * layer.inputs, "outputs times inputs");
    require_size(name + ".bias", layer.bias.size(), layer.outputs, "one an output");
    require_finite(name + ".weights", layer.weights);
    require_finite(name + ".bias", layer.bias);
    if (!std::isfinite(layer.activation.alpha)) {
      refuse(name + ".activation.alpha", number_text(layer.activation.alpha), "a finite number",
             "give the activation its slope");
    }
    if (layer.activation.kind == ActivationKind::celu && layer.activation.alpha == 0) {
      refuse(name + ".activation.alpha", "0", "a number that can be divided by, as celu does",
             "give celu its alpha; 1 is usual");
    }
  }
  require_features("input_scaling.shift", input_scaling.shift, inputs());
  require_features("input_scaling.scale", input_scaling.scale, inputs());
  for (std::size_t i = 0; i < input_scaling.scale.size(); ++i) {
    if (input_scaling.scale[i] == 0) {
      refuse("input_scaling.scale[" + std::to_string(i) + "]", "0", "a number that can be divided by",
             "use 1 for a feature that never varies");
    }
  }
  require_features("output_scaling.scale", output_scaling.scale, outputs());
  require_features("output_scaling.shift", output_scaling.shift, outputs());
}

}  // namespace lockstep

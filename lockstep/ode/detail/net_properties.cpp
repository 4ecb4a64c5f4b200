#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/ode/detail/function_with_net.h"

namespace lockstep::ode::detail {
namespace {

void add(ContentHash& hash, const std::vector<double>& numbers) { hash.add(std::span<const double>(numbers)); }

}  // namespace

std::string digest(const Mlp& mlp) {
  ContentHash hash;
  for (const DenseLayer& layer : mlp.layers) {
    const double sizes[] = {double(layer.inputs), double(layer.outputs)};
    hash.add(std::span<const double>(sizes)).add(to_string(layer.activation));
    add(hash, layer.weights);
    add(hash, layer.bias);
  }
  add(hash, mlp.input_scaling.shift);
  add(hash, mlp.input_scaling.scale);
  add(hash, mlp.output_scaling.scale);
  add(hash, mlp.output_scaling.shift);
  return hash.hex();
}

std::string shape(const Mlp& mlp) {
  std::string text = std::to_string(mlp.inputs());
  for (const DenseLayer& layer : mlp.layers) text.append("-").append(std::to_string(layer.outputs));
  return text;
}

void require_net(const std::string& name, const Mlp& mlp, std::size_t inputs) {
  mlp.validate();
  if (mlp.inputs() == inputs) return;
  throw Error(ErrorKind::invalid_argument,
              {.field = "function " + name,
               .found = "a net with " + std::to_string(mlp.inputs()) + " inputs (" + shape(mlp) + ")",
               .expected = std::to_string(inputs) + " inputs, one a component of the state",
               .remedy = "use a net of that width, or give a function that prepares its inputs"});
}

}  // namespace lockstep::ode::detail

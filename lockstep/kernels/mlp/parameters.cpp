#include "lockstep/kernels/mlp/parameters.h"

#include <algorithm>
#include <string>

#include "lockstep/core/error.h"

namespace lockstep {

template <class T>
void gather_parameters(const Mlp& mlp, T* to) {
  for (const DenseLayer& layer : mlp.layers) {
    for (const std::vector<double>* numbers : {&layer.weights, &layer.bias}) {
      to = std::transform(numbers->begin(), numbers->end(), to, [](double number) { return static_cast<T>(number); });
    }
  }
}

template <class T>
std::vector<T> gather_parameters(const Mlp& mlp) {
  std::vector<T> parameters(mlp.parameter_count());
  gather_parameters(mlp, parameters.data());
  return parameters;
}

template <class T>
void scatter_parameters(std::span<const T> parameters, Mlp& mlp) {
  if (parameters.size() != mlp.parameter_count()) {
    throw Error(ErrorKind::invalid_argument, {.field = "parameters",
                                              .found = std::to_string(parameters.size()) + " numbers",
                                              .expected = std::to_string(mlp.parameter_count()),
                                              .remedy = "give every layer's weights, then its bias"});
  }
  auto from = parameters.begin();
  for (DenseLayer& layer : mlp.layers) {
    for (std::vector<double>* numbers : {&layer.weights, &layer.bias}) {
      for (double& number : *numbers) number = *from++;
    }
  }
}

template std::vector<float> gather_parameters<float>(const Mlp&);
template std::vector<double> gather_parameters<double>(const Mlp&);
template void gather_parameters<float>(const Mlp&, float*);
template void gather_parameters<double>(const Mlp&, double*);
template void scatter_parameters<float>(std::span<const float>, Mlp&);
template void scatter_parameters<double>(std::span<const double>, Mlp&);

}  // namespace lockstep

// The trainable numbers of an Mlp as one flat vector: what optimisers step and gradients are taken by.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep {

// Order: layer by layer, weights [output][input], then bias [output]; mlp.parameter_count() numbers. Scaling of inputs
// and outputs belongs to the data, not to the parameters. T is float or double; numbers are rounded to T.
template <class T>
std::vector<T> gather_parameters(const Mlp& mlp);
// The same into memory of so many numbers.
template <class T>
void gather_parameters(const Mlp& mlp, T* to);

// Writes the numbers back. Throws Error (invalid_argument) when there are not parameter_count() of them.
template <class T>
void scatter_parameters(std::span<const T> parameters, Mlp& mlp);

extern template std::vector<float> gather_parameters<float>(const Mlp&);
extern template std::vector<double> gather_parameters<double>(const Mlp&);
extern template void gather_parameters<float>(const Mlp&, float*);
extern template void gather_parameters<double>(const Mlp&, double*);
extern template void scatter_parameters<float>(std::span<const float>, Mlp&);
extern template void scatter_parameters<double>(std::span<const double>, Mlp&);

}  // namespace lockstep

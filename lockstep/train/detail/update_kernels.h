// The element by element part of an optimiser's step, and sums over parameters, compiled for each instruction set.
#pragma once

#include <cstddef>

#include "lockstep/kernels/cpu_target.h"
#include "lockstep/train/optimiser.h"

namespace lockstep::train::detail {

// What is the same for all parameters, rounded to T.
template <class T>
struct UpdateScalars {
  T step;         // the rate, with corrections for the first steps in it
  T root_scale;   // of sqrt(v): its correction for the first steps
  T epsilon;      // added to the denominator
  T beta1;        // of m; the momentum of sgd
  T beta1_rest;   // 1 - beta1
  T beta2;        // of v
  T beta2_rest;   // 1 - beta2
  T added_decay;  // times x is added to the gradient
  T keep;         // x is multiplied by this first
};

// The forms that steps have.
enum class Update { momentum, nesterov, root_mean_square, maximum, mean_alone };

// `second` is not touched by momentum and nesterov.
template <class T>
using UpdateLoop = void (*)(T* parameters, const T* gradient, T* first, T* second, std::size_t count,
                            const UpdateScalars<T>& scalars);

template <class T>
UpdateLoop<T> update_loop(Update update, CpuTarget target);
template <>
UpdateLoop<float> update_loop<float>(Update update, CpuTarget target);
template <>
UpdateLoop<double> update_loop<double>(Update update, CpuTarget target);

// The sum over one chunk, as sums.h has it.
template <class T>
using ChunkDot = double (*)(const T* a, const T* b, std::size_t count);

// Defined for float and double.
template <class T>
ChunkDot<T> chunk_dot(CpuTarget target);
template <>
ChunkDot<float> chunk_dot<float>(CpuTarget target);
template <>
ChunkDot<double> chunk_dot<double>(CpuTarget target);

}  // namespace lockstep::train::detail

// Samples in tiles, for the regressions of plain stacks and of graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/mlp/detail/packed.h"
#include "lockstep/kernels/mlp/regression.h"

namespace lockstep::mlp {

// Widths, and how inputs are scaled on the way: (x - shift) / scale, or as they are where both are empty.
template <class T>
struct SampleShape {
  std::size_t inputs, outputs;
  std::span<const T> shift = {}, scale = {};  // [input]
};

template <class T>
TiledSamples<T> make_samples(const SampleShape<T>& shape, std::size_t capacity, ResidualFactors factors);

// As RegressionPlan::assign. Throws Error (invalid_argument) where samples or tiles have another shape.
template <class T>
void assign_samples(TiledSamples<T>& tiles, const SampleShape<T>& shape, const Kernels<T>& kernels,
                    const MatrixView<const T>& inputs, const MatrixView<const T>& targets,
                    std::span<const std::uint32_t> rows, const MatrixView<const T>& factors);

// How many of `threads` are worth calling for a step in so many groups of samples. Between the calls of a training loop
// the team is awake, and a call takes it a fraction of a microsecond: each thread must have work for at least four.
// registers: of parameters times samples, three multiply-adds each, which are counted as a nanosecond.
int worthwhile_threads(int threads, std::size_t groups, double registers);

}  // namespace lockstep::mlp

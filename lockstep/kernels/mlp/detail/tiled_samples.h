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
TiledSamples<T> make_samples(const SampleShape<T>& shape, std::size_t capacity);

// As RegressionPlan::assign. Throws Error (invalid_argument) where samples or tiles have another shape.
template <class T>
void assign_samples(TiledSamples<T>& tiles, const SampleShape<T>& shape, const Kernels<T>& kernels,
                    const MatrixView<const T>& inputs, const MatrixView<const T>& targets,
                    std::span<const std::uint32_t> rows);

}  // namespace lockstep::mlp

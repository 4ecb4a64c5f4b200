// A strided view of somebody else's three-dimensional array, in any layout: a matrix for each sample, as Jacobians are.
#pragma once

#include <cstddef>

#include "lockstep/core/cpp20.h"
#include "lockstep/core/matrix_view.h"

namespace lockstep {

// Element (sample, row, column) lies at data[sample * sample_stride + row * row_stride + column * column_stride];
// strides count elements and may be any that give each element a place of its own. Left out, they are those of C's
// array[sample][row][column]. The view owns nothing.
template <class T>
struct MatrixBatchView {
  T* data = nullptr;
  std::size_t samples = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::ptrdiff_t sample_stride = static_cast<std::ptrdiff_t>(rows * columns);
  std::ptrdiff_t row_stride = static_cast<std::ptrdiff_t>(columns);
  std::ptrdiff_t column_stride = 1;

  // array(row, column, sample) of Fortran.
  static MatrixBatchView column_major(T* data, std::size_t samples, std::size_t rows, std::size_t columns) {
    return {data,
            samples,
            rows,
            columns,
            static_cast<std::ptrdiff_t>(rows * columns),
            1,
            static_cast<std::ptrdiff_t>(rows)};
  }
  T& operator()(std::size_t sample, std::size_t row, std::size_t column) const {
    return data[static_cast<std::ptrdiff_t>(sample) * sample_stride + static_cast<std::ptrdiff_t>(row) * row_stride +
                static_cast<std::ptrdiff_t>(column) * column_stride];
  }
  MatrixView<T> operator[](std::size_t sample) const {
    return {data + static_cast<std::ptrdiff_t>(sample) * sample_stride, rows, columns, row_stride, column_stride};
  }
};

}  // namespace lockstep

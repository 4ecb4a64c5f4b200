// A strided view of somebody else's two-dimensional array, in either layout.
#pragma once

#include <cstddef>
#include <type_traits>

#include "lockstep/core/cpp20.h"

namespace lockstep {

// Element (row, column) lies at data[row * row_stride + column * column_stride]; strides count elements
// and may be any that a thing read may have, 0 too; of results, each has a place of its own. Left out, rows lie one
// after another. The view owns nothing.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::ptrdiff_t row_stride = static_cast<std::ptrdiff_t>(columns);
  std::ptrdiff_t column_stride = 1;

  static MatrixView row_major(T* data, std::size_t rows, std::size_t columns) {
    return {data, rows, columns, static_cast<std::ptrdiff_t>(columns), 1};
  }
  static MatrixView column_major(T* data, std::size_t rows, std::size_t columns) {
    return {data, rows, columns, 1, static_cast<std::ptrdiff_t>(rows)};
  }
  T& operator()(std::size_t row, std::size_t column) const {
    return data[static_cast<std::ptrdiff_t>(row) * row_stride + static_cast<std::ptrdiff_t>(column) * column_stride];
  }
  // To a view that only reads, as a template: a plain function would convert that view to itself, of which nvcc warns.
  template <class Read>
  requires(std::is_same_v<Read, const T> && !std::is_const_v<T>) operator MatrixView<Read>() const {
    return {data, rows, columns, row_stride, column_stride};
  }
};

}  // namespace lockstep

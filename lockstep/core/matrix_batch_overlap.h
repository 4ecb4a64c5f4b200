// Whether the matrices of a batch share memory with a view, or with each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lockstep/core/matrix_batch_view.h"
#include "lockstep/core/matrix_overlap.h"

namespace lockstep {

// Where the elements of a batch lie, as Places has it.
struct BatchPlaces {
  std::uintptr_t address;
  std::size_t bytes;  // of an element
  std::size_t samples, rows, columns;
  std::ptrdiff_t sample_stride, row_stride, column_stride;

  // Of the first sample.
  Places matrix() const { return {address, bytes, rows, columns, row_stride, column_stride}; }
};

template <class T>
BatchPlaces places_of(const MatrixBatchView<T>& view) {
  return {reinterpret_cast<std::uintptr_t>(view.data),
          sizeof(T),
          view.samples,
          view.rows,
          view.columns,
          view.sample_stride,
          view.row_stride,
          view.column_stride};
}

// Do two elements lie at one place? Exact, and soon known where the axes lie within each other, as in arrays of three
// dimensions and their sections. A batch that no memory can hold counts as doing so.
bool shares_places(const BatchPlaces& batch);

// Does a batch whose elements have places of their own share memory with a view? Exact, as share_memory of two views.
bool share_memory(const BatchPlaces& batch, const Places& other);

// Error (invalid_argument) for a batch that shares places, by the name that messages give it.
[[noreturn]] void refuse_batch(std::string written, const BatchPlaces& batch);

}  // namespace lockstep

// Whether two views share memory: a call may not write where it reads, unless each number takes the place of the one it
// was made from. And whether a view's own elements do: results need a place each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lockstep/core/matrix_view.h"

namespace lockstep {

// Where the elements of a view lie: at address + bytes (row * row_stride + column * column_stride).
struct Places {
  std::uintptr_t address;
  std::size_t bytes;  // of an element
  std::size_t rows, columns;
  std::ptrdiff_t row_stride, column_stride;
};

template <class T>
Places places_of(const MatrixView<T>& view) {
  return {reinterpret_cast<std::uintptr_t>(view.data),
          sizeof(T),
          view.rows,
          view.columns,
          view.row_stride,
          view.column_stride};
}

// Can memory hold it, 2^56 elements from one end to the other? Not where counts or strides are no numbers of elements:
// samples of -1 as an unsigned number.
bool fits_memory(const Places& view);

// Is a byte of an element of `a` one of `b`? Exact for any strides: columns of one array, side by side, interleave
// without sharing anything. Elements of both have the same size. Views that no memory can hold count as sharing.
bool share_memory(const Places& a, const Places& b);

// `count` views, each `stride` elements after the one before.
struct Slices {
  Places first;
  std::size_t count;
  std::ptrdiff_t stride;
};

// Does any of the slices share memory with `other`, which lies at one place? Exact and with the same limits.
bool shares_memory(const Slices& slices, const Places& other);

// Does a slice of `a` share memory with another than its own of `b`, which has as many? Exact and with the same limits.
bool slices_share_memory(const Slices& a, const Slices& b);

// Do two elements of one view lie at one place? Exact for any strides: a stride of 0, rows that overlap.
bool shares_places(const Places& view);

// Do both begin at one element and go on with the same strides? One may have fewer columns where rows keep apart.
bool same_view(const Places& a, const Places& b);

// The bytes from the lowest element to the end of the highest.
struct Extent {
  std::uintptr_t begin, end;
};
inline Extent extent_of(const Places& view) {
  // Unsigned: a view of no rows reaches back by one, and strides may be anything.
  const auto reach = [&](std::size_t count, std::ptrdiff_t stride) {
    return static_cast<std::ptrdiff_t>((count - 1) * static_cast<std::size_t>(stride) * view.bytes);
  };
  constexpr std::ptrdiff_t kNone = 0;
  const std::ptrdiff_t down = reach(view.rows, view.row_stride), along = reach(view.columns, view.column_stride);
  return {view.address + static_cast<std::uintptr_t>(std::min(down, kNone)) +
              static_cast<std::uintptr_t>(std::min(along, kNone)),
          view.address + static_cast<std::uintptr_t>(std::max(down, kNone)) +
              static_cast<std::uintptr_t>(std::max(along, kNone)) + view.bytes};
}
inline bool are_apart(const Extent& a, const Extent& b) { return a.end <= b.begin || b.end <= a.begin; }

// The bits of its counts and strides: those of a view with none from kLargeBit up reach forward, and by sums of
// products that no word overflows.
template <class T>
std::size_t size_bits(const MatrixView<T>& view) {
  return view.rows | view.columns | static_cast<std::size_t>(view.row_stride) |
         static_cast<std::size_t>(view.column_stride);
}
constexpr int kLargeBit = 29;

// Does every element of one lie below all of the other? In a few instructions, for calls that take some nanoseconds; no
// where a stride is negative, or where a count or stride is as large as no field's: from 2^29.
template <class A, class B>
bool clearly_apart(const MatrixView<A>& a, const MatrixView<B>& b) {
  if ((size_bits(a) | size_bits(b)) >> kLargeBit != 0) return false;
  const auto end = [](const auto& view) {
    return reinterpret_cast<std::uintptr_t>(view.data) +
           ((view.rows - 1) * static_cast<std::size_t>(view.row_stride) +
            (view.columns - 1) * static_cast<std::size_t>(view.column_stride) + 1) *
               sizeof(A);
  };
  const auto a_begin = reinterpret_cast<std::uintptr_t>(a.data), b_begin = reinterpret_cast<std::uintptr_t>(b.data);
  return a_begin < b_begin ? end(a) <= b_begin : end(b) <= a_begin;
}

// May a call write `to` and read `from`: do they share nothing, or are they the same view?
template <class T>
bool may_write_beside(const MatrixView<T>& to, const MatrixView<const T>& from) {
  if (clearly_apart(to, from)) [[likely]]
    return true;
  const Places a = places_of(to), b = places_of(from);
  const bool fit = (size_bits(to) | size_bits(from)) >> kLargeBit == 0 || (fits_memory(a) && fits_memory(b));
  return fit && (same_view(a, b) || !share_memory(a, b));
}

// May a call write it: has each element a place of its own? In a few instructions for rows or columns one after
// another.
template <class T>
bool has_own_places(const MatrixView<T>& view) {
  if (view.column_stride == 1 && view.row_stride >= static_cast<std::ptrdiff_t>(view.columns)) [[likely]]
    return true;
  if (view.row_stride == 1 && view.column_stride >= static_cast<std::ptrdiff_t>(view.rows)) return true;
  return !shares_places(places_of(view));
}

// May it write both?
template <class T>
bool may_write_both(const MatrixView<T>& a, const MatrixView<T>& b) {
  return clearly_apart(a, b) || !share_memory(places_of(a), places_of(b));
}

// The bytes that a call uses of its scratch.
inline Extent workspace_extent(std::span<std::byte> workspace, std::size_t used_bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(workspace.data());
  return {begin, begin + used_bytes};
}
// As elements of `bytes` bytes each.
inline Places places_of(const Extent& workspace, std::size_t bytes) {
  return {workspace.begin, bytes, 1, (workspace.end - workspace.begin) / bytes, 0, 1};
}

// Does it share no number with a view that the call reads or writes? In a few instructions where one lies after the
// other.
template <class T>
bool is_apart(const MatrixView<T>& view, const Extent& workspace) {
  if (size_bits(view) >> kLargeBit == 0) [[likely]] {
    const auto begin = reinterpret_cast<std::uintptr_t>(view.data);
    if (begin >= workspace.end) return true;
    const std::size_t last = (view.rows - 1) * static_cast<std::size_t>(view.row_stride) +
                             (view.columns - 1) * static_cast<std::size_t>(view.column_stride);
    if (begin + (last + 1) * sizeof(T) <= workspace.begin) [[likely]]
      return true;
  }
  return view.data == nullptr || !share_memory(places_of(view), places_of(workspace, sizeof(T)));
}

// Error (invalid_argument) where they may not; the names are what messages call the views. Of views that no memory can
// hold it is their size that is refused.
[[noreturn]] void refuse_overlap(std::string written, const Places& to, const std::string& read, const Places& from);
[[noreturn]] void refuse_two_results(std::string written, const Places& to, const std::string& other,
                                     const Places& beside);
[[noreturn]] void refuse_workspace(const std::string& name, const Places& view);
[[noreturn]] void refuse_shared_places(std::string written, const Places& view);
[[noreturn]] void refuse_size(std::string name, const Places& view);
// Of a view that has samples and no address.
[[noreturn]] void refuse_null(const std::string& name);
// Refuses scratch that shares a number with a view which the call reads or writes, of which name() tells. Views without
// an address are not looked at.
template <class T, class Name>
void require_apart(const Extent& workspace, const MatrixView<T>& view, const Name& name) {
  if (!is_apart(view, workspace)) refuse_workspace(name(), places_of(view));
}
template <class T>
bool lacks_address(const MatrixView<T>& view) {
  return view.data == nullptr && view.rows > 0;
}

}  // namespace lockstep

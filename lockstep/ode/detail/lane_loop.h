// One loop over the lanes of a tile, compiled for each instruction set, so that code written for one trajectory runs
// on registers full of them.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "lockstep/core/ieee_arithmetic.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/tile.h"

// The same bits everywhere: the user's arithmetic must not be contracted or reordered, whatever the flags of the file
// that includes this. GCC takes the attribute below, Clang what ieee_arithmetic.h says.
namespace lockstep::ode::detail {

// Column `lane` of an array [row][lane]: indexed like an array of the rows.
template <class T>
struct LaneColumn {
  T* first;  // row 0
  T& operator[](std::size_t row) const { return first[row * kTileLanes]; }
};

// States up to this size are handed to the user's code as local arrays, which compilers keep in registers; longer ones
// stay where they are and are read through LaneColumn.
inline constexpr std::size_t kLocalRows = 32;

template <class T, std::size_t... row>
inline std::array<T, sizeof...(row)> load_rows(const T* __restrict first, std::index_sequence<row...>) {
  return {first[row * kTileLanes]...};
}

// Column `lane` of array[rows][lane]; array is null when rows is 0.
template <std::size_t rows, class T>
inline auto load_column(const T* __restrict array, int lane) {
  if constexpr (rows == 0) {
    return std::array<T, 0>{};
  } else if constexpr (rows <= kLocalRows) {
    return load_rows(array + lane, std::make_index_sequence<rows>());
  } else {
    return LaneColumn<const T>{array + lane};
  }
}

template <class T, class Values, std::size_t... row>
inline void store_rows([[maybe_unused]] T* __restrict first, [[maybe_unused]] const Values& values,
                       std::index_sequence<row...>) {
  ((first[row * kTileLanes] = values[row]), ...);
}

// fill(du) where du indexes `rows` numbers, zero at first, that become the column's.
template <std::size_t rows, class T, class Fill>
inline void fill_column(T* __restrict first, const Fill& fill) {
  if constexpr (rows <= kLocalRows) {
    std::array<T, rows> values{};
    fill(values);
    store_rows(first, values, std::make_index_sequence<rows>());
  } else {
    LaneColumn<T> column{first};
    for (std::size_t row = 0; row < rows; ++row) column[row] = T(0);
    fill(column);
  }
}

// As many lanes as a tile has, known to the compiler; where a tile may hold fewer the loops below take their number.
using AllLanes = std::integral_constant<int, kTileLanes>;

// body(lane) for the first `lanes` lanes of a tile, AllLanes or int; lanes do not depend on each other.
template <class Lanes, class Body>
inline void every_lane(Lanes lanes, const Body& body) {
  const int end = lanes;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
  for (int lane = 0; lane < end; ++lane) body(lane);
}

#if defined(__x86_64__) && defined(__clang__)
template <class Lanes, class Body>
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx512cd,avx2,fma"), flatten)) void every_lane_avx512(
    Lanes lanes, const Body& body) {
  every_lane(lanes, body);
}
template <class Lanes, class Body>
__attribute__((target("avx2,fma"), flatten)) void every_lane_avx2(Lanes lanes, const Body& body) {
  every_lane(lanes, body);
}
#elif defined(__x86_64__) && defined(__GNUC__)
// optimize: GCC vectorises short loops at -O2 as well, but does not unroll the loops inside the user's code there.
template <class Lanes, class Body>
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx512cd,avx2,fma,prefer-vector-width=512"),
               optimize("O3,fp-contract=off"), flatten)) void
every_lane_avx512(Lanes lanes, const Body& body) {
  every_lane(lanes, body);
}
template <class Lanes, class Body>
__attribute__((target("avx2,fma"), optimize("O3,fp-contract=off"), flatten)) void every_lane_avx2(Lanes lanes,
                                                                                                  const Body& body) {
  every_lane(lanes, body);
}
#endif

template <class Lanes, class Body>
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("O3,fp-contract=off"), flatten))
#elif defined(__clang__)
__attribute__((flatten))
#endif
void every_lane_baseline(Lanes lanes, const Body& body) {
  every_lane(lanes, body);
}

// The versions differ in speed alone.
template <class Lanes, class Body>
void every_lane_on(CpuTarget target, Lanes lanes, const Body& body) {
#if defined(__x86_64__) && defined(__GNUC__)
#ifndef LOCKSTEP_NO_AVX512
  if (target == CpuTarget::avx512) return every_lane_avx512(lanes, body);
#endif
  if (target == CpuTarget::avx2) return every_lane_avx2(lanes, body);
#endif
  (void)target;
  every_lane_baseline(lanes, body);
}

}  // namespace lockstep::ode::detail

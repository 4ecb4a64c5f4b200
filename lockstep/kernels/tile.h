// A tile: 32 samples or trajectories side by side, stored [component][lane].
#pragma once

#include <cstddef>

namespace lockstep {

// Two AVX-512 registers of float32, four of AVX2, one GPU warp.
inline constexpr int kTileLanes = 32;

// One evaluation of a tile function: out[c][lane] = f(t[lane], in[.][lane], parameters[.][lane]).
// Arrays are 64-byte aligned with kTileLanes elements a row. Only the first `lanes` lanes are wanted; the others
// hold finite or NaN garbage that may be read and overwritten but must not trap or influence the wanted ones.
// Inputs and outputs never overlap.
template <class T>
struct TileView {
  const double* t;      // [lane]
  const T* in;          // [component][lane]
  const T* parameters;  // [parameter][lane], null when there are none
  T* out;               // [component][lane]
  int lanes;            // 1 .. kTileLanes
};

}  // namespace lockstep

// The memory of a tile's linear equations, one system a lane.
#pragma once

#include <cstddef>

#include "lockstep/kernels/tile.h"

namespace lockstep::ode::cpu {

// Within an engine's workspace, which is 64-byte aligned.
template <class T>
struct LinearTile {
  LinearTile(std::size_t n, std::byte* memory)
      : components(n),
        matrix(reinterpret_cast<T*>(memory)),
        by_time(matrix + n * n * kTileLanes),
        pivots(by_time + n * kTileLanes) {}
  static std::size_t bytes(std::size_t n) { return (n * n + 2 * n) * kTileLanes * sizeof(T); }

  std::size_t components;
  T* matrix;   // [row][column][lane]: the Jacobian, then 1/gamma - h J, then its factors, the diagonal's inverse
  T* by_time;  // [component][lane]: the derivative by time
  T* pivots;   // [row][lane]: which row was put there
};

}  // namespace lockstep::ode::cpu

// The memory of a tile's linear equations, one system a lane.
#pragma once

#include <cstddef>

#include "lockstep/kernels/tile.h"
#include "lockstep/ode/linear_layout.h"

namespace lockstep::ode::cpu {

// Within an engine's workspace, which is 64-byte aligned.
template <class T>
struct LinearTile {
  LinearTile(const LinearLayout& the_layout, std::byte* memory)
      : layout(&the_layout),
        matrix(reinterpret_cast<T*>(memory)),
        by_time(matrix + the_layout.entries() * kTileLanes),
        pivots(by_time + the_layout.size() * kTileLanes) {}
  static std::size_t bytes(const LinearLayout& layout) { return rows(layout) * kTileLanes * sizeof(T); }
  std::size_t rows() const { return rows(*layout); }  // from `matrix` on, pivots included

  const LinearLayout* layout;
  // [entry][lane]: the Jacobian, then 1/gamma - h J, then its factors, the diagonal's inverse
  T* matrix;
  T* by_time;  // [component][lane]: the derivative by time
  T* pivots;   // [place][lane]: from which place its row came

 private:
  static std::size_t rows(const LinearLayout& layout) { return layout.entries() + 2 * layout.size(); }
};

}  // namespace lockstep::ode::cpu

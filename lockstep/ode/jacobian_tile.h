// The Jacobian of a right-hand side over a tile of trajectories: what linearly implicit methods ask of it.
#pragma once

#include <cstddef>
#include <memory>

#include "lockstep/ode/differentiable_tile.h"

namespace lockstep::ode {

// Row by row: the transposed derivative of each component. Immutable, shared between threads.
template <class T>
class JacobianTile {
 public:
  // Throws Error (unsupported) for a function that cannot be differentiated.
  JacobianTile(const StateFunction& function, CpuTarget target);

  // by_state[component][of component][lane] and by_time[component][lane] at tile.t and tile.in, of each of tile.lanes
  // by itself; tile.out is not used. By time it is a difference quotient where somebody's code is handed the time. The
  // workspace holds workspace_bytes(); nothing overlaps; all memory is 64-byte aligned.
  void evaluate(const TileView<T>& tile, T* by_state, T* by_time, std::byte* workspace) const;
  std::size_t workspace_bytes() const;

 private:
  struct Workspace;
  Workspace lay_out(std::byte* workspace) const;
  void difference_by_time(const TileView<T>& tile, const Workspace& memory, T* by_time) const;

  std::shared_ptr<const DifferentiableTile<T>> function_;
  std::size_t components_, parameters_;
};

extern template class JacobianTile<float>;
extern template class JacobianTile<double>;

}  // namespace lockstep::ode

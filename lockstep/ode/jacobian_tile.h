// The Jacobian of a right-hand side over a tile of trajectories: what linearly implicit methods ask of it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "lockstep/ode/linear_layout.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode {

// Immutable, shared between threads.
template <class T>
class JacobianTile {
 public:
  virtual ~JacobianTile() = default;

  // by_state [entry of layout()][lane] and by_time [component][lane] at tile.t and tile.in, of each of tile.lanes by
  // itself; what other lanes hold is any number. tile.out is not used. The workspace holds workspace_bytes(); nothing
  // overlaps; all memory is 64-byte aligned.
  virtual void evaluate(const TileView<T>& tile, T* by_state, T* by_time, std::byte* workspace) const = 0;
  virtual std::size_t workspace_bytes() const = 0;
  // Of the function alone, whatever its weights; as long-lived as this.
  virtual const LinearLayout& layout() const = 0;

  // A copy whose weights can be set, [StateFunction::weights()]; null where it has none of its own.
  virtual std::shared_ptr<JacobianTile> with_own_weights() const { return nullptr; }
  virtual void set_weights(std::span<const T> /*weights*/) {}
};

// The function's own, or one made of its transposed derivative: a row a component, and by the time a difference
// quotient where that is handed to somebody's code. Throws Error (unsupported) for a function that cannot be
// differentiated. `lowered` is the function's derivative, whose weights may change between evaluations; null: a new
// one.
template <class T>
std::shared_ptr<const JacobianTile<T>> lower_jacobian(const StateFunction& function, CpuTarget target,
                                                      std::shared_ptr<const DifferentiableTile<T>> lowered = nullptr);

extern template std::shared_ptr<const JacobianTile<float>> lower_jacobian(
    const StateFunction&, CpuTarget, std::shared_ptr<const DifferentiableTile<float>>);
extern template std::shared_ptr<const JacobianTile<double>> lower_jacobian(
    const StateFunction&, CpuTarget, std::shared_ptr<const DifferentiableTile<double>>);

}  // namespace lockstep::ode

// What the adjoint of a solve asks of its right-hand side, at weights that change from one solve to the next.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "lockstep/ode/differentiable_tile.h"
#include "lockstep/ode/jacobian_tile.h"
#include "lockstep/ode/tableau.h"

namespace lockstep::ode::cpu {

// From how many components on the derivative itself is taken along each direction, where a right-hand side has it,
// instead of a Jacobian from its rows: those cost as many transposes as there are components. What is made for it then
// is made anew for each solve; where it is kept, it is taken of few components too.
inline constexpr std::size_t kManyComponents = 64;

template <class T>
struct DifferentiableRhs {
  // Throws Error (unsupported) for a function that has not the derivatives that the method needs.
  DifferentiableRhs(const StateFunction& rhs, const Tableau& method, CpuTarget target)
      : function(lower_differentiable<T>(rhs, target)) {
    if (!method.is_linearly_implicit()) return;
    directional = lower_directional<T>(rhs, target);
    jacobian = lower_jacobian<T>(rhs, target, function);
    trained_jacobian_ = jacobian->with_own_weights();
    if (trained_jacobian_) jacobian = trained_jacobian_;
  }

  void set_weights(std::span<const T> weights) const {
    function->set_weights(weights);
    if (directional) directional->set_weights(weights);
    if (trained_jacobian_) trained_jacobian_->set_weights(weights);
  }

  // Whether set_weights() of the function's own weights would leave what was made as it is.
  bool begins_with_own_weights() const {
    return function->begins_with_own_weights() && !directional && !trained_jacobian_;
  }

  // Before derivatives are carried forward.
  void prepare_forward(std::size_t components) const {
    if (components >= kManyComponents || function->keeps_forward()) function->prepare_forward();
  }

  std::shared_ptr<DifferentiableTile<T>> function;
  // With an explicit method null.
  std::shared_ptr<DifferentiableTile<T>> directional;
  std::shared_ptr<const JacobianTile<T>> jacobian;

 private:
  std::shared_ptr<JacobianTile<T>> trained_jacobian_;
};

}  // namespace lockstep::ode::cpu

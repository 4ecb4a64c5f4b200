// A net as a right-hand side with its transposed derivative.
#pragma once

#include <cstddef>
#include <memory>

#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/ode/differentiable_tile.h"

namespace lockstep::ode::detail {

// The net's inputs are `components` of state, then `parameters` parameters, then time when `with_time`.
template <class T>
std::shared_ptr<DifferentiableTile<T>> reverse_net(const Mlp& mlp, std::size_t components, std::size_t parameters,
                                                   bool with_time, CpuTarget target);

}  // namespace lockstep::ode::detail

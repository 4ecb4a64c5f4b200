// A built-in system with its derivative and that one's transpose, and with those of its derivative along a direction.
#pragma once

#include <cstddef>
#include <memory>

#include "lockstep/ode/differentiable_tile.h"

namespace lockstep::ode::detail {

// `index` is the system's place in AllSystems, `function` its tile function for the same target.
template <class T>
std::shared_ptr<DifferentiableTile<T>> reverse_system(std::size_t index, CpuTarget target,
                                                      std::shared_ptr<const TileFunction<T>> function);
// StateFunction::directional_f64().
template <class T>
std::shared_ptr<DifferentiableTile<T>> directional_system(std::size_t index, CpuTarget target);

}  // namespace lockstep::ode::detail

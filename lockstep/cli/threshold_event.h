// What most events and resets of a problem file wait for: one component reaches a value.
#pragma once

#include <cstddef>

#include "lockstep/ode/state_function.h"

namespace lockstep::cli {

// u[component] - value, over states like those of `rhs`.
ode::Rhs threshold(const ode::Rhs& rhs, std::size_t component, double value);

}  // namespace lockstep::cli

// The built-in systems as templates over a scalar lane type: for tests, reference integrators and CUDA threads.
#pragma once

#include <string>
#include <vector>

#include "lockstep/kernels/lane/scalar_lane.h"
#include "lockstep/kernels/math/math.h"
#include "lockstep/ode/system_info.h"

namespace lockstep::ode::systems {

using math::cos;
using math::sin;

#define LOCKSTEP_LANE_FN LOCKSTEP_HOST_DEVICE
#include "lockstep/ode/systems/systems_bodies-inl.h"
// clang-format off: it takes what the others declare
#include "lockstep/ode/detail/dual_lane-inl.h"
// clang-format on
#undef LOCKSTEP_LANE_FN

}  // namespace lockstep::ode::systems

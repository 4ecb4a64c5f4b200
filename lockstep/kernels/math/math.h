// Elementary functions of plain float and double, with the bits of the SIMD and device versions: the same templates.
#pragma once

#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/lane/scalar_lane.h"

namespace lockstep::math {

#define LOCKSTEP_LANE_FN LOCKSTEP_HOST_DEVICE
#include "lockstep/kernels/math/math_bodies-inl.h"
#undef LOCKSTEP_LANE_FN

LOCKSTEP_HOST_DEVICE float tanh(float x) { return tanh<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double tanh(double x) { return tanh<ScalarLane<double>>(x); }
LOCKSTEP_HOST_DEVICE float sigmoid(float x) { return sigmoid<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double sigmoid(double x) { return sigmoid<ScalarLane<double>>(x); }

}  // namespace lockstep::math

// Elementary functions of plain float and double, with the bits of the SIMD and device versions: the same templates.
#pragma once

#include "lockstep/core/ieee_arithmetic.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/lane/scalar_lane.h"
#include "lockstep/kernels/math/format.h"
#include "lockstep/kernels/math/reduce_pi.h"

namespace lockstep::math {

#define LOCKSTEP_LANE_FN LOCKSTEP_HOST_DEVICE
#include "lockstep/kernels/math/math_bodies-inl.h"
#undef LOCKSTEP_LANE_FN

LOCKSTEP_HOST_DEVICE float exp(float x) { return exp<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double exp(double x) { return exp<ScalarLane<double>>(x); }
LOCKSTEP_HOST_DEVICE float expm1(float x) { return expm1<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double expm1(double x) { return expm1<ScalarLane<double>>(x); }
LOCKSTEP_HOST_DEVICE float exp2(float x) { return exp2<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double exp2(double x) { return exp2<ScalarLane<double>>(x); }
LOCKSTEP_HOST_DEVICE float log(float x) { return log<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double log(double x) { return log<ScalarLane<double>>(x); }
LOCKSTEP_HOST_DEVICE float log2(float x) { return log2<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double log2(double x) { return log2<ScalarLane<double>>(x); }
LOCKSTEP_HOST_DEVICE float tanh(float x) { return tanh<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double tanh(double x) { return tanh<ScalarLane<double>>(x); }
LOCKSTEP_HOST_DEVICE float sigmoid(float x) { return sigmoid<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double sigmoid(double x) { return sigmoid<ScalarLane<double>>(x); }
LOCKSTEP_HOST_DEVICE float softplus(float x) { return softplus<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double softplus(double x) { return softplus<ScalarLane<double>>(x); }
LOCKSTEP_HOST_DEVICE float erf(float x) { return erf<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double erf(double x) { return erf<ScalarLane<double>>(x); }
LOCKSTEP_HOST_DEVICE float sin(float x) { return sin<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double sin(double x) { return sin<ScalarLane<double>>(x); }
LOCKSTEP_HOST_DEVICE float cos(float x) { return cos<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double cos(double x) { return cos<ScalarLane<double>>(x); }
LOCKSTEP_HOST_DEVICE float atan(float x) { return atan<ScalarLane<float>>(x); }
LOCKSTEP_HOST_DEVICE double atan(double x) { return atan<ScalarLane<double>>(x); }
LOCKSTEP_HOST_DEVICE float pow(float x, float y) { return pow<ScalarLane<float>>(x, y); }
LOCKSTEP_HOST_DEVICE double pow(double x, double y) { return pow<ScalarLane<double>>(x, y); }
LOCKSTEP_HOST_DEVICE float modulo(float x, float y) { return modulo<ScalarLane<float>>(x, y); }
LOCKSTEP_HOST_DEVICE double modulo(double x, double y) { return modulo<ScalarLane<double>>(x, y); }

}  // namespace lockstep::math

// The step arithmetic of numerics-inl.h for plain numbers: the reference integrator's, and later a CUDA thread's.
#pragma once

#include "lockstep/kernels/math/math.h"

namespace lockstep::ode::scalar {

// The float32 lanes that stand beside lanes of float64.
template <class LD>
struct Float32Lane;
template <>
struct Float32Lane<ScalarLane<double>> {
  using L = ScalarLane<float>;
  static LOCKSTEP_HOST_DEVICE float down(double x) { return static_cast<float>(x); }
  static LOCKSTEP_HOST_DEVICE double up(float x) { return static_cast<double>(x); }
  static LOCKSTEP_HOST_DEVICE bool mask(bool m) { return m; }
};

using math::exp2;
using math::exp2_in_normal_range;
using math::log2;
using math::log2_of_normal;
#define LOCKSTEP_LANE_FN LOCKSTEP_HOST_DEVICE
#include "lockstep/ode/numerics-inl.h"
#undef LOCKSTEP_LANE_FN

}  // namespace lockstep::ode::scalar

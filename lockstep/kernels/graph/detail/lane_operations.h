// The operations of a graph on single numbers, for the host's scalar code and CUDA threads: the SIMD kernels' source.
#pragma once

#include "lockstep/kernels/graph/operation.h"
#include "lockstep/kernels/math/math.h"

namespace lockstep::math::on_numbers {

using graph::BinaryKind;
using graph::ReduceKind;
using graph::SoftmaxKind;
using graph::UnaryKind;

#define LOCKSTEP_LANE_FN LOCKSTEP_HOST_DEVICE
#include "lockstep/kernels/graph/detail/lane_operations-inl.h"
#undef LOCKSTEP_LANE_FN

}  // namespace lockstep::math::on_numbers

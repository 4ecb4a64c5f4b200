// What a core can do at most: the yardstick that the benchmarks hold kernels to.
#pragma once

#include "lockstep/core/precision.h"
#include "lockstep/kernels/cpu_target.h"

namespace lockstep::benchmarks {

// 10^9 operations a second (a fused multiply-add counts two) of one core in a loop that touches registers only, the
// best of some runs of together about five milliseconds.
double fma_peak(Precision precision, CpuTarget target);

}  // namespace lockstep::benchmarks

// Choosing one of the compiled instruction sets by name. Private to source files that include hwy/foreach_target.h;
// use inside `#if HWY_ONCE`, in the namespace that encloses HWY_NAMESPACE.
#pragma once

#include "lockstep/kernels/cpu_target.h"

// A pointer to HWY_NAMESPACE::function compiled for `target`.
#define LOCKSTEP_CHOOSE(target, function)                                              \
  ((target) == ::lockstep::CpuTarget::avx512 ? HWY_CHOOSE_AVX3(function)               \
   : (target) == ::lockstep::CpuTarget::avx2 ? HWY_CHOOSE_AVX2(function)               \
   : (target) == ::lockstep::CpuTarget::neon ? HWY_CHOOSE_NEON(function)               \
                                             : HWY_CHOOSE_FALLBACK(function))

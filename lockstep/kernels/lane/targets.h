// Which Highway targets are compiled. Include before any Highway header.
// Targets without fused multiply-add (SSE, EMU128) are left out: they could not give the same bits. The fallback is
// HWY_SCALAR, where lane operations call std::fma (see hwy_lane-inl.h).
#pragma once

#define HWY_BROKEN_EMU128 1
#ifdef LOCKSTEP_NO_AVX512  // a third less to compile; cpu_target.cpp knows of it
#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | HWY_NEON | HWY_SCALAR))
#else
#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | HWY_AVX3 | HWY_NEON | HWY_SCALAR))
#endif
#define HWY_COMPILE_ALL_ATTAINABLE

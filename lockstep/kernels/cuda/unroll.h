// Before a loop: in full, not at all, or by four; g++ 12 would warn of the pragma itself.
#pragma once

#ifdef __CUDACC__
#define LOCKSTEP_UNROLL _Pragma("unroll")
#define LOCKSTEP_ROLLED _Pragma("unroll 1")
#define LOCKSTEP_UNROLL_BY_4 _Pragma("unroll 4")
#else
#define LOCKSTEP_UNROLL
#define LOCKSTEP_ROLLED
#define LOCKSTEP_UNROLL_BY_4
#endif

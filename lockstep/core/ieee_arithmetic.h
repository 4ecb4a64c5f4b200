// Included first by headers whose code is compiled in a user's file and has to round as it is written: nothing may be
// contracted, reordered or left out there, whatever that file's flags.
#pragma once

// GCC's flags reach templates and inlined functions however they are marked.
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#error "Lockstep needs IEEE arithmetic: compile this file without -ffast-math, -Ofast or -funsafe-math-optimizations"
#endif
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "Lockstep needs IEEE arithmetic: compile this file without -ffinite-math-only"
#endif
// Clang tells of parts of -ffast-math by no macro, and decides where an expression is written: from here to the end of
// the file. (Clang 14 does not of a minus sign: ScalarLane::neg.)
#if defined(__clang__) && !defined(__CUDACC__)
#pragma float_control(precise, on)
#pragma clang fp contract(off)
#endif

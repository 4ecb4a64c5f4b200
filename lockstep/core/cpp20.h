// Included first by the headers that most programs meet first: what an older standard makes of them is pages of errors.
#pragma once

#if defined(__cplusplus) && __cplusplus <= 201703L
#error "Lockstep's headers are C++20: compile with -std=c++20, in CMake CMAKE_CXX_STANDARD or CMAKE_CUDA_STANDARD 20"
#endif

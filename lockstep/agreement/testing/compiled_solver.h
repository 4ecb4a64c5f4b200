// Somebody else's solver as different compilers' settings make it: one plain source, several instruction sets. What
// they compute differs in rounding alone, and the machine code has nothing in common with ours.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/agreement/ensemble.h"
#include "lockstep/ode/problem.h"

namespace lockstep::agreement::testing {

struct CompiledSolver {
  std::string name;  // "sse2", "x87", ...
  // RK4 with steps of dt on the Lorenz equations; save points are multiples of dt. [trajectory][time][component]
  Numbers (*solve_f64)(const ode::Problem& problem, double dt);
  Numbers (*solve_f32)(const ode::Problem& problem, double dt);
};

// Those that this processor runs. On x86: "sse2" (vectors of 2, no fused multiply-add), "avx2" (of 4, multiplications
// and additions fused where the compiler likes), "avx512" (of 8, and sums in any order: -ffast-math), "x87" (80-bit
// registers). Elsewhere "plain" and "fast".
const std::vector<CompiledSolver>& compiled_solvers();

}  // namespace lockstep::agreement::testing

#include "lockstep/agreement/testing/compiled_solver.h"

#include <cmath>

namespace lockstep::agreement::testing {
namespace {

using Body = void (*)(const double*, long, const double*, double, const long*, long, double*);

template <Body body, class T>
Numbers solve(const ode::Problem& problem, double dt) {
  Numbers numbers;
  numbers.precision = kPrecisionOf<T>;
  std::vector<long> save_steps;
  for (const double t : problem.save_times) save_steps.push_back(std::lround(t / dt));
  numbers.states.resize(problem.trajectories() * save_steps.size() * 3);
  body(problem.initial_states.data(), static_cast<long>(problem.trajectories()), problem.parameters.data(), dt,
       save_steps.data(), static_cast<long>(save_steps.size()), numbers.states.data());
  return numbers;
}

}  // namespace

#define LOCKSTEP_BODY(name)                                                                                    \
  extern "C" void compiled_f64_##name(const double*, long, const double*, double, const long*, long, double*); \
  extern "C" void compiled_f32_##name(const double*, long, const double*, double, const long*, long, double*);
#define LOCKSTEP_SOLVER(name) \
  CompiledSolver { #name, solve < compiled_f64_##name, double>, solve < compiled_f32_##name, float> }

#ifdef __x86_64__
LOCKSTEP_BODY(sse2)
LOCKSTEP_BODY(avx2)
LOCKSTEP_BODY(avx512)
#ifdef LOCKSTEP_COMPILED_X87
LOCKSTEP_BODY(x87)
#endif
#else
LOCKSTEP_BODY(plain)
LOCKSTEP_BODY(fast)
#endif

const std::vector<CompiledSolver>& compiled_solvers() {
  static const std::vector<CompiledSolver> solvers = [] {
#ifdef __x86_64__
    std::vector<CompiledSolver> here{LOCKSTEP_SOLVER(sse2)};
#ifdef LOCKSTEP_COMPILED_X87
    here.push_back(LOCKSTEP_SOLVER(x87));
#endif
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) here.push_back(LOCKSTEP_SOLVER(avx2));
    if (__builtin_cpu_supports("avx512f")) here.push_back(LOCKSTEP_SOLVER(avx512));
    return here;
#else
    return std::vector<CompiledSolver>{LOCKSTEP_SOLVER(plain), LOCKSTEP_SOLVER(fast)};
#endif
  }();
  return solvers;
}

}  // namespace lockstep::agreement::testing

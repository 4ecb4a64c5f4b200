#include <cstdio>

#include "lockstep/ode/function.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

int main() {
  lockstep::ode::Problem problem;
  problem.rhs = lockstep::ode::function<1, 0>("decay", [](auto, const auto& u, const auto&, auto& du) { du[0] = -u[0]; });
  problem.initial_states = {1};
  problem.end_times = {1};
  std::printf("%g\n", lockstep::ode::solve(problem).end_state(0, 0));
}

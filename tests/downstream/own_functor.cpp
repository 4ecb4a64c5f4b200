// A user's own right-hand side, du/dt = -p u from u(0) = 1, against its solution exp(-p t).
#include <cmath>
#include <cstdio>

#include "lockstep/core/error.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/solve.h"

int main() {
  using namespace lockstep;
  ode::Problem problem;
  problem.rhs = ode::function<1, 1>("decay", [](auto, const auto& u, const auto& p, auto& du) { du[0] = -p[0] * u[0]; });
  problem.initial_states = {1, 1, 1};
  problem.parameters = {0.5, 1, 2};
  problem.end_times = {1};
  problem.save_times = {1};
  ode::Options options;
  options.precision = Precision::f64;
  options.rtol = options.atol = 1e-9;
  const ode::Solution solution = ode::solve(problem, options);
  for (std::size_t i = 0; i < 3; ++i) {
    // The local error of each step is at most 1e-9 (1 + |u|) <= 2e-9, decay does not amplify it, and steps of an
    // order 5 method at that tolerance are longer than 1/100.
    const double error = std::abs(solution.state(i, 0, 0) - std::exp(-problem.parameters[i]));
    if (solution.record(i).status != ode::Status::success || !(error < 100 * 2e-9)) {
      std::printf("trajectory %zu: status %d, error %g\n", i, static_cast<int>(solution.record(i).status), error);
      return 1;
    }
  }
  try {
    options.rtol = -1;
    ode::solve(problem, options);
  } catch (const Error& error) {
    return error.field().find("rtol") != std::string::npos ? 0 : 1;
  }
  return 1;
}

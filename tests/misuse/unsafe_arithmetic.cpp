// By a compiler that was told to take arithmetic lightly, which no macro tells: what users' files have from our headers
// is as it is written.
#include <cmath>
#include <cstdio>

#include "lockstep/kernels/math/math.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/solve.h"

int main() {
  using namespace lockstep;
  ode::Problem problem;
  problem.rhs = ode::function<1>("cosine", [](auto t, const auto&, const auto&, auto& du) { du[0] = math::cos(t); });
  problem.initial_states = {0};
  problem.end_times = {2};
  ode::Options options;
  options.precision = Precision::f64;
  options.rtol = options.atol = 1e-10;
  const double sine = ode::solve(problem, options).end_state(0, 0);
  std::printf("%.12f\n", sine);
  return std::fabs(sine - 0.909297426826) < 1e-9 && std::fabs(math::cos(-60.0) + 0.952412980415) < 1e-9 ? 0 : 1;
}

// A Boost.Odeint program on Thrust vectors that takes its method and its equations from Lockstep: an ensemble of Lorenz
// systems with rho from 0 to 21, adaptive steps. See README.md for how it is compiled, with nvcc or without.
#include <boost/numeric/odeint/integrate/integrate_adaptive.hpp>
#include <cstdio>
#include <vector>

#include "lockstep/ode/odeint_thrust.h"

int main() {
  namespace ode = lockstep::ode;
  namespace odeint = boost::numeric::odeint;
  using State = thrust::device_vector<double>;
  constexpr std::size_t kTrajectories = 1000;

  std::vector<double> start(3 * kTrajectories, 0.0), parameters(3 * kTrajectories);
  for (std::size_t i = 0; i < kTrajectories; ++i) {
    start[i] = 1;                                                            // x
    parameters[i] = 10;                                                      // sigma
    parameters[kTrajectories + i] = 21.0 * double(i) / (kTrajectories - 1);  // rho
    parameters[2 * kTrajectories + i] = 8.0 / 3;                             // beta
  }
  State state(start.begin(), start.end());
  const State on_device(parameters.begin(), parameters.end());
  const ode::OdeintThrustSystem<ode::systems::Lorenz, double> lorenz(on_device, kTrajectories);

  const auto stepper = odeint::make_controlled<ode::OdeintThrustTsit5<State>>(1e-6, 1e-6);
  const auto steps = odeint::integrate_adaptive(stepper, lorenz, state, 0.0, 1.0, 1e-3);

  const std::size_t last = kTrajectories - 1;
  std::printf("%zu trajectories in %zu common steps; the last one ends at (%.6f, %.6f, %.6f)\n", kTrajectories,
              static_cast<std::size_t>(steps), double(state[last]), double(state[kTrajectories + last]),
              double(state[2 * kTrajectories + last]));
}

// Boost.Odeint on Thrust vectors, Thrust's device being the host: the numbers of odeint on the host's own vectors.
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#include "lockstep/ode/odeint_thrust.h"

#include <gtest/gtest.h>

#include <boost/numeric/odeint/integrate/integrate_adaptive.hpp>
#include <boost/numeric/odeint/integrate/integrate_n_steps.hpp>
#include <cmath>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode {
namespace {

namespace odeint = boost::numeric::odeint;
constexpr std::size_t kTrajectories = 37;

// rho from 0 to 21, from (1, 0, 0): [parameter][trajectory] and [component][trajectory].
template <class T>
struct Ensemble {
  std::vector<double> by_trajectory;  // [trajectory][parameter], as OdeintSystem takes them
  std::vector<T> parameters = std::vector<T>(3 * kTrajectories), state = std::vector<T>(3 * kTrajectories);
  Ensemble() {
    for (std::size_t i = 0; i < kTrajectories; ++i) {
      const double p[] = {10, static_cast<double>(static_cast<T>(21.0 * static_cast<double>(i) / (kTrajectories - 1))),
                          static_cast<double>(static_cast<T>(8.0 / 3))};
      for (std::size_t k = 0; k < 3; ++k) {
        by_trajectory.push_back(p[k]);
        parameters[k * kTrajectories + i] = static_cast<T>(p[k]);
      }
      state[i] = 1;
    }
  }
};

template <class T>
void expect_the_hosts_numbers() {
  const Ensemble<T> ensemble;
  const OdeintSystem<T> on_host(system("lorenz"), ensemble.by_trajectory, kTrajectories);
  const thrust::device_vector<T> parameters(ensemble.parameters.begin(), ensemble.parameters.end());
  const OdeintThrustSystem<systems::Lorenz, T> on_device(parameters, kTrajectories);

  using Host = OdeintTsit5<std::vector<T>, T>;
  using Device = OdeintThrustTsit5<thrust::device_vector<T>>;
  const T tolerance = static_cast<T>(1e-6);
  for (const bool adaptive : {false, true}) {
    std::vector<T> expected = ensemble.state;
    thrust::device_vector<T> state(ensemble.state.begin(), ensemble.state.end());
    if (adaptive) {
      const auto steps = odeint::integrate_adaptive(odeint::make_controlled<Host>(tolerance, tolerance), on_host,
                                                    expected, T(0), T(1), T(1e-3));
      EXPECT_EQ(odeint::integrate_adaptive(odeint::make_controlled<Device>(tolerance, tolerance), on_device, state,
                                           T(0), T(1), T(1e-3)),
                steps);
      EXPECT_GT(steps, 10u);
    } else {
      odeint::integrate_n_steps(Host(), on_host, expected, T(0), T(1) / 64, 64);
      odeint::integrate_n_steps(Device(), on_device, state, T(0), T(1) / 64, 64);
    }
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(expected[i], T(state[i])) << i;
  }
}

TEST(OdeintThrust, has_the_bits_of_odeint_on_the_hosts_vectors) {
  expect_the_hosts_numbers<double>();
  expect_the_hosts_numbers<float>();
}

TEST(OdeintThrust, a_nan_reaches_the_norm_wherever_it_stands) {
  for (const std::size_t place : {0u, 5u, 9u}) {
    thrust::device_vector<double> numbers(10, -2.0);
    EXPECT_EQ(ThrustAlgebra::norm_inf(numbers), 2);
    numbers[place] = std::nan("");
    EXPECT_TRUE(std::isnan(ThrustAlgebra::norm_inf(numbers)));
  }
}

TEST(OdeintThrust, sizes_that_do_not_fit_are_named) {
  const thrust::device_vector<double> parameters(6);
  EXPECT_THROW((OdeintThrustSystem<systems::Lorenz, double>(parameters, 3)), Error);
  const OdeintThrustSystem<systems::Lorenz, double> lorenz(parameters, 2);
  thrust::device_vector<double> state(7), derivative(7);
  EXPECT_THROW(lorenz(state, derivative, 0.0), Error);
}

}  // namespace
}  // namespace lockstep::ode

#include "lockstep/ode/standstill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

std::vector<Standstill> standstills_of(const Rhs& rhs, std::vector<double> states, double end, Options options) {
  Problem problem;
  problem.rhs = rhs;
  problem.initial_states = std::move(states);
  problem.end_times = {end};
  problem.save_times = {end};
  Solution solution(options.precision, problem.trajectories(), rhs->components(), problem.save_times, false);
  MemorySink sink(solution);
  EndSample ends(sink, problem, options.precision);
  solve(problem, options, ends);
  return ends.standstills(options);
}

// A temperature that rises slowly beside a component whose rate holds steps short.
Rhs slow_and_fast() {
  return function<2>("slow and fast", [](auto t, const auto& u, const auto&, auto& du) {
    du[0] = 0.002 + 0.0 * u[0];
    du[1] = -1000.0 * (u[1] - t);
  });
}

TEST(Standstill, finds_the_component_whose_steps_are_lost) {
  Options options;
  options.max_steps = 1000000;
  for (const StepControl control : {StepControl::per_trajectory, StepControl::fixed}) {
    options.control = control;
    if (control == StepControl::fixed) options.dt = 1e-3;
    const auto found = standstills_of(slow_and_fast(), {300, 0, 300, 2, 301, 0.5}, 20, options);
    ASSERT_EQ(found.size(), 1u) << static_cast<int>(control);
    EXPECT_EQ(found[0].component, 0u);
    EXPECT_NEAR(found[0].state, 300, 2);
    EXPECT_NEAR(found[0].lost, 0.04, 1e-6);
    EXPECT_EQ(found[0].spacing, std::ldexp(1.0, -15));
    EXPECT_LT(found[0].rate * found[0].step, found[0].spacing / 2);
  }
}

TEST(Standstill, finds_none_where_nothing_is_lost) {
  Options options;
  options.precision = Precision::f64;
  options.max_steps = 1000000;
  EXPECT_TRUE(standstills_of(slow_and_fast(), {300, 0}, 20, options).empty());
  options.precision = Precision::f32;
  EXPECT_TRUE(standstills_of(slow_and_fast(), {3, 0}, 20, options).empty());  // ten spacings a step
  const Rhs lorenz = function<3>("lorenz", [](auto t, const auto& u, const auto&, auto& du) {
    du[0] = 10.0 * (u[1] - u[0]) + 0.0 * t;
    du[1] = u[0] * (28.0 - u[2]) - u[1];
    du[2] = u[0] * u[1] - 8.0 / 3.0 * u[2];
  });
  EXPECT_TRUE(standstills_of(lorenz, {1, 0, 0}, 20, options).empty());
  // What comes to rest is no standstill: its rate was large once.
  const Rhs decay =
      function<1>("decay", [](auto t, const auto& u, const auto&, auto& du) { du[0] = 3.0 - 0.01 * u[0] + 0.0 * t; });
  options.max_step = 0.05;
  EXPECT_TRUE(standstills_of(decay, {1}, 3000, options).empty());
}

}  // namespace
}  // namespace lockstep::ode

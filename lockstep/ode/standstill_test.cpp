#include "lockstep/ode/standstill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "lockstep/ode/differentiable_function.h"
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
  EndSample ends(sink, problem, options);
  solve(problem, options, ends);
  return ends.standstills();
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

std::vector<SmallComponent> small_components_of(const Rhs& rhs, std::vector<double> states, std::vector<double> times,
                                                const Options& options) {
  Problem problem;
  problem.rhs = rhs;
  problem.initial_states = std::move(states);
  problem.end_times = {times.back()};
  problem.save_times = std::move(times);
  Solution solution(options.precision, problem.trajectories(), rhs->components(), problem.save_times, false);
  MemorySink sink(solution);
  EndSample ends(sink, problem, options);
  solve(problem, options, ends);
  return ends.small_components();
}

TEST(SmallComponents, are_those_that_their_tolerance_hides) {
  const Rhs decays = function<2>("decays", [](auto t, const auto& u, const auto&, auto& du) {
    du[0] = -1.0 * u[0] + 0.0 * t;
    du[1] = -1.0 * u[1];
  });
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    Options options;
    options.precision = precision;
    const auto found = small_components_of(decays, {1, 1e-9, 1, -2e-9}, {0, 2.5, 5}, options);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].component, 1u);
    EXPECT_NEAR(found[0].largest, 2e-9, 1e-15);
    EXPECT_EQ(found[0].atol, 1e-6);
    EXPECT_TRUE(small_components_of(decays, {1, 1e-9, 1, 2e-5}, {0, 2.5, 5}, options).empty());  // of one trajectory
    EXPECT_TRUE(small_components_of(decays, {1, 0, 1, 0}, {0, 2.5, 5}, options).empty());
    options.component_atol = {1e-6, 1e-15};
    EXPECT_TRUE(small_components_of(decays, {1, 1e-9}, {5}, options).empty());
    options.component_atol.clear();
    options.control = StepControl::fixed;
    options.dt = 0.1;
    EXPECT_TRUE(small_components_of(decays, {1, 1e-9}, {5}, options).empty());
  }
}

TEST(SmallComponents, are_none_that_were_large_between_what_was_saved) {
  const Rhs swing = function<2>("swing", [](auto t, const auto& u, const auto&, auto& du) {
    du[0] = u[1] + 0.0 * t;
    du[1] = -1.0 * u[0];
  });
  Options options;
  options.precision = Precision::f64;
  options.rtol = options.atol = 1e-8;
  EXPECT_TRUE(small_components_of(swing, {0, 1}, {3.141592653589793}, options).empty());
  // What grows is large where it is saved.
  const Rhs grows =
      function<1>("grows", [](auto t, const auto& u, const auto&, auto& du) { du[0] = 10.0 * u[0] + 0.0 * t; });
  EXPECT_TRUE(small_components_of(grows, {1e-9}, {2}, options).empty());
}

// u0 decays beside a component that stays; a linearly implicit method's steps are then much longer than the decay.
TEST(FadedComponents, are_those_that_float32_cannot_tell_from_zero) {
  Problem problem;
  problem.rhs = differentiable_function<2>("fades", [](auto, const auto& u, const auto&, auto& du) {
    du[0] = -1 * u[0];
    du[1] = 0 * u[1];
  });
  problem.initial_states = {1, 1};
  const auto faded = [&](double end, const char* method, Precision precision, double atol) {
    problem.end_times = problem.save_times = {end};
    Options options{.method = method, .precision = precision};
    options.atol = atol;
    Solution solution(precision, 1, 2, problem.save_times, false);
    MemorySink sink(solution);
    EndSample ends(sink, problem, options);
    solve(problem, options, ends);
    return ends.faded_components();
  };
  const auto found = faded(16, "rodas5p", Precision::f32, 1e-6);  // exp(-16) is 1.1e-7
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].component, 0u);
  EXPECT_LT(found[0].end, 1e-6);
  EXPECT_TRUE(faded(10, "rodas5p", Precision::f32, 1e-6).empty());
  EXPECT_TRUE(faded(16, "rodas5p", Precision::f32, 1e-10).empty());
  EXPECT_TRUE(faded(16, "rodas5p", Precision::f64, 1e-6).empty());
  EXPECT_TRUE(faded(16, "tsit5", Precision::f32, 1e-6).empty());
}

}  // namespace
}  // namespace lockstep::ode

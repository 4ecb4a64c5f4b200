// Options and problems that cannot be solved are refused by the name of what is wrong.
#include "lockstep/ode/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

using ::testing::HasSubstr;

// Three trajectories with parameters, ends and save points of their own.
Problem three_lorenz() {
  Problem problem;
  problem.rhs = system("lorenz");
  problem.initial_states = {1, 0, 0, 1.1, 0, 0, 1.2, 0, 0};
  problem.parameters = {10, 28, 2.5, 10, 28, 2.5, 10, 28, 2.5};
  problem.end_times = {1, 1, 1};
  problem.save_times = {0, 0.5, 1, 0, 0.5, 1, 0, 0.5, 1};
  problem.save_times_per_trajectory = true;
  return problem;
}

TEST(Options, unusable_values_are_named) {
  const auto message = [](const Options& options) -> std::string { return message_of([&] { options.validate(); }); };
  EXPECT_THAT(message({.rtol = -1}), HasSubstr("options.rtol: found -1"));
  EXPECT_THAT(message({.rtol = std::nan("")}), HasSubstr("options.rtol"));
  EXPECT_THAT(message({.rtol = 1}), HasSubstr("options.rtol: found 1, expected a relative tolerance below 1"));
  EXPECT_EQ(message_of([] { Options{.rtol = 0.5, .atol = 1e3}.validate(); }), message({}));  // in the state's units
  EXPECT_THAT(message({.atol = 0}), HasSubstr("options.atol"));
  EXPECT_THAT(message({.method = "tsit"}), HasSubstr("tsit5"));
  EXPECT_THAT(message({.control = StepControl::fixed}), HasSubstr("options.dt"));
  EXPECT_THAT(message({.control = StepControl::fixed, .dt = -0.1}), HasSubstr("options.dt"));
  EXPECT_THAT(message({.method = "rk4"}), HasSubstr("fixed"));
  EXPECT_THAT(message({.rtol = 1e-12}), HasSubstr("f64"));
  EXPECT_THAT(message({.component_atol = {1e-6, 0, 1e-6}}), HasSubstr("options.atol[1]: found 0"));
  EXPECT_THAT(message({.atol = 1e-46}), HasSubstr("options.atol: found 1e-46, expected at least 1e-45 with f32"));
  EXPECT_THAT(message({.component_atol = {1e-6, 1e-300}}), HasSubstr("options.atol[1]: found 1e-300"));
  EXPECT_EQ(message({.atol = 1e-45}), message({}));
  EXPECT_EQ(message({.atol = 1e-300, .precision = Precision::f64}), message({}));
}

TEST(Options, as_many_tolerances_as_components) {
  try {
    solve(three_lorenz(), {.component_atol = {1e-6, 1e-6}});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("options.atol: found 2 numbers, expected one for all components or "
                                        "one for each of 3"));
  }
}

TEST(Problem, has_the_trajectories_it_is_asked_for_alone) {
  Problem problem;
  problem.rhs = system("harmonic_oscillator");
  problem.initial_states = {1, 0, 2, 0};
  problem.parameters = {1};
  problem.end_times = problem.save_times = {1};
  EXPECT_EQ(problem.selection({1, 1}).initial_states, (std::vector<double>{2, 0, 2, 0}));
  EXPECT_EQ(message_of(
                [&] {
                  problem.selection({0, 2});
                },
                ErrorKind::invalid_argument),
            "problem.selection[1]: found trajectory 2, expected trajectories below 2");
  EXPECT_EQ(message_of([&] { problem.part(1, 2); }, ErrorKind::invalid_argument),
            "problem.part: found trajectories 1 to 3, the last excluded, expected trajectories below 2");
  Problem none;
  Options fixed;
  fixed.control = StepControl::fixed;
  EXPECT_FALSE(passed_jump(none, fixed, 3).has_value());
  EXPECT_FALSE(knots_differ(none, {}));
}

TEST(Problem, unusable_values_are_named) {
  const auto message = [](auto change) -> std::string {
    Problem problem = three_lorenz();
    change(problem);
    return message_of([&] { problem.validate(); });
  };
  EXPECT_EQ(message([](Problem&) {}), "no error");
  EXPECT_THAT(message([](Problem& p) { p.initial_states.pop_back(); }),
              HasSubstr("problem.initial_states: found 8 numbers"));
  EXPECT_THAT(message([](Problem& p) { p.initial_states[4] = NAN; }), HasSubstr("row 1, column 1"));
  EXPECT_THAT(message([](Problem& p) { p.parameters.pop_back(); }), HasSubstr("problem.parameters"));
  EXPECT_THAT(message([](Problem& p) { p.save_times[4] += 1; }), HasSubstr("within"));
  EXPECT_THAT(message([](Problem& p) { p.save_times[1] = p.save_times[2]; }), HasSubstr("ascending"));
  EXPECT_THAT(message([](Problem& p) { p.end_times.pop_back(); }), HasSubstr("problem.end_times"));
}

}  // namespace
}  // namespace lockstep::ode

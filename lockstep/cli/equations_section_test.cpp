// Equations of a problem file, from their text to a solution.
#include "lockstep/cli/equations_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/cli/step_limit.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::cli {
namespace {

constexpr const char* kRest = R"(
[ensemble]
trajectories = 45
initial_state = { normal = { mean = [1, 1, 25], std = 5 } }
[time]
span = [0, 2]
save = 5
[method]
precision = "f64"
)";

constexpr const char* kLorenz = R"toml(
[rhs]
parameters = { sigma = 10, rho = 28, beta = "8/3" }
[rhs.equations]
x = "sigma * (y - x)"
y = "x * (rho - z) - y"
z = "x*y - beta*z"
)toml";

ProblemSetup set_up_text(const std::string& text) { return set_up(parse_problem_file(text, "folder/problem.toml")); }

std::vector<double> states_of(const ProblemSetup& setup) {
  const ode::Solution solution = ode::solve(setup.problem, setup.options);
  std::vector<double> states;
  for (std::size_t i = 0; i < solution.trajectories(); ++i) {
    for (std::size_t k = 0; k < setup.problem.save_points(); ++k) {
      for (std::size_t c = 0; c < 3; ++c) states.push_back(solution.state(i, k, c));
    }
  }
  return states;
}

std::string message(const std::string& text) {
  try {
    parse_problem_file(text + kRest, "folder/problem.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(EquationsSection, components_and_parameters_keep_the_order_of_the_file) {
  const ProblemSetup setup =
      set_up_text("[rhs]\nparameters = { zeta = 1, alpha = 2 }\n" +
                  std::string("equations = { z = \"y*zeta\", y = \"a\", a = \"alpha\" }") + kRest);
  EXPECT_EQ(setup.component_names, (std::vector<std::string>{"z", "y", "a"}));
  EXPECT_EQ(setup.parameter_names, (std::vector<std::string>{"zeta", "alpha"}));
  EXPECT_EQ(setup.problem.parameters, (std::vector<double>{1, 2}));
}

TEST(EquationsSection, have_the_bits_of_the_same_operations_in_cpp) {
  ProblemSetup setup = set_up_text(std::string(kLorenz) + kRest);
  ProblemSetup function = setup;
  function.problem.rhs = ode::function<3, 3>("lorenz", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = p[0] * (u[1] - u[0]);
    du[1] = u[0] * (p[1] - u[2]) - u[1];
    du[2] = u[0] * u[1] - p[2] * u[2];
  });
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    setup.options.precision = function.options.precision = precision;
    const std::vector<double> expected = states_of(function);
    for (const CpuTarget target : available_cpu_targets()) {
      for (const int threads : {1, 2}) {
        setup.options.cpu_target = target;
        setup.options.threads = threads;
        EXPECT_EQ(states_of(setup), expected) << to_string(target);
      }
    }
  }
}

// The built-in system fuses a product and a sum where the text does not. States of up to 50 differ by 4e-15 a step
// from that, 200 steps by 1e-12, and the flow stretches differences by about e^(0.9 * 2), at worst places by ten.
TEST(EquationsSection, agree_with_the_built_in_system_to_rounding) {
  ProblemSetup setup = set_up_text(std::string(kLorenz) + kRest);
  setup.options.control = ode::StepControl::fixed;
  setup.options.dt = 0.01;
  const std::vector<double> written = states_of(setup);
  setup.problem.rhs = ode::system("lorenz");
  const std::vector<double> built_in = states_of(setup);
  for (std::size_t i = 0; i < written.size(); ++i) EXPECT_NEAR(written[i], built_in[i], 1e-11);
  EXPECT_NE(written, built_in);
}

TEST(EquationsSection, are_refused_beside_other_right_hand_sides) {
  EXPECT_NE(message("[rhs]\nsystem = \"lorenz\"\n[rhs.equations]\nx = \"1\"\n").find("beside equations"),
            std::string::npos);
  EXPECT_NE(message("[rhs]\nmodel = \"net.h5\"\n[rhs.equations]\nx = \"1\"\n").find("name it in models"),
            std::string::npos);
  EXPECT_NE(message("[rhs]\nsystem = \"lorenz\"\nmodels = {}\n").find("models without equations"), std::string::npos);
  EXPECT_NE(message("[rhs]\n[rhs.equations]\n").find("no equations"), std::string::npos);
  EXPECT_NE(message("[rhs]\nequations = { x = true }\n").find("an expression in quotes"), std::string::npos);
  EXPECT_NE(
      message("[rhs]\nparameters = { a = \"b\" }\nequations = { x = \"1\" }\n").find("rhs.parameters.a, column 1"),
      std::string::npos);
}

// A dose of a quarter of an hour after eight hours in which nothing happens, and steps grow without limit.
TEST(EquationsSection, steps_do_not_pass_over_what_a_table_does) {
  const std::string file =
      "[rhs]\n[rhs.tables]\ndose = { at = [0, 8, 8.25, 24], values = [0, 4, 0, 0], interpolation = \"previous\" }\n"
      "[rhs.equations]\nblood = \"dose(t) + 0 * blood\"\n[ensemble]\ninitial_state = [0]\n[time]\nspan = [0, 24]\n"
      "[method]\nprecision = \"f64\"\n";
  const auto at_end = [](const ProblemSetup& setup) { return ode::solve(setup.problem, setup.options).state(0, 0, 0); };
  ProblemSetup setup = set_up_text(file);
  EXPECT_EQ(text_of_stops(setup.problem, setup.options),
            "steps end at 2 times at which the right-hand side jumps or bends; stop_at_knots = false passes over those "
            "that it tells");
  EXPECT_NEAR(at_end(setup), 1, 1e-15);  // each step is exact
  EXPECT_EQ(set_up_text(file + "stops = 9\n").options.stops, std::vector<double>{9});

  const std::string blind = file + "stop_at_knots = false\n";
  setup = set_up_text(blind);
  EXPECT_EQ(setup.options.max_step, 0.25);
  EXPECT_EQ(setup.step_limit,
            "steps are no longer than 0.25, the shortest that dose comes and goes in; max_step replaces it");
  EXPECT_NEAR(at_end(setup), 1, 1e-3);  // 126 steps, each within 1e-6 (1 + 1)
  const ProblemSetup given = set_up_text(blind + "max_step = 5\n");
  EXPECT_EQ(given.options.max_step, 5);
  ASSERT_EQ(given.notes.size(), 1u);
  EXPECT_EQ(given.notes[0], "steps of 5 may pass over what dose does within 0.25: take max_step = 0.25 or less");
  EXPECT_EQ(set_up_text(file + "dt = 0.5\n").notes[0],
            "steps of 0.5 may pass over what dose does within 0.25: take dt = 0.25 or less");
  setup.options.max_step.reset();
  EXPECT_EQ(at_end(setup), 0);  // what happens without
}

// Two hours of a dose every day for ten days, and the exact end of x' = 3 on - k x.
TEST(EquationsSection, doses_of_every_day_are_met) {
  const std::string file =
      "[rhs]\nparameters = { k = 0.1 }\n[rhs.definitions]\nhour = \"t % 24\"\n[rhs.equations]\n"
      "x = \"if(hour < 2, 3, 0) - k * x\"\n[ensemble]\ninitial_state = [0]\n[time]\nspan = [0, 240]\n"
      "[method]\nprecision = \"f64\"\n";
  const std::string tight = "rtol = 1e-8\natol = 1e-8\n", by_rk4 = "name = \"rk4\"\n";
  double expected = 0;
  for (int day = 0; day < 10; ++day) expected = (30 + (expected - 30) * std::exp(-0.2)) * std::exp(-2.2);
  ProblemSetup setup = set_up_text(file + tight);
  EXPECT_THAT(setup.notes, ::testing::IsEmpty());
  EXPECT_THAT(text_of_stops(setup.problem, setup.options), ::testing::StartsWith("steps end at 19 times at which"));
  const ode::Solution solution = ode::solve(setup.problem, setup.options);
  EXPECT_NEAR(solution.end_state(0, 0), expected, 2e-8);
  EXPECT_LE(solution.record(0).accepted, 330);  // 16 a piece of 2 or 22 hours
  EXPECT_LE(solution.record(0).rejected, 10);   // the first steps of doses
  setup = set_up_text(file + by_rk4 + "dt = 0.5\n");
  EXPECT_THAT(setup.notes, ::testing::IsEmpty());
  // A step errs by (k dt)^5 / 120 of up to 6, of which some 20 count.
  EXPECT_NEAR(ode::solve(setup.problem, setup.options).end_state(0, 0), expected, 1e-6);
  EXPECT_THAT(
      set_up_text(file + by_rk4 + "dt = 0.7\n").notes,
      ::testing::ElementsAre(::testing::StartsWith("the right-hand side jumps at 2, within a fixed step of 0.7")));
  std::string hidden = file;
  hidden.replace(hidden.find("t % 24"), 6, "(t * t) % 24");
  EXPECT_THAT(set_up_text(hidden).notes,
              ::testing::ElementsAre(::testing::HasSubstr("a function of the time other than")));
}

// Of the equations of x, and of a component c that nothing or `moving` moves.
std::vector<std::string> notes_of(const std::string& x, const std::string& moving = "0",
                                  const std::string& method = "") {
  return set_up_text(
             "[rhs]\nparameters = { p = 1, T = 24 }\n[rhs.tables]\nrain = { at = [0, 1, 2], values = [0, 5, 0] }\n" +
             std::string("[rhs.equations]\nx = \"") + x + " + 0 * (p + T + rain(t))\"\nc = \"" + moving +
             "\"\n[ensemble]\ninitial_state = [0, 3]\n[time]\nspan = [0, 2]\n[method]\n" + method)
      .notes;
}

TEST(EquationsSection, times_that_components_tell_are_told_not_to_be_known) {
  const auto told = ::testing::ElementsAre(::testing::AllOf(
      ::testing::HasSubstr("compares the time with a component, as in if(t < c, ...)"),
      ::testing::HasSubstr(
          "make c a parameter where nothing changes it, else give max_step, less than it lasts, or stops")));
  for (const char* x : {"if(t < c, 1, 0) - x", "if(t % T < c * T, 1, 0) - 0.1 * x", "floor(t - c) - x", "(t - c) % T",
                        "if(sin(t) > c, 1, 0)", "if(t > c and t < c + p, 1, 0)"}) {
    EXPECT_THAT(notes_of(x), told) << x;
    EXPECT_THAT(notes_of(x, "0", "max_step = 0.1\n"), ::testing::IsEmpty()) << x;
    EXPECT_THAT(notes_of(x, "0", "stops = [1]\n"), ::testing::IsEmpty()) << x;
    EXPECT_THAT(notes_of(x, "0", "name = \"rk4\"\ndt = 0.5\n"),
                ::testing::ElementsAre(::testing::HasSubstr("steps of 0.5 may pass over what that switches")))
        << x;
  }
  EXPECT_THAT(notes_of("rain(t - c)"), ::testing::Contains(::testing::HasSubstr("compares the time with a component")));
  for (const char* x : {"if(t < c, 1, 0) - x", "if(t % T < c * T, 1, 0) - 0.1 * x"}) {
    EXPECT_THAT(notes_of(x, "1 - c"), told) << x;
  }
}

TEST(EquationsSection, what_states_switch_without_the_time_or_without_a_jump_gets_no_note) {
  for (const char* x : {"if(c < 1, 1, 0) - x", "if(t < c, 0, t - c)", "max(t - c, 0)", "c * if(t < p, 1, 0)",
                        "if(x < 1 + if(t % T < p, 1, 0), 1, 0)", "if(t < p, c, x)", "if(t % T < p * T, 1, 0) * c"}) {
    EXPECT_THAT(notes_of(x), ::testing::IsEmpty()) << x;
  }
  // The state comes to a threshold that wanders: its error shows.
  EXPECT_THAT(notes_of("if(c < 1 + 0.5 * sin(t), 1, 0)", "x - c"), ::testing::IsEmpty());
  EXPECT_THAT(notes_of("if(c * t < 1, 1, 0)", "x - c"), ::testing::IsEmpty());
}

TEST(EquationsSection, end_trajectories_where_an_expression_changes_its_sign) {
  const std::string spring =
      "[rhs]\nparameters = { k = 1 }\ndefinitions = { energy = \"x^2 + v^2\" }\n"
      "equations = { x = \"v\", v = \"-k*x\" }\n[ensemble]\ninitial_state = [1, 0]\n"
      "[time]\nspan = [0, 5]\n[method]\nprecision = \"f64\"\nrtol = 1e-9\natol = 1e-9\n";
  // x = cos(t), v = -sin(t).
  for (const auto& [function, end] : std::vector<std::pair<std::string, double>>{{"x + v", std::atan(1.0)},
                                                                                 {"t - 2.5 * energy", 2.5},
                                                                                 {"k * x - 0.5", std::acos(0.5)},
                                                                                 {"atan2(-v, x) - 2.5", 2.5},
                                                                                 {"acos(x) - 1", 1}}) {
    const ProblemSetup setup = set_up_text(spring + "[event]\nfunction = \"" + function + "\"\n");
    const ode::Solution solution = ode::solve(setup.problem, setup.options);
    EXPECT_EQ(solution.record(0).status, ode::Status::terminated) << function;
    EXPECT_NEAR(solution.record(0).end_time, end, 1e-7) << function;
  }
  const ProblemSetup setup = set_up_text(spring + "[event]\nfunction = \"x + 0.5\"\ndirection = \"rising\"\n");
  EXPECT_NEAR(ode::solve(setup.problem, setup.options).record(0).end_time, 2 * std::acos(-1.0) - std::acos(-0.5), 1e-7);
  EXPECT_NE(
      message("[rhs]\nequations = { x = \"1\" }\n[event]\nfunction = \"x\"\nvalue = 1\n").find("beside a function"),
      std::string::npos);
}

TEST(EquationsSection, errors_name_file_line_key_and_column) {
  try {
    set_up_text("[rhs]\n[rhs.equations]\nx = \"y\"\nyes = \"x - sin(yess)\"\n" + std::string(kRest));
    ADD_FAILURE();
  } catch (const nn::ExpressionError& error) {
    EXPECT_EQ(error.field(), "folder/problem.toml:3: rhs.equations.x, column 1");
    EXPECT_EQ(error.excerpt(), "y\n^");
  }
}

TEST(EquationsSection, parameters_and_definitions_that_nothing_reads_are_noted) {
  const auto notes = [](const std::string& parameters, const std::string& rest, const std::string& more = "") {
    return set_up_text("[rhs]\nparameters = " + parameters + "\n" + rest +
                       "[rhs.equations]\nx = \"-k * x\"\n[ensemble]\ninitial_state = [1]\n[time]\nspan = [0, 1]\n" +
                       more)
        .notes;
  };
  EXPECT_THAT(notes("{ k = 1 }", ""), ::testing::IsEmpty());
  EXPECT_THAT(notes("{ k = 1, kk = 2 }", ""),
              ::testing::ElementsAre("kk is read by nothing: no equation, definition, event or reset names it"));
  EXPECT_THAT(notes("{ k = 1, a = 2 }", "definitions = { w = \"a + 2e1\", e1 = 3 }\n"),
              ::testing::ElementsAre("w, e1 are read by nothing: no equation, definition, event or reset names them"));
  const std::string at = "[event]\nfunction = \"x - a\"\n";
  EXPECT_THAT(notes("{ k = 1, a = 2 }", "", at), ::testing::IsEmpty());
  const std::string when = "[[resets]]\nfunction = \"x - a\"\n", to = "to = { x = \"x + b\" }\n";
  EXPECT_THAT(notes("{ k = 1, a = 2, b = 3 }", "", when + to), ::testing::IsEmpty());
  EXPECT_THAT(notes("{ k = 1, a = 2, b = 3 }", "", when + "to = { x = 2 }\n"),
              ::testing::ElementsAre(::testing::HasSubstr("b is read by nothing")));
}

TEST(EquationsSection, a_parameter_of_an_equations_name_is_found_in_its_line) {
  const std::string equations = "[rhs.equations]\nx = \"-x\"\n";
  EXPECT_EQ(message("[rhs]\nparameters = { k = 1, x = 2 }\n" + equations),
            "folder/problem.toml:2: rhs.parameters.x: found the name \"x\" a second time, expected names that differ; "
            "choose another name");
  EXPECT_THAT(message("[rhs]\nparameters = [\"x\"]\n" + equations),
              ::testing::HasSubstr("folder/problem.toml:2: rhs.parameters: found the name \"x\" a second time"));
}

TEST(EquationsSection, notes_where_float32_is_too_coarse_for_the_time_that_they_read) {
  const auto notes = [](const std::string& v, const std::string& span, const std::string& more = "") {
    return set_up_text("[rhs.equations]\nx = \"v\"\nv = \"" + v + "\"\n[ensemble]\ninitial_state = [1, 0]\n" +
                       "[time]\nspan = " + span + "\nsave = 21\n" + more)
        .notes;
  };
  EXPECT_THAT(notes("-x + sin(t)", "[10000, 10020]"),
              ::testing::ElementsAre(::testing::HasSubstr("reads the time in float32, whose spacing is 0.00098 at t = "
                                                          "10020, for a span of 20: take precision f64")));
  EXPECT_THAT(notes("-x + sin(t)", "[-10000, -9980]"), ::testing::SizeIs(1));
  EXPECT_THAT(notes("-x + sin(t)", "[0, 10000]"), ::testing::IsEmpty());
  EXPECT_THAT(notes("-x", "[10000, 10020]"), ::testing::IsEmpty());
  EXPECT_THAT(notes("-x + sin(t)", "[10000, 10020]", "[method]\nprecision = \"f64\"\n"), ::testing::IsEmpty());
  // So do what ends a trajectory and what resets it.
  for (const auto& [more, reader] :
       {std::pair{"[event]\nfunction = \"t - 10005.2\"\n", "the event reads the time"},
        {"[[resets]]\nfunction = \"t - 10005.2\"\nto = { v = \"0\" }\n", "a reset reads"},
        {"[[resets]]\ncomponent = \"x\"\nto = { v = \"t\" }\n", "a reset reads the time"}}) {
    EXPECT_THAT(notes("-x", "[10000, 10020]", more), ::testing::ElementsAre(::testing::StartsWith(reader)));
    EXPECT_THAT(notes("-x", "[0, 20]", more), ::testing::IsEmpty());
    EXPECT_THAT(notes("-x", "[10000, 10020]", std::string(more) + "[method]\nprecision = \"f64\"\n"),
                ::testing::IsEmpty());
  }
  EXPECT_THAT(notes("-x", "[10000, 10020]", "[event]\nfunction = \"x\"\n"), ::testing::IsEmpty());
  const auto drive = set_up_text("[rhs]\nsystem = \"duffing\"\n[time]\nspan = [1e6, 1000100]\n");
  EXPECT_THAT(drive.notes, ::testing::SizeIs(1));
}

}  // namespace
}  // namespace lockstep::cli

// Functions given as numbers, from a problem file's text to a solution.
#include "lockstep/cli/function_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/cli/right_hand_side.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/table_model.h"
#include "lockstep/ode/solve.h"

namespace lockstep::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A basin, of which rain and the conductivity of its bed are tables.
constexpr const char* kBasin = R"toml(
[rhs]
parameters = { a = 0.1 }
[rhs.tables]
rain = { at = [0, 1, 2.5, 3, 6, 6.5, 10], values = [0, 2, 1, 4, 0, 3, 1], interpolation = "KIND" }
k = { at = [0, 1, 2, 4, 8], values = { low = [1, 1.5, 1.2, 0.7, 0.5], high = [2, 2, 2, 3, 1] } }
[rhs.equations]
x = "rain(t) - a * k(x).low * x"
[ensemble]
trajectories = 37
initial_state = { linspace = { low = 0, high = 5 } }
[time]
span = [0, 9]
save = 10
[method]
max_step = 0.5
)toml";

std::string with(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

ProblemSetup set_up_in(const std::string& text, const std::filesystem::path& folder = "folder") {
  return set_up(parse_problem_file(text, folder / "problem.toml"));
}

std::vector<double> solved(const ode::Problem& problem, const ode::Options& options) {
  const ode::Solution solution = ode::solve(problem, options);
  std::vector<double> states;
  for (std::size_t i = 0; i < solution.trajectories(); ++i) {
    EXPECT_EQ(solution.record(i).status, ode::Status::success);
    for (std::size_t k = 0; k < problem.save_points(); ++k) states.push_back(solution.state(i, k, 0));
  }
  return states;
}

// x = the integral of rain, by [rhs.tables] rain = { `table` }.
std::vector<double> integral(const std::string& table, const std::string& span = "[0, 4]", const std::string& rest = "",
                             const std::filesystem::path& folder = "folder") {
  const ProblemSetup setup = set_up_in(
      "[rhs]\ntables = { rain = { " + table +
          " } }\nequations = { x = \"rain(t)\" }\n[ensemble]\ninitial_state = [0]\n"
          "[time]\nspan = " +
          span + "\nsave = 5\n[method]\nprecision = \"f64\"\nrtol = 1e-10\natol = 1e-10\n" + "max_step = 0.25\n" + rest,
      folder);
  return solved(setup.problem, setup.options);
}

std::string message(const std::string& tables, const std::string& x = "rain(t)",
                    const std::filesystem::path& folder = "folder") {
  try {
    set_up_in("[rhs]\nparameters = { a = 1 }\ntables = { " + tables + " }\nequations = { x = \"" + x +
                  "\" }\n[ensemble]\ninitial_state = [0]\n[time]\nspan = [0, 4]\n",
              folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class FunctionTables : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(::testing::TempDir()) /
        (std::string("lockstep_function_tables_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  std::filesystem::path folder_;
};

// A step with a jump in it errs by some hundred times its estimate, which is 1e-10 at most of states of up to 13.
TEST_F(FunctionTables, are_read_between_their_knots_and_kept_beyond_them) {
  const auto near = [](const std::vector<double>& expected) {
    return ::testing::Pointwise(::testing::DoubleNear(1e-7), expected);
  };
  EXPECT_THAT(integral("at = [0, 1, 2, 4], values = [0, 2, 1, 5]"), near({0, 1, 2.5, 4.5, 8.5}));
  EXPECT_THAT(integral("at = [1, 2], values = [2, 4]"), near({0, 2, 5, 9, 13}));
  EXPECT_THAT(integral("at = [0, 1, 3], values = [3, 1, 2], interpolation = \"previous\""), near({0, 3, 4, 5, 7}));
  EXPECT_THAT(integral("at = [7], values = [2]"), near({0, 2, 4, 6, 8}));
  EXPECT_THAT(integral("at = [0, 1, 2, 4], values = [0, 2, 1, 5]", "[4, 0]"), near({0, -4, -6, -7.5, -8.5}));
}

TEST_F(FunctionTables, give_the_same_bits_on_every_instruction_set_by_threads_and_parts) {
  for (const char* kind : {"linear", "previous", "pchip", "spline"}) {
    ProblemSetup setup = set_up_in(with(kBasin, "KIND", kind));
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      setup.options.precision = precision;
      setup.options.cpu_target = CpuTarget::scalar;
      setup.options.threads = 1;
      const std::vector<double> expected = solved(setup.problem, setup.options);
      for (const CpuTarget target : available_cpu_targets()) {
        for (const int threads : {1, 2, 3}) {
          setup.options.cpu_target = target;
          setup.options.threads = threads;
          EXPECT_EQ(solved(setup.problem, setup.options), expected) << kind << ' ' << to_string(target);
        }
      }
      std::vector<double> parts;
      for (const auto& [first, count] : {std::pair<std::ptrdiff_t, std::ptrdiff_t>{0, 1}, {1, 15}, {16, 21}}) {
        ode::Problem part = setup.problem;
        const auto states = setup.problem.initial_states.begin(), parameters = setup.problem.parameters.begin();
        part.initial_states.assign(states + first, states + first + count);
        if (setup.problem.parameters.size() == 37)
          part.parameters.assign(parameters + first, parameters + first + count);
        const std::vector<double> some = solved(part, setup.options);
        parts.insert(parts.end(), some.begin(), some.end());
      }
      EXPECT_EQ(parts, expected) << kind;
    }
  }
}

TEST_F(FunctionTables, are_columns_of_a_csv) {
  write("weather.csv", "hour,rain,heat\n0,0,5\n1,2,6\n2,1,7\n4,5,8\n");
  const std::vector<double> rain = integral("at = [0, 1, 2, 4], values = [0, 2, 1, 5]");
  EXPECT_EQ(integral("file = \"weather.csv\", columns = \"rain\"", "[0, 4]", "", folder_), rain);
  EXPECT_EQ(integral("file = \"weather.csv\", at = \"hour\", columns = [\"rain\"]", "[0, 4]", "", folder_), rain);
  EXPECT_THAT(message("rain = { file = \"weather.csv\" }", "rain(t)", folder_), HasSubstr("which has 2 outputs"));
  EXPECT_EQ(message("rain = { file = \"weather.csv\" }", "rain(t).heat - rain(t)[0]", folder_), "no error");
}

TEST_F(FunctionTables, are_datasets_of_an_hdf5_file) {
  {
    hdf5::File file = hdf5::File::create(folder_ / "weather.h5");
    file.create_dataset<double>("hour", {4}).write<double>(std::vector<double>{0, 1, 2, 4});
    file.create_dataset<double>("rain", {4}).write<double>(std::vector<double>{0, 2, 1, 5});
    file.create_dataset<double>("both", {4, 2}).write<double>(std::vector<double>{0, 5, 2, 6, 1, 7, 5, 8});
    file.create_dataset<double>("short", {3}).write<double>(std::vector<double>{0, 2, 1});
    file.publish();
  }
  const std::string given = "file = \"weather.h5\", at = \"hour\", columns = ";
  EXPECT_EQ(integral(given + "\"rain\"", "[0, 4]", "", folder_), integral("at = [0, 1, 2, 4], values = [0, 2, 1, 5]"));
  const auto refused = [&](const std::string& table, const std::string& x = "rain(t)") {
    return message("rain = { " + table + " }", x, folder_);
  };
  EXPECT_EQ(refused(given + "[\"rain\", \"both\"]", "rain(t).rain + rain(t)[2]"), "no error");
  EXPECT_THAT(refused(given + "\"short\""),
              HasSubstr("rhs.tables.rain.columns: found 3 rows of values, expected 4, one for each number in hour"));
  EXPECT_THAT(refused("file = \"weather.h5\", at = \"both\", columns = \"rain\""),
              HasSubstr("rhs.tables.rain.at: found 2 columns in both, expected one"));
  EXPECT_THAT(refused("file = \"weather.h5\""), HasSubstr("without the names of its datasets"));
}

TEST_F(FunctionTables, have_the_names_that_an_hdf5_file_gives_columns) {
  {
    hdf5::File file = hdf5::File::create(folder_ / "light.h5");
    file.create_dataset<double>("hour", {3}).write<double>(std::vector<double>{0, 1, 2});
    hdf5::Dataset band = file.create_strings("band", std::vector<std::string>{"uv", "vis"});
    band.make_scale("band");
    for (const char* name : {"j", "again"}) {
      hdf5::Dataset dataset = file.create_dataset<double>(name, {3, 2});
      dataset.write<double>(std::vector<double>{0, 1, 2, 3, 4, 5});
      dataset.attach_scale(1, band);
    }
    file.create_dataset<double>("k", {3, 2}).write<double>(std::vector<double>{0, 1, 2, 3, 4, 5});
    file.create_dataset<double>("rain", {3}).write<double>(std::vector<double>{0, 2, 1});
    file.publish();
  }
  const auto read = [&](const std::string& columns, const std::string& x) {
    return message("J = { file = \"light.h5\", at = \"hour\", columns = " + columns + " }", x, folder_);
  };
  EXPECT_EQ(read("\"j\"", "J(t).uv + J(t).vis + J(t)[1]"), "no error");
  EXPECT_THAT(read("\"j\"", "J(t).ir"), HasSubstr("expected one of uv, vis"));
  EXPECT_EQ(read("[\"rain\", \"j\"]", "J(t).rain + J(t).uv"), "no error");
  // Numbers where the file names none, or one name twice.
  EXPECT_EQ(read("\"k\"", "J(t).k0 + J(t).k1"), "no error");
  EXPECT_EQ(read("[\"j\", \"again\"]", "J(t).j0 + J(t).again1"), "no error");
}

TEST_F(FunctionTables, say_what_is_wrong_where_it_was_written) {
  write("weather.csv", "hour,rain\n0,1\n2,3\n1,2\n");
  const auto file = [&](const std::string& more) {
    return message("rain = { file = \"weather.csv\"" + more + " }", "rain(t)", folder_);
  };
  EXPECT_THAT(file(""), HasSubstr("problem.toml:3: rhs.tables.rain: at[2]: found 1 after 2, expected ascending"));
  for (const auto& [more, key] : {std::pair{", at = \"Hour\"", "at"}, {", columns = [\"Rain\"]", "columns"}}) {
    const std::string text = file(more);
    EXPECT_THAT(text, HasSubstr(std::string("rhs.tables.rain.") + key + ": found"));
    EXPECT_EQ(text.find("rhs.tables"), text.rfind("rhs.tables")) << text;
    EXPECT_THAT(text, HasSubstr("did you mean"));
  }
  EXPECT_THAT(file(", columns = [\"rain\", \"rain\"]"), HasSubstr("columns: found \"rain\" twice"));
  EXPECT_THAT(file(", values = [1]"), HasSubstr("found file and values, expected one of them"));
  const std::string at = "{ at = [0, 1], values = [1, 2] }";
  for (const std::string name : {"x", "a", "exp", "if"}) {
    EXPECT_THAT(message(name + " = " + at, name + "(t)"), HasSubstr("rhs.tables." + name + ": found \"" + name + '"'));
  }
  EXPECT_THAT(message("rain = " + at, "rain(t, x)"),
              HasSubstr("found rain of 2 arguments, expected 1, what the table is of"));
  EXPECT_THAT(message("rain = " + at, "rain(t).snow"), HasSubstr("found \"snow\""));
  EXPECT_THAT(message("rain = " + at, "rain"), HasSubstr("call it, rain(...)"));
  EXPECT_THAT(message("rain = " + at, "a(t)"), HasSubstr("a function, net or table"));
  EXPECT_THAT(message("rain = { at = [0, 1, 2], values = [1, 2] }"), HasSubstr("found 2 numbers, expected 3"));
  EXPECT_THAT(message("rain = { at = [0, 1], values = [1, 2], interpolation = \"cubic\" }"),
              HasSubstr("expected one of linear, previous, pchip, spline"));
  EXPECT_THAT(message("rain = [1, 2]"), HasSubstr("expected a table of numbers"));
}

TEST_F(FunctionTables, knots_that_are_one_number_in_float32_are_named_as_they_were_given) {
  try {
    const ProblemSetup setup = set_up_in(
        "[rhs]\ntables = { rain = { at = [100000000, 100000001], values = [1, 2] } }\nequations = { x = \"rain(t)\" }\n"
        "[ensemble]\ninitial_state = [0]\n[time]\nspan = [100000000, 100000001]\n");
    ode::solve(setup.problem, setup.options);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rain.at[1]: found 100000001 after 100000000"));
  }
}

// A pulse of an hour, which adaptive steps of a quiet day would pass over.
TEST_F(FunctionTables, steps_are_short_enough_for_what_a_table_does) {
  const std::string quiet =
      "[rhs]\ntables = { rain = { at = [0, 100.3, 101.3, 200], values = [0, 5, 0, 0], interpolation = \"previous\" } "
      "}\n"
      "equations = { x = \"rain(t) - 0.01 * x\" }\n[ensemble]\ninitial_state = [1]\n[time]\nspan = [0, 150]\n"
      "[method]\nprecision = \"f64\"\n";
  const auto end_of = [](const ProblemSetup& setup) {
    return ode::solve(setup.problem, setup.options).end_state(0, 0);
  };
  const double expected = std::exp(-1.5) + 500 * (std::exp(-0.487) - std::exp(-0.497));
  EXPECT_NEAR(end_of(set_up_in(quiet)), expected, 1e-6);  // steps end at both jumps
  const std::string blind = quiet + "stop_at_knots = false\n";
  const ProblemSetup any = set_up_in(blind), long_steps = set_up_in(blind + "max_step = 50\n");
  EXPECT_DOUBLE_EQ(any.options.max_step.value_or(0), 1);
  EXPECT_THAT(any.notes, IsEmpty());
  EXPECT_NEAR(end_of(any), expected, 1e-3);               // two jumps at a tolerance of 1e-6, and states of 3
  EXPECT_GT(std::abs(end_of(long_steps) - expected), 1);  // what the limit is for
  EXPECT_THAT(long_steps.notes,
              ElementsAre("steps of 50 may pass over what rain does within 1: take max_step = 1 or less"));
  EXPECT_THAT(set_up_in(quiet + "dt = 0.5\n").notes,
              ElementsAre(HasSubstr("jumps at 100.3, within a fixed step of 0.5")));
  EXPECT_THAT(set_up_in(quiet + "dt = 0.1\n").notes, IsEmpty());
  EXPECT_THAT(set_up_in(quiet + "dt = 2\n").notes, Contains(HasSubstr("steps of 2 may pass over")));
}

TEST_F(FunctionTables, notes_tell_of_times_that_a_table_does_not_know) {
  const auto notes = [](const std::string& interpolation) {
    return set_up_in("[rhs]\ntables = { rain = { at = [0, 200], values = [0, 5], interpolation = \"" + interpolation +
                     "\" } }\nequations = { x = \"rain(t)\" }\n[ensemble]\ninitial_state = [1]\n[time]\n"
                     "span = [0, 250]\n")
        .notes;
  };
  EXPECT_THAT(notes("linear"), ElementsAre("rain knows times from 0 to 200, and is asked for 0 to 250: beyond its ends "
                                           "a table keeps the value there"));
  EXPECT_THAT(notes("previous"), IsEmpty());
  const auto steps = [](const std::string& values, const std::string& call) {
    return set_up_in("[rhs]\ntables = { rain = { at = [0, 10, 20], values = " + values +
                     ", interpolation = \"previous\" } }\nequations = { x = \"" + call +
                     "\" }\n[ensemble]\ninitial_state = [1]\n[time]\nspan = [0, 31]\n")
        .notes;
  };
  // Its last value for longer than any step: what was measured ended earlier than the span.
  EXPECT_THAT(steps("[0, 5, 1]", "rain(t)"),
              ElementsAre("rain has its last knot at 20, and is asked for times to 31: a table of steps keeps its last "
                          "value, for longer than any step of it here"));
  EXPECT_THAT(steps("[0, 5, 0]", "rain(t)"), IsEmpty());  // as behind the last dose
  EXPECT_THAT(steps("[0, 5, 1]", "rain(t / 2)"), IsEmpty());
  EXPECT_THAT(steps("[0, 5, 1]", "rain(t * 2)"), ElementsAre(HasSubstr("rain(t * 2) has its last knot at 10, and")));
}

// x' = rain(t), where rain jumps from 0 to 1 at t = 1: nothing has fallen at the end.
TEST_F(FunctionTables, notes_tell_of_fixed_steps_that_pass_over_jumps) {
  const auto with_method = [](const std::string& method, const std::string& kind = "previous", int end = 1) {
    return set_up_in("[rhs]\ntables = { rain = { at = [0, 1, 2], values = [0, 1, 1], interpolation = \"" + kind +
                     "\" } }\nequations = { x = \"rain(t)\" }\n[ensemble]\ninitial_state = [0]\n[time]\nspan = [0, " +
                     std::to_string(end) + "]\n[method]\nprecision = \"f64\"\n" + method);
  };
  const auto end_of = [](const ProblemSetup& setup) {
    return ode::solve(setup.problem, setup.options).end_state(0, 0);
  };
  const ProblemSetup ends_there = with_method("dt = 0.5\n"), blind = with_method("dt = 0.5\nstop_at_knots = false\n");
  EXPECT_THAT(ends_there.notes, IsEmpty());
  EXPECT_EQ(end_of(ends_there), 0);
  EXPECT_THAT(blind.notes, IsEmpty());
  EXPECT_GT(std::abs(end_of(blind)), 0.01);  // what the last stage makes of what lies behind the jump
  EXPECT_THAT(with_method("max_step = 1\n").notes, IsEmpty());
  EXPECT_THAT(
      with_method("dt = 0.7\n", "previous", 2).notes,
      ElementsAre("the right-hand side jumps at 1, within a fixed step of 0.7, which keeps no order across it: take a "
                  "dt whose steps end there, or adaptive steps"));
  EXPECT_THAT(with_method("dt = 0.7\n", "linear", 2).notes, IsEmpty());
}

TEST_F(FunctionTables, ranges_of_what_they_read_are_no_training_ranges) {
  const auto notes = [](const std::string& x) {
    return set_up_in("[rhs]\ntables = { k = { at = [0, 2], values = [1, 2] } }\nequations = { x = \"" + x +
                     "\" }\n[ensemble]\ninitial_state = [0]\n[time]\nspan = [0, 4]\n")
        .notes;
  };
  EXPECT_THAT(notes("k(x)"), IsEmpty());
  EXPECT_THAT(notes("k(t % 2)"), IsEmpty());
  EXPECT_THAT(notes("k((x * t) % 1.5)"), IsEmpty());
  EXPECT_THAT(notes("k(t % 2.5)"),
              ElementsAre("the range of k's input t % 2.5 is not watched: it is no component or parameter"));
  EXPECT_THAT(notes("k(x^2)"),
              ElementsAre("the range of k's input x^2 is not watched: it is no component or parameter"));
  EXPECT_THAT(
      set_up_in("[rhs]\ntables = { k = { at = [0, 2], values = [1, 2] }, l = { at = [0, 3], values = [1, 2] }, "
                "m = { at = [0, 4], values = [1, 2] } }\nequations = { x = \"k(2 * x) + l(2 * x) + m(2 * x)\" }\n"
                "[ensemble]\ninitial_state = [0]\n[time]\nspan = [1, 3]\n")
          .notes,
      ElementsAre("the range of k's, l's and m's input 2 * x is not watched: it is no component or parameter"));
  // Whether it knows all of a period that is a parameter nothing tells: it keeps its ends.
  const auto notes_of_period = [](const std::string& x) {
    return set_up_in(
               "[rhs]\nparameters = { P = 2, on = 0.5 }\ntables = { k = { at = [0, 2], values = [1, 2] } }\n"
               "equations = { x = \"0 * (P + on) + " +
               x +
               "\" }\n[ensemble]\ninitial_state = [0]\n"
               "[time]\nspan = [0, 4]\n")
        .notes;
  };
  EXPECT_THAT(notes_of_period("k(t % P)"), IsEmpty());
  EXPECT_THAT(notes_of_period("k((t - 0.3 * P) % P)"), IsEmpty());
  EXPECT_THAT(notes_of_period("k(t % P + on)"), IsEmpty());
  EXPECT_THAT(notes_of_period("k(x % P)"),
              ElementsAre("the range of k's input x % P is not watched: it is no component or parameter"));
  EXPECT_THAT(notes_of_period("k(t % x)"), ::testing::Contains(::testing::HasSubstr("input t % x is not watched")));
  // Of a multiple of the time it is told at which times the table's ends are passed.
  EXPECT_THAT(notes("k(t / 2)"), IsEmpty());
  EXPECT_THAT(notes("k(1 - t / 4)"), IsEmpty());
  EXPECT_THAT(notes("k(max(t - 3, 0))"), IsEmpty());
  EXPECT_THAT(notes("k(2 * t - 1)"), ElementsAre("k(2 * t - 1) knows times from 0.5 to 1.5, and is asked for 0 to 4: "
                                                 "beyond its ends a table keeps the value there"));
  EXPECT_THAT(notes("k(1 - 2 * t)"), ElementsAre("k(1 - 2 * t) knows times from -0.5 to 0.5, and is asked for 0 to 4: "
                                                 "beyond its ends a table keeps the value there"));
  // What was measured earlier or later is what such a table is for.
  EXPECT_THAT(notes("k(t - 1) + k(t + 1) + k(1 - t)"), IsEmpty());
  EXPECT_THAT(notes("k(t - x)"),
              ElementsAre("the range of k's input t - x is not watched: it is no component or parameter"));
}

TEST_F(FunctionTables, clamped_guards_leave_them_as_they_are) {
  const std::string basin = with(kBasin, "KIND", "pchip");
  const ProblemSetup plain = set_up_in(basin), clamped = set_up_in(with(basin, "[rhs]", "[rhs]\nguard = \"clamp\""));
  EXPECT_EQ(clamped.stored_model->digest(), plain.stored_model->digest());
}

// An hour of rain among hundreds: a step that does not end at its knots passes over it.
TEST_F(FunctionTables, a_model_of_equations_keeps_the_knots_of_its_tables_where_calls_are_clamped) {
  nn::FunctionTable rain{
      .input = {}, .at = {}, .outputs = {{}}, .values = {}, .interpolation = nn::Interpolation::previous};
  for (int hour = 0; hour <= 2000; ++hour) {
    rain.at.push_back(hour);
    rain.values.push_back(hour == 1000 ? 10 : 0);
  }
  nn::Equations basin;
  basin.equations = {{"s", "rain(t) - 0.01 * s", ""}};
  basin.nets = {{"rain", nn::table_model(rain)}};
  nn::write_hdf5_model(folder_ / "rain.h5", nn::equations(basin));
  const std::string tail =
      "[ensemble]\ntrajectories = 1\ninitial_state = { s = 0 }\n"
      "[time]\nspan = [0, 1200]\nsave = 2\n[method]\nprecision = \"f64\"\n";
  const auto solved_with = [&](const std::string& guard) {
    const ProblemSetup setup = set_up_in("[rhs]\nmodel = \"rain.h5\"\n" + guard + tail, folder_);
    return ode::solve(setup.problem, setup.options).end_state(0, 0);
  };
  const double exact = 1000 * (1 - std::exp(-0.01)) * std::exp(-0.01 * 199);
  EXPECT_NEAR(solved_with(""), exact, 1e-5);
  EXPECT_NEAR(solved_with("guard = \"clamp\"\n"), exact, 1e-5);
}

TEST_F(FunctionTables, other_numbers_are_another_right_hand_side) {
  const std::string basin = with(kBasin, "KIND", "linear");
  EXPECT_NE(set_up_in(with(basin, "0, 2, 1, 4", "0, 2, 1, 5")).problem.rhs->digest(),
            set_up_in(basin).problem.rhs->digest());
  EXPECT_THAT(set_up_in(basin).equations, HasSubstr("rain = table "));
}

}  // namespace
}  // namespace lockstep::cli

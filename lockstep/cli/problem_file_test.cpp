#include "lockstep/cli/problem_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "lockstep/cli/problem_setup.h"
#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"

namespace lockstep::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kComplete = R"(
[rhs]
model = "net.safetensors"
system = "lorenz"
activations = "tanh,identity"
with_time = true
components = ["x", "y", "z"]
[ensemble]
trajectories = 10_000
seed = 7
initial_state = { normal = { mean = [1, 0, 0.5], std = 0.1 } }
parameters = { rho = { linspace = [0, 21] }, sigma = 10 }
[time]
span = [0, 2]
save = { every = 0.01 }
[method]
name = "dopri5"
control = "common"
rtol = 1e-4
atol = 1
max_steps = 1e4
precision = "f64"
[event]
component = "x"
value = 3
direction = "rising"
[run]
device = "cpu"
threads = 2
cpu_target = "scalar"
[output]
file = "out.h5"
overwrite = true
)";

ProblemFile parse(const std::string& text) { return parse_problem_file(text, "folder/lorenz.toml"); }

std::string message(const std::string& text) {
  return message_of([&] { parse(text); });
}

TEST(ProblemFile, every_section_is_read) {
  const ProblemFile file = parse(kComplete);
  EXPECT_EQ(file.rhs.model->value, "folder/net.safetensors");
  EXPECT_EQ(file.rhs.system->value, "lorenz");
  EXPECT_EQ(file.rhs.activations->value, "tanh,identity");
  EXPECT_TRUE(file.rhs.with_time);
  EXPECT_THAT(file.rhs.components, ElementsAre("x", "y", "z"));
  EXPECT_EQ(file.ensemble.trajectories->value, 10000u);
  EXPECT_EQ(file.ensemble.seed, 7u);
  const auto& normal = std::get<EnsembleValues::Normal>(file.ensemble.initial_state->source);
  EXPECT_THAT(normal.mean, ElementsAre(1, 0, 0.5));
  EXPECT_THAT(normal.deviation, ElementsAre(0.1));
  const auto& named = std::get<EnsembleValues::Named>(file.ensemble.parameters->source);
  ASSERT_EQ(named.columns.size(), 2u);
  EXPECT_EQ(named.names[0], "rho");
  EXPECT_THAT(std::get<EnsembleValues::Shared>(file.time.span->source).row, ElementsAre(0, 2));
  EXPECT_EQ(std::get<Every>(file.time.save->value).interval, 0.01);
  EXPECT_EQ(file.options.method, "dopri5");
  EXPECT_EQ(file.options.control, ode::StepControl::common);
  EXPECT_EQ(file.options.rtol, 1e-4);
  EXPECT_EQ(file.options.atol, 1);
  EXPECT_EQ(file.options.max_steps, 10000);
  EXPECT_EQ(file.options.precision, Precision::f64);
  EXPECT_EQ(file.options.threads, 2);
  EXPECT_EQ(file.options.cpu_target, CpuTarget::scalar);
  EXPECT_EQ(file.options.device, ode::DeviceChoice::cpu());
  EXPECT_EQ(std::get<std::string>(file.event->component), "x");
  EXPECT_EQ(file.event->direction, ode::TerminalEvent::Direction::rising);
  EXPECT_EQ(file.output.file->value, "out.h5");
  EXPECT_TRUE(file.output.overwrite);
}

TEST(ProblemFile, a_step_size_alone_means_fixed_steps) {
  const ProblemFile file = parse("[rhs]\nsystem = \"lorenz\"\n[method]\nname = \"rk4\"\ndt = 0.01\n");
  EXPECT_EQ(file.options.control, ode::StepControl::fixed);
  EXPECT_EQ(file.options.dt, 0.01);
}

TEST(ProblemFile, an_unknown_key_names_its_place_and_the_nearest_known_key) {
  EXPECT_EQ(
      message("[rhs]\nsystem = \"lorenz\"\n[method]\nrtoll = 1e-3\n"),
      "folder/lorenz.toml:4: method.rtoll: found an unknown key, expected one of name, control, rtol, atol, dt, "
      "initial_step, max_step, stops, stop_at_knots, max_steps, precision, matrix_precision; did you mean \"rtol\"?");
  EXPECT_THAT(message("[rhs]\nsystem = \"lorenz\"\n[methods]\nrtol = 1e-3\n"),
              HasSubstr("lorenz.toml:3: methods: found an unknown key"));
  EXPECT_THAT(
      message("[rhs]\nsystem = \"lorenz\"\n[ensemble]\ninitial_state = {normal={mean=[0], stdd=1}}\n"),
      HasSubstr("lorenz.toml:4: ensemble.initial_state.normal.stdd: found an unknown key, expected one of mean, "
                "std; did you mean \"std\"?"));
}

TEST(ProblemFile, save_points_may_be_spread_over_decades) {
  const auto times = [](const std::string& save, const std::string& span = "[0, 10]") {
    return set_up(parse("[rhs]\nsystem = \"lorenz\"\n[time]\nspan = " + span + "\nsave = " + save + "\n"))
        .problem.save_times;
  };
  EXPECT_THAT(times("{ logspace = [1e-6, 1, 7] }"), ElementsAre(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1));
  EXPECT_THAT(times("{ logspace = { low = 0.003, high = 7, points = 2 } }"), ElementsAre(0.003, 7));
  EXPECT_THAT(times("{ linspace = [2, 3, 5] }"), ElementsAre(2, 2.25, 2.5, 2.75, 3));
  EXPECT_THAT(times("{ logspace = [10, 0.1, 3] }", "[10, 0]"), ElementsAre(10, 1, 0.1));
  // Those of all, of spans of their own too.
  EXPECT_THAT(times("{ logspace = [0.1, 10, 3] }", "[[0, 10], [0.05, 20]]"), ElementsAre(0.1, 1, 10));
  const auto refusal = [&](const std::string& save) { return message_of([&] { times(save); }); };
  EXPECT_THAT(refusal("{ logspace = [1e-6, 1] }"),
              HasSubstr("time.save: found a range that does not say how many save points, expected its ends and their "
                        "number; write save = { logspace = [1e-6, 1, 7] }"));
  EXPECT_THAT(refusal("{ logspace = [0, 1, 7] }"), HasSubstr("time.save.logspace: found 0, expected numbers above 0"));
  EXPECT_THAT(refusal("{ logspace = [-6, 0, 7] }"), HasSubstr("the ends themselves, and not their exponents"));
  EXPECT_THAT(refusal("{ logspace = [1e-6, 100, 7] }"), HasSubstr("time.save"));  // beyond the span
  EXPECT_THAT(refusal("{ linspace = [0, 1, 1e12] }"), HasSubstr("at most 1e9 save points"));
  EXPECT_THAT(refusal("{ linspace = [0, 1, 3], every = 1 }"), HasSubstr("keys that do not go together"));
}

TEST(ProblemFile, an_interval_between_save_points_is_told_how_to_be_written) {
  EXPECT_EQ(message("[rhs]\nsystem = \"lorenz\"\n[time]\nsave = 0.1\n"),
            "folder/lorenz.toml:4: time.save: found 0.1, expected an integer: a number of evenly spaced points; for an "
            "interval write save = { every = 0.1 }");
}

TEST(ProblemFile, what_was_meant_for_equations_is_said) {
  EXPECT_EQ(message("[equations]\nx = \"v\"\n"),
            "folder/lorenz.toml:1: equations: found a section of that name, expected it in [rhs]; write "
            "[rhs.equations]");
  EXPECT_THAT(message("[rhs.equations]\nx = v\n  v = -k * x  \n"),
              HasSubstr("expected a TOML file; write text and formulas in quotes: x = \"v\""));
  EXPECT_THAT(message("[rhs.equations]\nx = \"v\"\n  v = -k * x  \n"), HasSubstr("quotes: v = \"-k * x\""));
  EXPECT_THAT(message("[rhs]\nsystem = \"lorenz\n"), ::testing::EndsWith("expected a TOML file"));
  EXPECT_THAT(message("= 3"), ::testing::Not(HasSubstr("quotes")));
}

TEST(ProblemFile, what_is_no_toml_is_told_how_toml_writes_it) {
  const auto advice = [](const std::string& line) {
    const std::string said = message("[rhs]\n" + line + "\n");
    const std::string head = "folder/lorenz.toml:2:";
    EXPECT_EQ(said.substr(0, head.size()), head) << line;
    const std::size_t end = said.find("a TOML file; ");
    return end == said.npos ? "nothing: " + said : said.substr(end + 13);
  };
  EXPECT_EQ(advice("a = .5"), "write a = 0.5");
  EXPECT_EQ(advice("a = -5."), "write a = -5.0");
  EXPECT_EQ(advice("a = 5.e3"), "write a = 5.0e3");
  EXPECT_EQ(advice("a = [0., 1.]"), "write 0.0");
  EXPECT_EQ(advice("a = 1d-6  # Fortran, 0 \u2013 1"), "write a = 1e-6");
  EXPECT_EQ(advice("a = 04"), "write a = 4");
  EXPECT_THAT(advice("a = 1,000"),
              HasSubstr("write a = 1000, without marks between thousands; decimals follow a point"));
  EXPECT_THAT(advice("a = -12'345'678"), HasSubstr("write a = -12345678, without"));
  EXPECT_EQ(advice("a = 0,001"), "write a = 0.001: decimals follow a point");
  EXPECT_EQ(advice("a = -1,5e-3"), "write a = -1.5e-3: decimals follow a point");
  EXPECT_EQ(advice("a = 1,0000"), "write a = 1.0000: decimals follow a point");
  EXPECT_EQ(advice("a = 1.d-6"), "write a = 1.0e-6");
  EXPECT_EQ(advice("a = .5D0"), "write a = 0.5e0");
  EXPECT_EQ(advice("my a = 5"),
            "write \"my a\" = 5: a name of other signs than letters, digits, _ and - stands in quotes");
  EXPECT_EQ(advice("a = [1, 1e400]"), "numbers go to 1.8e308");
  EXPECT_EQ(advice("a = 1e400"), "numbers go to 1.8e308");
  EXPECT_EQ(advice("a = 9223372036854775808"), "numbers without a point go to 9223372036854775807");
  EXPECT_THAT(advice("a = 3 m/s"), HasSubstr("write the number alone; units are texts"));
  EXPECT_THAT(advice("a = [0 s, 1 s]"), HasSubstr("write the number alone; units are texts"));
  EXPECT_THAT(advice("a = 1/2"), HasSubstr("write the number that it comes to"));
  EXPECT_THAT(advice("a = 2 * x"), HasSubstr("formulas in quotes: a = \"2 * x\""));
  EXPECT_EQ(advice("a = True"), "write a = true");
  EXPECT_EQ(advice("a = no"), "write a = false");
  EXPECT_EQ(advice("a = (0, 1)"), "write a = [0, 1]");
  EXPECT_THAT(advice("a = \u22121"), HasSubstr("write the minus sign of the keyboard"));
  EXPECT_THAT(advice("a = 1e\u20136"), HasSubstr("write the minus sign of the keyboard"));
  EXPECT_THAT(advice("a = \u201clorenz\u201d"), HasSubstr("write the straight quotes of the keyboard"));
  EXPECT_THAT(advice("a\u00a0= 1"), HasSubstr("write plain spaces"));
  EXPECT_EQ(advice("a: 1"), "write NAME = VALUE, below its [section]");
  EXPECT_THAT(advice("a = \"C:\\data\""), HasSubstr("write folders with /"));
  EXPECT_EQ(advice("# gr\xf6\xdf"), "save the file as UTF-8");
  EXPECT_THAT(message("[rhs]\na = 1\na = 2\n"), HasSubstr("a TOML file; write each key and each [section] once"));
  EXPECT_THAT(message("\xff\xfe["), HasSubstr("save the file as UTF-8"));
  EXPECT_THAT(message(std::string("[\0r\0h\0", 6)), HasSubstr("save the file as UTF-8"));
  EXPECT_THAT(message("[rhs]\rsystem = \"lorenz\"\r"),
              HasSubstr("save the file with the line ends of Unix or Windows"));
}

TEST(ProblemFile, line_ends_of_windows_and_a_byte_order_mark_are_read) {
  EXPECT_EQ(message("\xef\xbb\xbf[rhs]\r\nsystem = \"lorenz\"\r\n[method]\r\n\trtol\t=\t1e-3\r\n"), "no error");
}

TEST(ProblemFile, values_in_quotes_and_zero_bytes_in_texts_are_refused) {
  const std::string rhs = "[rhs]\nsystem = \"lorenz\"\n";
  EXPECT_THAT(message(rhs + "[method]\nrtol = \"1e-6\"\n"),
              ::testing::EndsWith("found \"1e-6\", expected a number; write 1e-6 without quotes"));
  EXPECT_THAT(message(rhs + "[method]\nrtol = \".5\"\n"), ::testing::EndsWith("; write 0.5 without quotes"));
  EXPECT_THAT(message(rhs + "[method]\nrtol = \"inf\"\n"), ::testing::EndsWith("expected a number"));
  EXPECT_THAT(message(rhs + "[output]\noverwrite = \"true\"\n"), ::testing::EndsWith("; write true without quotes"));
  EXPECT_THAT(message(rhs + "[output]\nfile = \"a\\u0000b.h5\"\n"),
              HasSubstr("lorenz.toml:4: output.file: found a text with a zero byte"));
}

TEST(ProblemFile, a_wrong_type_names_what_was_found_and_expected) {
  const std::string rhs = "[rhs]\nsystem = \"lorenz\"\n";
  EXPECT_EQ(message(rhs + "[method]\nrtol = \"small\"\n"),
            "folder/lorenz.toml:4: method.rtol: found \"small\", expected a number");
  EXPECT_EQ(message(rhs + "[ensemble]\ntrajectories = 1.5\n"),
            "folder/lorenz.toml:4: ensemble.trajectories: found 1.5, expected an integer");
  EXPECT_EQ(message(rhs + "[ensemble]\ntrajectories = 0\n"),
            "folder/lorenz.toml:4: ensemble.trajectories: found 0, expected an integer of 1 or more");
  EXPECT_EQ(message(rhs + "[ensemble]\ninitial_state = [1, true, 0]\n"),
            "folder/lorenz.toml:4: ensemble.initial_state[1]: found true, expected a number");
  EXPECT_EQ(
      message(rhs + "[ensemble]\ninitial_state = [[1, 2], [3]]\n"),
      "folder/lorenz.toml:4: ensemble.initial_state[1]: found an array of 1, expected 2 numbers as in the first row");
  EXPECT_EQ(message("rhs = 3\n"), "folder/lorenz.toml:1: rhs: found 3, expected a table: [rhs]");
  EXPECT_EQ(message("[rhs]\nsystem = 1979-05-27\n"),
            "folder/lorenz.toml:2: rhs.system: found a date or time, expected a number, text, array or table; write "
            "times as numbers");
  EXPECT_THAT(message(rhs + "[time]\nspan = [0, nan]\n"), HasSubstr("time.span[1]: found a number that is not finite"));
  EXPECT_EQ(message(rhs + "[output]\noverwrite = \"yes\"\n"),
            "folder/lorenz.toml:4: output.overwrite: found \"yes\", expected true or false");
}

TEST(ProblemFile, impulses_are_read_table_by_table) {
  const ProblemFile file = parse(
      "[rhs]\nsystem = \"lorenz\"\n[[impulses]]\ncomponent = \"x\"\nchange = 100\ntimes = [0, 24.5]\n"
      "[[impulses]]\ncomponent = 1\nfactor = [0.5, 1]\nevery = 24\nfrom = 2\n[[impulses]]\nfile = \"doses.csv\"\n");
  ASSERT_EQ(file.impulses.size(), 3u);
  const auto& [first, second, third] = std::tie(file.impulses[0], file.impulses[1], file.impulses[2]);
  EXPECT_EQ(std::get<std::string>(*first.component), "x");
  EXPECT_THAT(std::get<EnsembleValues::Shared>(first.change->source).row, ElementsAre(100));
  EXPECT_FALSE(first.factor);
  EXPECT_THAT(first.times, ElementsAre(0, 24.5));
  EXPECT_EQ(first.where, "folder/lorenz.toml:6: impulses[0].times");
  EXPECT_EQ(std::get<std::size_t>(*second.component), 1u);
  EXPECT_EQ(std::get<EnsembleValues::Rows>(second.factor->source).rows, 2u);
  EXPECT_EQ(second.every->interval, 24);
  EXPECT_EQ(second.every->from, 2);
  EXPECT_FALSE(second.every->until);
  EXPECT_EQ(third.file, "folder/doses.csv");
  EXPECT_THAT(input_files(file), testing::Contains("folder/doses.csv"));
}

TEST(ProblemFile, tables_and_nets_are_among_what_is_read) {
  const ProblemFile file = parse_problem_file(
      "[rhs]\nmodels = { drag = \"drag.h5\" }\ntables = { wind = { file = \"wind.h5\" }, gust = { at = [0, 1], values "
      "= "
      "[0, 1] } }\nequations = { x = \"wind(t) + gust(t) - drag(x)\" }\n[time]\nspan = [0, 1]\n",
      "folder/p.toml");
  EXPECT_THAT(input_files(file), testing::IsSupersetOf({"folder/drag.h5", "folder/wind.h5"}));
}

TEST(ProblemFile, impulses_that_say_too_little_or_too_much_are_refused) {
  const auto said = [](const std::string& table) {
    return message("[rhs]\nsystem = \"lorenz\"\n[[impulses]]\n" + table);
  };
  EXPECT_EQ(said("component = \"x\"\nchange = 1\n"),
            "folder/lorenz.toml:3: impulses[0]: found no times, expected when states change; add times = [0, 24], "
            "every = 24, or file = \"doses.csv\" with a column time");
  EXPECT_THAT(said("change = 1\ntimes = 0\n"), HasSubstr("found no component"));
  EXPECT_THAT(said("component = \"x\"\ntimes = 0\n"), HasSubstr("found neither change nor factor"));
  EXPECT_THAT(said("component = -1\nchange = 1\ntimes = 0\n"), HasSubstr("found -1, expected a name, or an index"));
  EXPECT_THAT(said("component = \"x\"\nchange = 1\ntimes = 0\nevery = 2\n"),
              HasSubstr("lorenz.toml:7: impulses[0].every: found every beside times, expected one of them"));
  EXPECT_THAT(said("component = \"x\"\nchange = 1\ntimes = 0\nuntil = 2\n"), HasSubstr("found until without every"));
  EXPECT_THAT(said("component = \"x\"\nchange = 1\nevery = 0\n"), HasSubstr("expected a number greater than 0"));
  EXPECT_THAT(said("component = \"x\"\nchange = 1\nevery = 1\nfrom = 2\nuntil = 1\n"),
              HasSubstr("impulses[0].until: found 1, expected a time that is not before from"));
  EXPECT_THAT(said("component = \"x\"\nchange = 1\ntimes = []\n"), HasSubstr("impulses[0].times: found no times"));
  EXPECT_THAT(said("component = \"x\"\nchnge = 1\ntimes = 1\n"), HasSubstr("did you mean \"change\"?"));
  EXPECT_THAT(message("[rhs]\nsystem = \"lorenz\"\n[impulses]\ntimes = 0\n"),
              HasSubstr("lorenz.toml:3: impulses: found a single table, expected tables: [[impulses]]"));
}

TEST(ProblemFile, resets_are_read_table_by_table) {
  const ProblemFile file = parse(
      "[rhs]\nsystem = \"lorenz\"\n[[resets]]\ncomponent = \"x\"\nvalue = 2\ndirection = \"falling\"\n"
      "to = { x = 0, y = \"-0.9 * y\" }\n[[resets]]\nfunction = \"x - z\"\nto.z = \"x > 1\"\n");
  ASSERT_EQ(file.resets.size(), 2u);
  const auto& [first, second] = std::tie(file.resets[0], file.resets[1]);
  EXPECT_EQ(std::get<std::string>(first.event.component), "x");
  EXPECT_EQ(first.event.value, 2);
  EXPECT_EQ(first.event.direction, ode::TerminalEvent::Direction::falling);
  ASSERT_EQ(first.to.size(), 2u);
  EXPECT_EQ(first.to[0].text, "0");
  EXPECT_EQ(first.to[1].name, "y");
  EXPECT_EQ(first.to[1].text, "-0.9 * y");
  EXPECT_EQ(first.to[1].where, "folder/lorenz.toml:7: resets[0].to.y");
  EXPECT_EQ(second.event.function->text, "x - z");
  EXPECT_EQ(second.event.direction, ode::TerminalEvent::Direction::either);
  EXPECT_EQ(second.to[0].text, "x > 1");
}

TEST(ProblemFile, a_reset_may_change_nothing) {
  const ProblemFile file = parse("[rhs]\nsystem = \"lorenz\"\n[[resets]]\ncomponent = \"x\"\nto = {}\n");
  ASSERT_EQ(file.resets.size(), 1u);
  EXPECT_TRUE(file.resets[0].to.empty());
}

TEST(ProblemFile, resets_that_say_too_little_or_too_much_are_refused) {
  const auto said = [](const std::string& table) {
    return message("[rhs]\nsystem = \"lorenz\"\n[[resets]]\n" + table);
  };
  EXPECT_EQ(said("component = \"x\"\n"),
            "folder/lorenz.toml:3: resets[0]: found no new state, expected what components become; add to = { v = "
            "\"-0.9 * v\" }, or to = {} where nothing changes");
  EXPECT_THAT(said("component = \"x\"\nto = 3\n"), HasSubstr("found 3, expected a table of expressions by name"));
  EXPECT_THAT(said("component = \"x\"\nto = { x = true }\n"),
              HasSubstr("lorenz.toml:5: resets[0].to.x: found true, expected an expression in quotes"));
  EXPECT_THAT(said("to = { x = 0 }\n"), HasSubstr("lorenz.toml:3: resets[0]: found no component"));
  EXPECT_THAT(said("component = -1\nto = { x = 0 }\n"), HasSubstr("found -1, expected a name, or an index from 0"));
  EXPECT_THAT(said("function = \"x - 1\"\nvalue = 1\nto = { x = 0 }\n"), HasSubstr("found value beside a function"));
  EXPECT_THAT(said("component = \"x\"\ndirection = \"up\"\nto = { x = 0 }\n"),
              HasSubstr("expected one of rising, falling, either"));
  EXPECT_THAT(said("componnt = \"x\"\nto = { x = 0 }\n"), HasSubstr("did you mean \"component\"?"));
  EXPECT_THAT(message("[rhs]\nsystem = \"lorenz\"\n[resets]\ncomponent = \"x\"\nto = { x = 0 }\n"),
              HasSubstr("lorenz.toml:3: resets: found a single table, expected tables: [[resets]]"));
}

TEST(ProblemFile, contradictory_fields_say_what_to_remove) {
  const std::string rhs = "[rhs]\nsystem = \"lorenz\"\n";
  EXPECT_EQ(
      message(rhs + "[method]\ndt = 0.1\ncontrol = \"per_trajectory\"\n"),
      "folder/lorenz.toml:4: method.dt: found a step size beside control = \"per_trajectory\", expected control = "
      "\"fixed\"; use initial_step or max_step with adaptive steps");
  EXPECT_THAT(message(rhs + "[method]\ndt = 0.1\nrtol = 1e-3\n"),
              HasSubstr("lorenz.toml:5: method.rtol: found rtol beside fixed steps"));
  EXPECT_THAT(message(rhs + "[method]\ncontrol = \"fixed\"\n"),
              HasSubstr("method.control: found fixed steps without dt"));
  EXPECT_THAT(message(rhs + "[ensemble]\ninitial_state = {normal={mean=0, std=1}, box=[0, 1]}\n"),
              HasSubstr("ensemble.initial_state.box: found a second source of numbers beside \"normal\""));
  EXPECT_THAT(message("[rhs]\nsystem = \"lorenz\"\nactivations = \"tanh\"\n"),
              HasSubstr("rhs.activations: found activations without a model"));
  EXPECT_THAT(message(rhs + "[time]\nsave = {every = 0.1, file = \"x.h5\"}\n"),
              HasSubstr("time.save: found keys that do not go together"));
}

TEST(ProblemFile, missing_fields_say_what_to_add) {
  EXPECT_THAT(message("[time]\nspan = [0, 1]\n"), HasSubstr("found no section [rhs]"));
  EXPECT_THAT(message("[rhs]\n"), HasSubstr("folder/lorenz.toml:1: rhs: found neither model, system nor equations"));
  EXPECT_THAT(message("[rhs]\nsystem = \"lorenz\"\n[event]\nvalue = 1\n"), HasSubstr("event: found no component"));
}

TEST(ProblemFile, choices_suggest_the_nearest) {
  const std::string rhs = "[rhs]\nsystem = \"lorenz\"\n";
  EXPECT_EQ(message(rhs + "[method]\ncontrol = \"fixd\"\n"),
            "folder/lorenz.toml:4: method.control: found \"fixd\", expected one of per_trajectory, common, fixed; did "
            "you mean \"fixed\"?");
  EXPECT_THAT(message(rhs + "[run]\ncpu_target = \"avx521\"\n"), HasSubstr("run.cpu_target: found \"avx521\""));
  EXPECT_THAT(message(rhs + "[run]\ndevice = \"cudo\"\n"),
              HasSubstr("run.device: found \"cudo\", expected auto, cpu, cuda, cuda:N, or shares such as "
                        "cpu=20%,cuda=80%; did you mean \"cuda\"?"));
}

TEST(ProblemFile, text_that_is_not_toml_names_the_line) {
  EXPECT_THAT(message("[rhs]\nsystem = lorenz\n"), HasSubstr("folder/lorenz.toml:2:"));
  EXPECT_THAT(message("[rhs]\nsystem = \"a\"\nsystem = \"b\"\n"), HasSubstr("folder/lorenz.toml:3:"));
}

// toml++ 3.3 aborts here, or assumes what is not so.
TEST(ProblemFile, an_unfinished_section_and_greek_outside_quotes_are_errors) {
  EXPECT_THROW(parse_problem_file("[\n\"x\"\n", "problem.toml"), Error);
  EXPECT_THROW(parse_problem_file("[rhs]\nsystem = \xCF\x81\n", "problem.toml"), Error);
}

TEST(ProblemFile, an_unreadable_file_is_an_error_of_kind_file) {
  try {
    read_problem_file("no/such/file.toml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::file);
    EXPECT_THAT(error.what(), HasSubstr("no/such/file.toml: found no readable file"));
  }
}

TEST(ProblemOverrides, flags_win_over_the_file) {
  ProblemFile file = parse(kComplete);
  ProblemOverrides flags;
  flags.output = "other.h5";
  flags.trajectories = 5;
  flags.seed = 9;
  flags.method = "tsit5";
  flags.rtol = 1e-8;
  flags.precision = "f32";
  flags.threads = 1;
  flags.cpu_target = "avx2";
  apply(flags, file);
  EXPECT_EQ(file.output.file->value, "other.h5");
  EXPECT_EQ(file.ensemble.trajectories->value, 5u);
  EXPECT_EQ(file.ensemble.seed, 9u);
  EXPECT_EQ(file.options.method, "tsit5");
  EXPECT_EQ(file.options.rtol, 1e-8);
  EXPECT_EQ(file.options.atol, 1);
  EXPECT_EQ(file.options.precision, Precision::f32);
  EXPECT_EQ(file.options.threads, 1);
  EXPECT_EQ(file.options.cpu_target, CpuTarget::avx2);
  EXPECT_EQ(file.where_of.at("options.rtol"), "--rtol");
}

TEST(ProblemOverrides, a_step_size_chooses_fixed_steps_and_excludes_tolerances) {
  ProblemFile file = parse(kComplete);
  ProblemOverrides flags;
  flags.dt = 0.5;
  apply(flags, file);
  EXPECT_EQ(file.options.control, ode::StepControl::fixed);
  EXPECT_EQ(file.options.dt, 0.5);
  flags.atol = {1e-3};
  EXPECT_THROW(apply(flags, file), Error);
}

}  // namespace
}  // namespace lockstep::cli

// [[impulses]] of a problem file as the impulses of its ensemble.
#include "lockstep/cli/ensemble_impulses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/core/testing/message_of.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ImpulsesOfAFile : public testing::Test {
 protected:
  ImpulsesOfAFile() : folder_(fs::path(testing::TempDir()) / "lockstep_impulses_test") {
    fs::create_directories(folder_);
  }
  ~ImpulsesOfAFile() override { fs::remove_all(folder_); }

  ProblemSetup set_up(const std::string& impulses, const std::string& ensemble = "trajectories = 3\n",
                      const std::string& time = "span = [0, 10]\n", const std::string& method = "") const {
    return cli::set_up(parse_problem_file(
        "[rhs]\nsystem = \"lorenz\"\n[ensemble]\n" + ensemble + "[time]\n" + time + "[method]\n" + method + impulses,
        folder_ / "p.toml"));
  }
  std::string refused(const std::string& impulses, const std::string& ensemble = "trajectories = 3\n",
                      const std::string& time = "span = [0, 10]\n", const std::string& method = "") const {
    return message_of([&] { set_up(impulses, ensemble, time, method); });
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  std::string refused_csv(const std::string& text, const std::string& more = "") const {
    write("doses.csv", text);
    return refused("[[impulses]]\nfile = \"doses.csv\"\n" + more);
  }

  fs::path folder_;
};

// {time, component, change, factor} of one trajectory
std::vector<std::vector<double>> numbers(const ode::Problem& problem, std::size_t trajectory) {
  std::vector<std::vector<double>> numbers;
  for (const auto& [time, component, change, factor] : problem.impulses_of(trajectory))
    numbers.push_back({time, static_cast<double>(component), change, factor});
  return numbers;
}
std::vector<double> times(const ode::Problem& problem, std::size_t trajectory) {
  std::vector<double> times;
  for (const ode::Impulse& impulse : problem.impulses_of(trajectory)) times.push_back(impulse.time);
  return times;
}
using Row = std::vector<double>;

TEST_F(ImpulsesOfAFile, are_by_time_and_else_as_they_stand) {
  const ProblemSetup setup = set_up(
      "[[impulses]]\ncomponent = \"z\"\nchange = 2\ntimes = [5, 1]\n"
      "[[impulses]]\ncomponent = 0\nfactor = 0.5\ntimes = 1\n");
  EXPECT_FALSE(setup.problem.impulses_differ());
  EXPECT_THAT(numbers(setup.problem, 2), ElementsAre(Row{1, 2, 2, 1}, Row{1, 0, 0, 0.5}, Row{5, 2, 2, 1}));
  EXPECT_EQ(setup.impulses, "3 changes of x, z, at t = 1 to 5");
  EXPECT_THAT(setup.notes, IsEmpty());
}

// 3 * 0.1 is 0.30000000000000004: of one time, that which stands first, and in the file's order.
TEST_F(ImpulsesOfAFile, of_one_time_but_for_roundings_are_as_they_stand) {
  const std::string doses = "[[impulses]]\ncomponent = 0\nchange = 1\nevery = 0.1\nfrom = 0.1\nuntil = 0.35\n";
  const std::string halves = "[[impulses]]\ncomponent = 0\nfactor = 0.5\ntimes = [0.1, 0.2, 0.3]\n";
  const double thrice = 0.1 + 2 * 0.1;
  ASSERT_NE(thrice, 0.3);
  EXPECT_THAT(numbers(set_up(doses + halves).problem, 0),
              ElementsAre(Row{0.1, 0, 1, 1}, Row{0.1, 0, 0, 0.5}, Row{0.2, 0, 1, 1}, Row{0.2, 0, 0, 0.5},
                          Row{thrice, 0, 1, 1}, Row{thrice, 0, 0, 0.5}));
  EXPECT_THAT(numbers(set_up(halves + doses).problem, 0),
              ElementsAre(Row{0.1, 0, 0, 0.5}, Row{0.1, 0, 1, 1}, Row{0.2, 0, 0, 0.5}, Row{0.2, 0, 1, 1},
                          Row{0.3, 0, 0, 0.5}, Row{0.3, 0, 1, 1}));
  // Others stay by time.
  const std::string late = "[[impulses]]\ncomponent = 0\nchange = 1\ntimes = [0.300000000001, 0.3]\n";
  EXPECT_THAT(times(set_up(late).problem, 0), ElementsAre(0.3, 0.300000000001));
  // Of spans of their own, which begin far from it, too.
  const ode::Problem own = set_up(
                               "[[impulses]]\ncomponent = 0\nchange = [1, 2, 3]\nevery = 0.1\n"
                               "[[impulses]]\ncomponent = 0\nfactor = 0.5\ntimes = 0.3\n",
                               "trajectories = 3\n", "span = [[0, 0.35], [-1000, 0.35], [0.1, 0.35]]\n")
                               .problem;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto of = own.impulses_of(i);
    EXPECT_EQ(of[of.size() - 2].time, of.back().time) << i;
    EXPECT_EQ(of.back().factor, 0.5) << i;
  }
}

TEST_F(ImpulsesOfAFile, come_again_and_again_within_the_span) {
  const std::string table = "[[impulses]]\ncomponent = 0\nchange = 1\n";
  const auto shared = [&](const std::string& keys) { return times(set_up(table + keys).problem, 0); };
  EXPECT_THAT(shared("every = 2.5\n"), ElementsAre(0, 2.5, 5, 7.5));  // at the end nothing would happen
  EXPECT_THAT(shared("every = 3\nfrom = 1\n"), ElementsAre(1, 4, 7));
  EXPECT_THAT(shared("every = 3\nfrom = 1\nuntil = 7\n"), ElementsAre(1, 4, 7));
  EXPECT_THAT(shared("every = 0.1\nuntil = 0.3\n"), ElementsAre(0, 0.1, 0.2, 0.3));  // 0.30000000000000004 is until
  // Far from 0, too, where float64 rounds the end: 1.7e9 + 3 * 0.1 is 1700000000.3.
  const auto at = [&](const std::string& span) {
    return times(set_up(table + "every = 0.1\n", "trajectories = 3\n", span).problem, 0).size();
  };
  EXPECT_EQ(at("span = [1700000000, 1700000000.3]\n"), 3u);  // the end without until is none
  // Of spans of their own trajectories have their own.
  const ode::Problem own =
      set_up(table + "every = 2\n", "trajectories = 3\n", "span = [[0, 5], [1, 3], [2, 4.5]]\n").problem;
  EXPECT_THAT(times(own, 0), ElementsAre(0, 2, 4));
  EXPECT_THAT(times(own, 1), ElementsAre(1));
  EXPECT_THAT(times(own, 2), ElementsAre(2, 4));
  EXPECT_FALSE(set_up(table + "every = 2\nfrom = 0\nuntil = 4\n", "trajectories = 2\n", "span = [[0, 5], [1, 3]]\n")
                   .problem.impulses_differ());
}

TEST_F(ImpulsesOfAFile, are_at_the_save_points_that_roundings_keep_apart) {
  const std::string doses = "[[impulses]]\ncomponent = 0\nchange = 1\n";
  for (const char* save : {"save = { every = 0.1 }\n", "save = 11\n"}) {
    for (const char* when : {"times = [0.3, 0.6, 0.7]\n", "every = 0.1\n"}) {
      const ode::Problem problem =
          set_up(doses + when, "trajectories = 3\n", std::string("span = [0, 1]\n") + save).problem;
      for (const ode::Impulse& impulse : problem.impulses)
        EXPECT_THAT(problem.save_times, testing::Contains(impulse.time)) << save << when;
    }
  }
  // Others stay.
  EXPECT_THAT(
      times(set_up(doses + "times = [0.3000000001]\n", "trajectories = 3\n", "span = [0, 1]\nsave = 11\n").problem, 0),
      ElementsAre(0.3000000001));
}

TEST(RepeatedTimes, meet_an_end_that_roundings_alone_keep_from_them) {
  const auto of = [](double start, double end, double interval) {
    return repeated_times(start, end, interval, 1e6, "");
  };
  ASSERT_EQ(1.7e9 + 3 * 0.1, 1700000000.3);
  for (const auto& [start, end, interval, count] : std::vector<std::tuple<double, double, double, std::size_t>>{
           {1.7e9, 1700000000.3, 0.1, 4},
           {1700000000.3, 1.7e9, 0.1, 4},
           {1700000000.5, 1700000010.1, 1.2, 9},
           {1699920000.2, 1699920600.2, 0.6, 1001},
           {-1.7e9, -1.7e9 + 0.3, 0.1, 4},
           {0, 1, 0.1, 11},
           // Short of it by more than roundings they end before it.
           {1.7e9, 1700000000.2999, 0.1, 3},
           {0, 0.999999, 0.1, 10},
           {0, 1.05, 0.1, 11}}) {
    const std::vector<double> times = of(start, end, interval);
    EXPECT_EQ(times.size(), count) << start << " to " << end;
    const double last = start + (end < start ? -1 : 1) * interval * static_cast<double>(count - 1);
    EXPECT_EQ(times.back(), std::abs(last - end) < 1e-6 ? end : last) << start << " to " << end;
  }
  // Intervals of a few units in the last place: times ascend to the end and not beyond it.
  const std::vector<double> close = of(1.7e9, 1.7e9 + 1e-4, 1e-6);
  EXPECT_TRUE(std::ranges::is_sorted(close) && close.back() <= 1.7e9 + 1e-4);
}

TEST_F(ImpulsesOfAFile, changes_and_factors_may_be_each_trajectorys_own) {
  const std::string table = "[[impulses]]\ncomponent = 0\ntimes = [1, 2]\n";
  const ode::Problem listed = set_up(table + "change = [3, 4, 5]\nfactor = 0.5\n").problem;
  EXPECT_THAT(numbers(listed, 1), ElementsAre(Row{1, 0, 4, 0.5}, Row{2, 0, 4, 0.5}));
  const ode::Problem spread = set_up(table + "change = { linspace = [1, 2] }\nfactor = { box = [0.2, 0.4] }\n").problem;
  EXPECT_EQ(spread.impulses_of(1)[0].change, 1.5);
  EXPECT_EQ(spread.impulses_of(1)[0].factor, spread.impulses_of(1)[1].factor);
  EXPECT_NE(spread.impulses_of(1)[0].factor, spread.impulses_of(2)[0].factor);
  // Numbers of a trajectory are the same in an ensemble of any size, and other than those of a second table.
  const std::string drawn = table + "change = { normal = { mean = 0, std = 1 } }\n";
  const ode::Problem few = set_up(drawn).problem, many = set_up(drawn + drawn, "trajectories = 20\n").problem;
  EXPECT_EQ(few.impulses_of(2)[0].change, many.impulses_of(2)[0].change);
  EXPECT_NE(many.impulses_of(2)[1].change, many.impulses_of(2)[0].change);
  write("p.csv", "dose\n7\n8\n9\n");
  EXPECT_EQ(set_up(table + "change = { file = \"p.csv\", columns = \"dose\" }\n").problem.impulses_of(2)[0].change, 9);
  // A list as long as the times is hardly an ensemble of as many.
  EXPECT_THAT(refused(table + "change = [3, 4]\n", ""),
              HasSubstr("impulses[0].change: found a list of 2 numbers, one for each trajectory, expected as many as "
                        "trajectories, of which there is 1; set ensemble.trajectories = 2, or write a table"));
  for (const char* const trajectories : {"trajectories = 3\n", "trajectories = 1\n"}) {
    EXPECT_THAT(refused(table + "change = [3, 4]\n", trajectories),
                HasSubstr("one for each trajectory, expected as many as trajectories, of which there "));
    EXPECT_THAT(refused(table + "change = [3, 4]\n", trajectories),
                HasSubstr("; write a table of [[impulses]] for each time"));
  }
  EXPECT_THAT(refused("[[impulses]]\ncomponent = 0\ntimes = [1, 2, 3]\nchange = [3, 4]\n"),
              HasSubstr("found 2 rows, expected at least 3"));
  EXPECT_FALSE(set_up(table + "change = { box = [1, 2] }\n", "").problem.impulses_differ());
}

TEST_F(ImpulsesOfAFile, rows_of_a_csv_are_of_all_or_of_one_trajectory) {
  const std::string table = "[[impulses]]\nfile = \"doses.csv\"\n";
  write("doses.csv", "time,component,change\n5,z,1\n2,0,3\n");
  const ode::Problem shared = set_up(table).problem;
  EXPECT_FALSE(shared.impulses_differ());
  EXPECT_THAT(numbers(shared, 0), ElementsAre(Row{2, 0, 3, 1}, Row{5, 2, 1, 1}));
  write("doses.csv", "trajectory;time;change;factor\n2;5;1;0.5\n0;2;3;1\n2;1;0;0.25\n");
  const ProblemSetup own = set_up(table + "component = \"y\"\n[[impulses]]\ncomponent = 0\nchange = 9\ntimes = 2\n");
  EXPECT_THAT(numbers(own.problem, 0), ElementsAre(Row{2, 1, 3, 1}, Row{2, 0, 9, 1}));
  EXPECT_THAT(numbers(own.problem, 1), ElementsAre(Row{2, 0, 9, 1}));
  EXPECT_THAT(numbers(own.problem, 2), ElementsAre(Row{1, 1, 0, 0.25}, Row{2, 0, 9, 1}, Row{5, 1, 1, 0.5}));
  EXPECT_EQ(own.impulses, "1 to 3 changes of each trajectory's own, of x, y, at t = 1 to 5");
}

TEST_F(ImpulsesOfAFile, of_the_first_trajectories_alone_those_of_others_are_left_out) {
  write("doses.csv", "trajectory,time,component,change\n0,1,x,1\n2,2,x,2\n2000,3,x,3\n");
  const auto of_the_first = [&](std::size_t trajectories, const std::string& row = "") {
    if (!row.empty()) write("doses.csv", "trajectory,time,component,change\n" + row);
    ProblemFile file = parse_problem_file(
        "[rhs]\nsystem = \"lorenz\"\n[ensemble]\ntrajectories = 3000\n[time]\nspan = [0, 10]\n"
        "[[impulses]]\nfile = \"doses.csv\"\n",
        folder_ / "p.toml");
    ProblemOverrides overrides;
    overrides.trajectories = trajectories;
    apply(overrides, file);
    return cli::set_up(file);
  };
  const ProblemSetup three = of_the_first(3);
  EXPECT_THAT(numbers(three.problem, 0), ElementsAre(Row{1, 0, 1, 1}));
  EXPECT_THAT(times(three.problem, 1), IsEmpty());
  EXPECT_THAT(numbers(three.problem, 2), ElementsAre(Row{2, 0, 2, 1}));
  EXPECT_THAT(times(of_the_first(1).problem, 0), ElementsAre(1));
  EXPECT_THAT(times(of_the_first(2001).problem, 2000), ElementsAre(3));
  EXPECT_TRUE(of_the_first(3, "2000,3,x,3\n").problem.impulses.empty());
  EXPECT_THAT(message_of([&] { of_the_first(3, "0.5,3,x,3\n"); }), HasSubstr("a trajectory's number, from 0 to 2"));
  EXPECT_THAT(message_of([&] { of_the_first(3, "-1,3,x,3\n"); }), HasSubstr("a trajectory's number, from 0 to 2"));
  // A file's own number is no choice of its first.
  EXPECT_THAT(refused("[[impulses]]\nfile = \"doses.csv\"\n"), HasSubstr("a trajectory's number, from 0 to 2"));
}

TEST_F(ImpulsesOfAFile, a_csv_that_does_not_fit_is_told_line_and_column) {
  EXPECT_THAT(refused_csv("time,component,chnge\n5,z,1\n"),
              HasSubstr("p.toml:9: impulses[0].file: found column \"chnge\" in "));
  EXPECT_THAT(refused_csv("time,component,chnge\n5,z,1\n"), HasSubstr("did you mean \"change\"?"));
  EXPECT_THAT(refused_csv("component,change\nz,1\n"), HasSubstr("time"));
  EXPECT_THAT(refused_csv("time,change\n5,1\n"), HasSubstr("found no column component"));
  EXPECT_THAT(refused_csv("time,component\n5,z\n"), HasSubstr("found neither a column change nor one factor"));
  EXPECT_THAT(refused_csv("time,component,change\n5,z,1\n6,w,1\n"),
              HasSubstr("doses.csv:3, column component: found \"w\", expected one of x, y, z"));
  EXPECT_THAT(refused_csv("time,component,change\n5,3,1\n"),
              HasSubstr("doses.csv:2, column component: found 3, expected a component from 0 to 2"));
  EXPECT_THAT(refused_csv("time,component,change\n5,1.5,1\n"), HasSubstr("found 1.5, expected a component's name"));
  EXPECT_THAT(refused_csv("time,component,change\n5,,1\n"), HasSubstr("found an empty field, expected a component's"));
  EXPECT_THAT(refused_csv("time,component,change\n5,z,nan\n"),
              HasSubstr("doses.csv:2, column change: found \"nan\", expected a finite number"));
  for (const char* number : {"3", "-1", "0.5"}) {
    EXPECT_THAT(refused_csv("time,component,change,trajectory\n5,z,1," + std::string(number) + "\n"),
                HasSubstr("doses.csv:2, column trajectory: found " + std::string(number) +
                          ", expected a trajectory's number, from 0 to 2"));
  }
  EXPECT_THAT(refused_csv("time,component,change\n5,z,1\n", "change = 3\n"),
              HasSubstr("impulses[0].change: found change beside the column of "));
  EXPECT_THAT(refused("[[impulses]]\nfile = \"none.csv\"\n"), HasSubstr("none.csv: found no readable file"));
}

TEST_F(ImpulsesOfAFile, those_that_no_trajectory_meets_are_told) {
  const std::string table = "[[impulses]]\ncomponent = 0\nchange = 1\ntimes = ";
  EXPECT_THAT(
      refused(table + "[24, 48]\n"),
      HasSubstr("impulses[0].times: found t = 24, and none within a span, expected times within spans, from 0 to "
                "before 10; give times in the unit of time.span"));
  EXPECT_THAT(set_up(table + "[0, 10, 12]\n").notes, ElementsAre(HasSubstr("2 of 3 impulses of ")));
  EXPECT_THAT(set_up(table + "[0, 10]\n").notes[0],
              HasSubstr("impulses[0].times does nothing: t = 10 lies outside spans, from 0 to before 10"));
  write("doses.csv", "time,component,change,trajectory\n2,z,1,0\n2,z,1,1\n");
  EXPECT_THAT(
      set_up("[[impulses]]\nfile = \"doses.csv\"\n", "trajectories = 2\n", "span = [[0, 1], [1, 3]]\n").notes[0],
      HasSubstr("1 of 2 impulses of "));
}

TEST_F(ImpulsesOfAFile, what_does_not_go_with_them_is_refused) {
  const std::string table = "[[impulses]]\ncomponent = 0\ntimes = 2.5\n";
  const std::string three = "trajectories = 3\n", span = "span = [0, 10]\n";
  EXPECT_THAT(refused("[[impulses]]\ncomponent = \"w\"\nchange = 1\ntimes = 1\n"),
              HasSubstr("p.toml:9: impulses[0].component: found \"w\", expected one of x, y, z"));
  EXPECT_THAT(refused(table + "change = 1\n", three, "span = [10, 0]\n"),
              HasSubstr("impulses[0].times: found a span that runs backwards, that of trajectory 0"));
  EXPECT_THAT(
      refused(table + "change = 1\n", three, span, "dt = 1\n"),
      HasSubstr("p.toml:9: impulses: found 2.5 within a step of trajectory 0, expected times at which fixed steps "
                "end; choose a dt"));
  EXPECT_EQ(refused(table + "change = 1\n", three, span, "dt = 0.5\n"), "no error");
  EXPECT_THAT(refused(table + "change = { box = [0, 1] }\n", three, span, "control = \"common\"\n"),
              HasSubstr("method.control: found common with impulses of each trajectory's own"));
  EXPECT_EQ(refused(table + "change = 1\n", three, span, "control = \"common\"\n"), "no error");
  EXPECT_THAT(refused("[[impulses]]\ncomponent = 0\nchange = 1\nevery = 1e-9\n"),
              HasSubstr("impulses[0].every: found 1e-09, which makes 1e+10 times, expected at most 1e+07 times"));
}

// They are told in a line of their own.
TEST_F(ImpulsesOfAFile, steps_that_end_at_them_are_no_jumps_of_the_right_hand_side) {
  EXPECT_THAT(set_up("[[impulses]]\ncomponent = 0\nchange = 1\nevery = 1\n").step_lines(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::cli

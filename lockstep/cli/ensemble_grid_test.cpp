#include "lockstep/cli/ensemble_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/core/testing/message_of.h"

namespace lockstep::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// dx/dt = a, dy/dt = b, in which b has no default.
ProblemSetup set_up_grid(const std::string& grid, const std::string& ensemble = "initial_state = [1, 2]\n",
                         const std::string& parameters = "[\"a\", \"b\"]") {
  return set_up(parse_problem_file("[rhs]\nparameters = " + parameters +
                                       "\n[rhs.equations]\nx = \"a\"\ny = \"b\"\n[ensemble]\n" + ensemble +
                                       "[ensemble.grid]\n" + grid + "[time]\nspan = [0, 1]\n",
                                   testing::TempDir() + "/p.toml"));
}

std::string grid_message(const std::string& grid, const std::string& ensemble = "initial_state = [1, 2]\n",
                         const std::string& parameters = "[\"a\", \"b\"]") {
  return message_of([&] { set_up_grid(grid, ensemble, parameters); });
}

TEST(EnsembleGrid, each_combination_is_there_once_and_the_last_name_is_the_fastest) {
  const ProblemSetup setup = set_up_grid("b = { linspace = [0, 2, 3] }\ny = [7, 8]\na = { logspace = [1, 100, 2] }\n");
  EXPECT_THAT(setup.grid, ElementsAre(Pair("b", 3), Pair("y", 2), Pair("a", 2)));
  EXPECT_THAT(setup.problem.parameters, ElementsAre(1, 0, 100, 0, 1, 0, 100, 0,  //
                                                    1, 1, 100, 1, 1, 1, 100, 1,  //
                                                    1, 2, 100, 2, 1, 2, 100, 2));
  EXPECT_THAT(setup.problem.initial_states, ElementsAre(1, 7, 1, 7, 1, 8, 1, 8, 1, 7, 1, 7, 1, 8, 1, 8,  //
                                                        1, 7, 1, 7, 1, 8, 1, 8));
}

TEST(EnsembleGrid, what_is_no_axis_is_given_as_ever) {
  const std::string axes = "x = [3, 4]\nb = [5, 6, 7]\n";
  const ProblemSetup setup = set_up_grid(axes, "initial_state = { y = 9 }\nparameters = { a = [1, 2, 3, 4, 5, 6] }\n");
  EXPECT_THAT(setup.problem.initial_states, ElementsAre(3, 9, 3, 9, 3, 9, 4, 9, 4, 9, 4, 9));
  EXPECT_THAT(setup.problem.parameters, ElementsAre(1, 5, 2, 6, 3, 7, 4, 5, 5, 6, 6, 7));
  // Random numbers are those of an ensemble without the grid.
  const std::string random = "initial_state = { normal = { mean = 0, std = 1 } }\nparameters = { a = 1 }\n";
  const ProblemSetup drawn = set_up_grid("b = [1, 2]\n", random);
  const ProblemSetup plain =
      set_up(parse_problem_file("[rhs]\nparameters = [\"a\", \"b\"]\n[rhs.equations]\nx = \"a\"\ny = \"b\"\n"
                                "[ensemble]\ntrajectories = 2\ninitial_state = { normal = { mean = 0, std = 1 } }\n"
                                "parameters = [1, 2]\n[time]\nspan = [0, 1]\n",
                                "p.toml"));
  EXPECT_EQ(drawn.problem.initial_states, plain.problem.initial_states);
}

TEST(EnsembleGrid, an_axis_of_each_component_needs_no_initial_state) {
  EXPECT_THAT(set_up_grid("x = [1, 2]\ny = [3]\n", "", "{ a = 1, b = 2 }").problem.initial_states,
              ElementsAre(1, 3, 2, 3));
  EXPECT_THAT(grid_message("x = [1, 2]\n", "", "{ a = 1, b = 2 }"),
              HasSubstr("ensemble.initial_state: found no value for y, expected one for each component (x, y)"));
  EXPECT_THAT(grid_message("a = [1, 2]\n"), HasSubstr("ensemble.parameters: found no value for b"));
}

TEST(EnsembleGrid, values_may_lie_in_a_file) {
  std::ofstream(testing::TempDir() + "/grid.csv") << "dose\n5\n6\n";
  const ProblemSetup setup = set_up_grid("a = { file = \"grid.csv\", columns = \"dose\" }\nb = [1]\n");
  EXPECT_THAT(setup.problem.parameters, ElementsAre(5, 1, 6, 1));
}

TEST(EnsembleGrid, counts_that_differ_from_the_grids_are_refused) {
  const std::string axes = "a = [1, 2]\nb = { linspace = [0, 1, 3] }\n";
  const std::string expected = ", expected 6, one for each combination of ensemble.grid (a 2 x b 3); ";
  EXPECT_THAT(grid_message(axes, "trajectories = 5\ninitial_state = [1, 2]\n"),
              AllOf(HasSubstr("p.toml:7: ensemble.trajectories: found 5" + expected), HasSubstr("leave it out")));
  EXPECT_EQ(set_up_grid(axes, "trajectories = 6\ninitial_state = [1, 2]\n").problem.trajectories(), 6u);
  EXPECT_THAT(
      grid_message(axes, "initial_state = [[1, 2], [3, 4]]\n"),
      AllOf(HasSubstr("p.toml:7: ensemble.initial_state: found 2 rows" + expected), HasSubstr("into [ensemble.grid]")));
  EXPECT_THAT(grid_message(axes, "initial_state = { x = { linspace = [1, 2] }, y = 0 }\n"),
              AllOf(HasSubstr("ensemble.initial_state.x.linspace: found a range to spread over trajectories, beside "
                              "ensemble.grid"),
                    HasSubstr("move it into [ensemble.grid] with a number of points, [low, high, 11]")));
  EXPECT_THAT(grid_message("a = { linspace = [0, 1, 1e15] }\nb = { linspace = [0, 1, 1e15] }\n"),
              HasSubstr("expected fewer combinations"));
  EXPECT_THAT(grid_message("a = { linspace = [0, 1, 1e15] }\nb = [1]\n"), HasSubstr("; take fewer values on its axes"));
}

TEST(EnsembleGrid, an_axis_that_is_none_says_what_to_write) {
  EXPECT_THAT(grid_message("a = { linspace = [0, 1] }\nb = [1]\n"),
              HasSubstr("p.toml:9: ensemble.grid.a: found a range without a number of points, expected how many values "
                        "the grid has of a; add a third number: a = { linspace = [low, high, 11] }"));
  EXPECT_THAT(grid_message("a = 3\nb = [1]\n"), HasSubstr("ensemble.grid.a: found 3, expected the values of an axis"));
  EXPECT_THAT(grid_message("a = { box = [0, 1] }\n"),
              HasSubstr("ensemble.grid.a: found random numbers, expected the values"));
  EXPECT_THAT(grid_message("aa = [1]\n"),
              AllOf(HasSubstr("found neither a component nor a parameter, expected one of x, y, "
                              "a, b"),
                    HasSubstr("did you mean \"a\"?")));
  EXPECT_THAT(
      grid_message("a = [1]\n", "initial_state = [1, 2]\nparameters = { a = 1, b = 2 }\n"),
      HasSubstr("p.toml:10: ensemble.grid.a: found a parameter that has a value of its own, expected one place for "
                "each; remove it here, or from "));
  EXPECT_THAT(grid_message(""), HasSubstr("ensemble.grid: found an empty table"));
}

}  // namespace
}  // namespace lockstep::cli

// A file of another program that does not say how it was solved: where it differs from an adaptive solution by more
// than rounding, nobody knows whether that is a mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "lockstep/agreement/testing/ensembles.h"
#include "lockstep/agreement/verdict.h"

namespace lockstep::agreement {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Stated = std::vector<std::pair<std::string, std::string>>;

struct StatedSolver : ::testing::Test {
  const ode::Problem problem = testing::lotka_volterra(100, 4);
  const ode::Options coarse = testing::adaptive(Precision::f64, 1e-8, "dopri5");
  const ode::Options fine = testing::adaptive(Precision::f64, 1e-12, "dop853");
  const HeldEnsemble ours = testing::solved(problem, coarse);

  HeldEnsemble by(const ode::Options& options, Stated provenance) const {
    Numbers numbers = numbers_of(ode::solve(problem, options));
    numbers.name = "theirs";
    numbers.provenance = std::move(provenance);
    return {problem, std::move(numbers)};
  }
};

TEST_F(StatedSolver, one_that_is_silent_gets_no_verdict_where_it_differs) {
  for (const Stated& said : {Stated{}, Stated{{"method", "dopri5"}}, Stated{{"rtol", "1e-08"}, {"atol", "1e-08"}}}) {
    const HeldEnsemble theirs = by(fine, said);
    for (const Verdict& verdict : {judge(ours, theirs), judge(theirs, ours)}) {
      EXPECT_EQ(verdict.outcome, Outcome::undecided) << verdict.sentence;
      EXPECT_THAT(verdict.sentence, HasSubstr("theirs does not state how it was solved ("));
      EXPECT_THAT(verdict.reasons, Contains(HasSubstr("In units of the solution's size, the median trajectory")));
      EXPECT_THAT(verdict.reasons, Contains(HasSubstr(" as attributes of theirs: if they are those of ours")));
      EXPECT_LE(verdict.reasons.size(), 5u);
      EXPECT_TRUE(verdict.evidence);
    }
  }
}

TEST_F(StatedSolver, one_that_is_silent_agrees_where_the_numbers_do) {
  EXPECT_EQ(judge(ours, by(coarse, {})).outcome, Outcome::agree);
  Numbers numbers = numbers_of(ode::solve(problem, coarse));
  for (double& x : numbers.states) x *= 1 + 0x1p-52;
  const Verdict rounded = judge(ours, HeldEnsemble(problem, std::move(numbers)));
  EXPECT_EQ(rounded.outcome, Outcome::agree) << rounded.sentence;
  EXPECT_FALSE(rounded.same_bits);
}

// What proves that a port is wrong stays proof where both say the same, and where both are ours.
TEST_F(StatedSolver, those_that_say_the_same_disagree) {
  EXPECT_EQ(judge(ours, by(fine, testing::stated(coarse))).outcome, Outcome::disagree);
  const HeldEnsemble fixed = testing::solved(problem, testing::fixed_rk4());
  EXPECT_EQ(judge(fixed, by(fine, testing::stated(testing::fixed_rk4()))).outcome, Outcome::disagree);
  EXPECT_EQ(judge(fixed, by(fine, {})).outcome, Outcome::disagree);  // a port of fixed steps is taken to make them
}

TEST_F(StatedSolver, files_of_other_programs_that_say_nothing_get_no_verdict) {
  const Stated foreign{{"lockstep_format", "ensemble 1"}};
  const Verdict verdict = judge(by(coarse, foreign), by(fine, foreign), {.lyapunov = 0.01});
  EXPECT_EQ(verdict.outcome, Outcome::undecided) << verdict.sentence;
  EXPECT_THAT(verdict.sentence, HasSubstr("does not state how it was solved"));
}

}  // namespace
}  // namespace lockstep::agreement

// Solves in float64 against the oracle's end states, and the oracle against its own file and a known solution.
#include "oracle.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "reference.h"

namespace lockstep::validation {
namespace {

const std::string kFile = LOCKSTEP_ORACLE;

class EveryProblem : public testing::TestWithParam<std::string> {
 protected:
  const PublishedProblem& published = published_problem(GetParam());
  const OracleValue oracle = read_oracle_value(kFile, GetParam());
};
INSTANTIATE_TEST_SUITE_P(Oracle, EveryProblem, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const PublishedProblem& p : published_problems()) names.push_back(p.name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

TEST_P(EveryProblem, is_known_far_better_than_float64_can_solve_it) {
  // 2^-53 = 1.1e-16 is half a unit in the last place of 1: what storing the end state costs, before any step.
  EXPECT_GT(oracle.uncertainty, 0);
  EXPECT_LT(oracle.uncertainty, 1e-3 * 0x1p-53);
  EXPECT_EQ(oracle.end_state.size(), published.problem.initial_states.size());
}

TEST_P(EveryProblem, is_solved_within_the_bound_and_converges) {
  const Reference reference(published.problem, oracle.end_state);
  for (const char* method : {"tsit5", "dop853", "vern7", "vern9"}) {
    for (const double tolerance : {1e-6, 1e-9, 1e-12}) reference.expect_within_bound(tight(method, tolerance));
  }
  reference.expect_convergence(300);  // a single end state: errors cancel now and then (detest_c2)
}

TEST(Oracle, makes_what_its_file_holds) {
  // Step sizes depend on the C library's pow; the end state on them by less than the file's uncertainty.
  for (const char* name : {"harmonic_oscillator", "brusselator"}) {
    const OracleValue value = read_oracle_value(kFile, name);
    const auto made = oracle_end_state(published_problem(name), kOracleCheckTolerance);
    EXPECT_LE(largest_difference(made, value.digits), 2 * value.uncertainty) << name;
  }
}

TEST(Oracle, knows_the_cosine_of_ten) {
  // cos 10 and -sin 10 to 30 digits.
  const std::vector<std::string> exact{"-0.839071529076452452258863947824", "0.544021110889369813404747661851"};
  const OracleValue value = read_oracle_value(kFile, "harmonic_oscillator");
  EXPECT_LT(largest_difference(value.digits, exact), value.uncertainty);
}

TEST(Oracle, knows_what_the_scalar_problems_of_detest_come_to) {
  // e^-20, 1/sqrt(21), e^(sin 20), 20/(1 + 19 e^-5)
  const std::pair<const char*, const char*> exact[] = {{"detest_a1", "2.061153622438557827965940380155820976376e-9"},
                                                       {"detest_a2", "0.2182178902359923812660974854156194518564"},
                                                       {"detest_a3", "2.491650271850414523461175372365122620338"},
                                                       {"detest_a4", "17.7301664813148398488682900585529623114"}};
  for (const auto& [name, digits] : exact) {
    const OracleValue value = read_oracle_value(kFile, name);
    EXPECT_LT(largest_difference(value.digits, {digits}), value.uncertainty) << name;
  }
}

}  // namespace
}  // namespace lockstep::validation

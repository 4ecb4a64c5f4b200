// A float64 solution beside a float32 one, by adaptive steps: step sizes answer to float32's noise.
#include <gmock/gmock.h>

#include <utility>

#include "lockstep/agreement/solved_again.h"
#include "lockstep/agreement/testing/ensembles.h"
#include "lockstep/agreement/verdict.h"
#include "lockstep/ode/function.h"

namespace lockstep::agreement {
namespace {

using ::testing::HasSubstr;

// Van der Pol's oscillator: all trajectories come to one cycle.
ode::Problem van_der_pol(double mu) {
  ode::Problem problem;
  problem.rhs = ode::function<2, 1>("van der pol", [](auto, const auto& u, const auto& p, auto& du) {
    using T = std::decay_t<decltype(u[0])>;
    du[0] = u[1];
    du[1] = p[0] * (T(1) - u[0] * u[0]) * u[1] - u[0];
  });
  problem.parameters = {mu};
  problem.end_times = {60};
  for (int k = 0; k <= 100; ++k) problem.save_times.push_back(0.6 * k);
  const Random random(1);
  for (std::uint64_t i = 0; i < 100; ++i) {
    problem.initial_states.push_back(2 * random.uniform(i, 0));
    problem.initial_states.push_back(random.uniform(i, 1));
  }
  return problem;
}

struct MixedPrecision : ::testing::Test {
  const ode::Problem problem = van_der_pol(1);

  static ode::Options steps(Precision precision) { return testing::adaptive(precision, 1e-4); }

  // The solution of another mu is held for one of this problem.
  HeldEnsemble solved(Precision precision, double mu = 1) const {
    Numbers numbers = numbers_of(ode::solve(van_der_pol(mu), steps(precision)));
    numbers.name = precision == Precision::f64 ? "wide" : "narrow";
    numbers.provenance = testing::stated(steps(precision));
    return {problem, std::move(numbers)};
  }

  Verdict judged(const Ensemble& a, const Ensemble& b) const {
    const auto members = [&](const Ensemble& of, const CertificateOptions& which, OtherBits other_bits) {
      return solve_again(of, which, solved_for(a, b, other_bits),
                         [&](Precision precision, const CertificateOptions& how) {
                           return make_certificate(problem, steps(precision), how);
                         });
    };
    Settings settings;
    settings.certificate = members(a, {}, OtherBits::refuse);
    settings.examine = [&](const std::vector<std::size_t>& chosen) {
      return members(a, {.chosen = chosen, .members = kOwnMembers}, OtherBits::tell);
    };
    return judge(a, b, settings);
  }
};

TEST_F(MixedPrecision, right_solutions_agree_in_either_order) {
  const HeldEnsemble wide = solved(Precision::f64), narrow = solved(Precision::f32);
  const Verdict one = judged(wide, narrow), other = judged(narrow, wide);
  EXPECT_EQ(one.outcome, Outcome::agree) << one.sentence;
  EXPECT_EQ(other.outcome, Outcome::agree) << other.sentence;
  EXPECT_NEAR(one.evidence->spread_tier.worst_ratio, other.evidence->spread_tier.worst_ratio, 0.1);
}

TEST_F(MixedPrecision, wrong_ones_disagree_in_either_order) {
  const HeldEnsemble wide = solved(Precision::f64), narrow = solved(Precision::f32);
  EXPECT_EQ(judged(wide, solved(Precision::f32, 1.01)).outcome, Outcome::disagree);
  EXPECT_EQ(judged(narrow, solved(Precision::f64, 1.01)).outcome, Outcome::disagree);
}

// Members of float64, however far apart they are taken to be, tell nothing of that.
TEST_F(MixedPrecision, members_of_the_finer_one_serve_no_adaptive_steps) {
  Numbers numbers = numbers_of(ode::solve(problem, steps(Precision::f64)));
  numbers.provenance = testing::stated(steps(Precision::f64));
  numbers.certificate = make_certificate(problem, steps(Precision::f64));
  const HeldEnsemble wide(problem, std::move(numbers)), narrow = solved(Precision::f32);
  EXPECT_FALSE(has_certificate(wide, narrow));
  const Verdict verdict = judge(wide, narrow);
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_THAT(verdict.sentence, HasSubstr("nothing says how much of that is rounding"));
  EXPECT_TRUE(has_certificate(wide, solved(Precision::f64)));
}

}  // namespace
}  // namespace lockstep::agreement

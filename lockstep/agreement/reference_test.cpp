// A reference whose own numbers are not what its problem gives: nothing can be said to agree with it.
#include <gmock/gmock.h>

#include <utility>

#include "lockstep/agreement/solved_again.h"
#include "lockstep/agreement/testing/ensembles.h"
#include "lockstep/agreement/verdict.h"

namespace lockstep::agreement {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

struct Reference : ::testing::Test {
  const ode::Problem problem = testing::lorenz(100, 5);
  const ode::Options steps = testing::adaptive(Precision::f64, 1e-6);
  const HeldEnsemble whole = testing::solved(problem, steps);

  // `whole`, with each state of one trajectory's last save point times 1 + relative.
  HeldEnsemble changed(std::size_t trajectory, double relative, const char* name = "damaged") const {
    Numbers numbers;
    numbers.name = name;
    numbers.states = whole.states(0, 100);
    numbers.certificate = whole.certificate();
    numbers.provenance = whole.provenance();
    double* const end = numbers.states.data() + (trajectory + 1) * whole.save_points() * 3;
    for (double* at = end - 3; at < end; ++at) *at *= 1 + relative;
    return {problem, std::move(numbers)};
  }

  Certificate members(const Ensemble& of, const std::vector<std::size_t>& chosen, OtherBits other_bits) const {
    return solve_again(of, {.chosen = chosen, .members = kOwnMembers}, {{}, {}, other_bits},
                       [&](Precision precision, const CertificateOptions& how) {
                         ode::Options options = steps;
                         options.precision = precision;
                         return make_certificate(problem, options, how);
                       });
  }
  Verdict judged(const Ensemble& a, const Ensemble& b) const {
    Settings settings;
    settings.examine = [&](const std::vector<std::size_t>& chosen) { return members(a, chosen, OtherBits::tell); };
    return judge(a, b, settings);
  }
};

TEST_F(Reference, that_is_damaged_gets_no_verdict) {
  const HeldEnsemble damaged = changed(17, 0.5);
  const Verdict verdict = judged(damaged, whole);
  EXPECT_EQ(verdict.outcome, Outcome::undecided) << verdict.sentence;
  EXPECT_THAT(verdict.sentence, HasSubstr("trajectory 17 of damaged is not what its own problem gives"));
  EXPECT_THAT(verdict.reasons, Contains(HasSubstr("The file is damaged, or was changed since it was solved.")));
  ASSERT_TRUE(verdict.evidence->spread_tier.damaged);
  EXPECT_EQ(verdict.evidence->spread_tier.damaged->time, whole.save_points() - 1);
  // With the damage in both, and a single bit beside: still no reference.
  HeldEnsemble both = changed(17, 0.5 * (1 + 0x1p-50), "both");
  EXPECT_EQ(judged(damaged, both).outcome, Outcome::undecided);
  EXPECT_EQ(judged(whole, damaged).outcome, Outcome::disagree);
}

// As other builds make them.
TEST_F(Reference, that_rounds_otherwise_serves_and_is_told) {
  const Verdict verdict = judged(changed(17, 0x1p-51, "rounded"), whole);
  EXPECT_EQ(verdict.outcome, Outcome::agree) << verdict.sentence;
  EXPECT_EQ(verdict.evidence->spread_tier.other_bits, 17u);
  EXPECT_THAT(verdict.reasons, Contains(HasSubstr("the problem in rounded gives other bits than the file holds")));
}

TEST_F(Reference, of_another_program_is_held_against_the_ports_problem) {
  const HeldEnsemble foreign = changed(17, 0.5, "foreign");
  Settings settings;
  settings.examine = [&](const std::vector<std::size_t>& chosen) {
    const auto nothing = []() -> Certificate {
      throw Error(ErrorKind::unsupported, {"foreign", "no description of its problem", "one", {}});
    };
    return examine_by(nothing, [&] { return members(whole, chosen, OtherBits::refuse); });
  };
  const Verdict verdict = judge(foreign, whole, settings);
  EXPECT_EQ(verdict.outcome, Outcome::disagree) << verdict.sentence;
  EXPECT_THAT(verdict.sentence, HasSubstr("trajectory 17 goes where rounding cannot have taken it"));
  // Where b's problem does not give b either, what is told is why a's could not be asked.
  settings.examine = [&](const std::vector<std::size_t>& chosen) {
    const auto nothing = []() -> Certificate {
      throw Error(ErrorKind::unsupported, {"foreign", "no description of its problem", "one", {}});
    };
    return examine_by(nothing, [&] { return members(foreign, chosen, OtherBits::refuse); });
  };
  EXPECT_THAT(judge(foreign, whole, settings).evidence->spread_tier.not_examined,
              HasSubstr("no description of its problem"));
}

// A component that is not finite does not excuse the others.
TEST_F(Reference, components_that_are_finite_count_beside_those_that_are_not) {
  const auto half_finite = [&](double factor, const char* name) {
    Numbers numbers;
    numbers.name = name;
    numbers.states = whole.states(0, 100);
    for (std::size_t i = 0; i < numbers.states.size(); ++i) {
      if (i / 3 % whole.save_points() == 0 || i / 3 / whole.save_points() >= 90) continue;
      if (i % 3 == 2) numbers.states[i] = std::numeric_limits<double>::quiet_NaN();
      if (i % 3 == 0) numbers.states[i] *= factor;
    }
    numbers.certificate = whole.certificate();
    numbers.provenance = whole.provenance();
    return HeldEnsemble(problem, std::move(numbers));
  };
  const HeldEnsemble ours = half_finite(1, "ours");
  EXPECT_EQ(judge(ours, half_finite(1 + 0x1p-52, "right")).outcome, Outcome::agree);
  EXPECT_EQ(judge(ours, half_finite(1.5, "wrong")).outcome, Outcome::disagree);
}

// Nothing is saved behind an event: a number there is none that rounding made, at whatever time it struck.
TEST_F(Reference, a_number_behind_an_event_is_told) {
  const auto ended = [&](double after, const char* name) {
    Numbers numbers;
    numbers.name = name;
    numbers.states = whole.states(0, 100);
    numbers.end_states.assign(300, 1);
    for (double* at = numbers.states.data() + 3 * 3; at < numbers.states.data() + 3 * whole.save_points(); ++at)
      *at = std::numeric_limits<double>::quiet_NaN();
    numbers.states[whole.save_points() * 3 - 1] = after;
    numbers.records.resize(100);
    for (ode::TrajectoryRecord& record : numbers.records) record.status = ode::Status::success, record.end_time = 5;
    numbers.records[0].status = ode::Status::terminated;
    numbers.records[0].end_time = 1.25;
    numbers.certificate = whole.certificate();
    return HeldEnsemble(problem, std::move(numbers));
  };
  const HeldEnsemble ours = ended(std::nan(""), "ours");
  EXPECT_TRUE(judge(ours, ended(std::nan(""), "same")).same_bits);
  const Verdict verdict = judge(ours, ended(0, "other"));
  EXPECT_EQ(verdict.outcome, Outcome::disagree) << verdict.sentence;
  EXPECT_THAT(verdict.reasons, Contains(HasSubstr("Trajectory 0 is finite in one solution and not in the other")));
}

}  // namespace
}  // namespace lockstep::agreement

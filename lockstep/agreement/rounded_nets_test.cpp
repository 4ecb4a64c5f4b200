// Nets on tensor cores round what they multiply: judged by members that are rounded as much, and by no others.
#include <gmock/gmock.h>

#include <cmath>
#include <iterator>

#include "lockstep/agreement/detail/rounded_nets.h"
#include "lockstep/agreement/testing/rounded_ports.h"
#include "lockstep/agreement/verdict.h"
#include "lockstep/core/error.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/ode/guard.h"

namespace lockstep::agreement {
namespace {

using testing::fixed_rk4;
using ::testing::HasSubstr;
using testing::kModes;
using testing::solve_rounded;

const ode::Options kOptions = fixed_rk4(Precision::f32);

std::string explain(const Verdict& verdict) {
  std::string text = verdict.sentence;
  for (const std::string& reason : verdict.reasons) text += "\n  " + reason;
  return text;
}

class RoundedNets : public ::testing::TestWithParam<MatrixPrecision> {
 protected:
  Settings settings(MatrixPrecision mode) const {
    Settings settings;
    settings.certificate = make_certificate(problem_, kOptions, {.matrix_precision = mode});
    settings.examine = [this, mode](const std::vector<std::size_t>& trajectories) {
      return make_certificate(problem_, kOptions,
                              {.chosen = trajectories, .members = kOwnMembers, .seed = 5, .matrix_precision = mode});
    };
    return settings;
  }

  Mlp mlp_ = testing::random_net(3);
  ode::Problem problem_ = testing::problem_of(mlp_, kSanitized ? 43 : 70, 3);
  HeldEnsemble ours_ = testing::solved(problem_, kOptions);
};

TEST_P(RoundedNets, agree_within_the_rounding_of_their_mode) {
  const HeldEnsemble port(problem_, solve_rounded(problem_, mlp_, GetParam(), kOptions));
  const Verdict verdict = judge(ours_, port, settings(GetParam()));
  EXPECT_EQ(verdict.outcome, Outcome::agree) << explain(verdict);
  EXPECT_THAT(verdict.sentence, HasSubstr("no more than " + name_of(GetParam()) + "'s rounding explains."));
  EXPECT_GT(verdict.evidence->spread_tier.examined, 0u);
  // Another net has another attractor, and parts from the start.
  EXPECT_FALSE(verdict.evidence->difference.statistics.asked());
  EXPECT_FALSE(verdict.evidence->divergence_tier.asked());
  // From either side.
  Settings of_b = settings(GetParam());
  of_b.certificate_of = Settings::Of::b;
  const Verdict reversed = judge(port, ours_, of_b);
  EXPECT_EQ(reversed.outcome, Outcome::agree) << explain(reversed);
}

TEST_P(RoundedNets, are_refused_where_more_than_rounding_is_wrong) {
  std::size_t turn = 0;
  for (const auto kind : {ActivationKind::sigmoid, ActivationKind::relu}) {
    if (!is_tried(turn++, 2)) continue;
    Mlp wrong = mlp_;
    wrong.layers[0].activation = {kind};
    const Verdict verdict = judge(ours_, HeldEnsemble(problem_, solve_rounded(problem_, wrong, GetParam(), kOptions)),
                                  settings(GetParam()));
    EXPECT_EQ(verdict.outcome, Outcome::disagree) << explain(verdict);
    EXPECT_THAT(verdict.sentence, HasSubstr(name_of(GetParam()) + "'s rounding"));
  }
  if (kSanitized) return;
  Mlp wrong = mlp_;
  for (double& weight : wrong.layers[1].weights) weight = std::abs(weight);
  const Verdict verdict =
      judge(ours_, HeldEnsemble(problem_, solve_rounded(problem_, wrong, GetParam(), kOptions)), settings(GetParam()));
  EXPECT_EQ(verdict.outcome, Outcome::disagree) << explain(verdict);
}

TEST_P(RoundedNets, find_one_wrong_trajectory) {
  Numbers numbers = solve_rounded(problem_, mlp_, GetParam(), kOptions);
  const std::size_t row = problem_.save_points() * 3;
  for (std::size_t i = 1; i < problem_.save_points(); ++i) numbers.states[41 * row + 3 * i] += 3;
  const Verdict verdict = judge(ours_, HeldEnsemble(problem_, numbers), settings(GetParam()));
  EXPECT_EQ(verdict.outcome, Outcome::disagree) << explain(verdict);
  ASSERT_TRUE(verdict.evidence->spread_tier.outlier.has_value());
  EXPECT_EQ(verdict.evidence->spread_tier.outlier->trajectory, 41u);
}

TEST_P(RoundedNets, are_no_nets_of_full_precision) {
  // One that rounds and does not say so is held to float32.
  const HeldEnsemble port(problem_, solve_rounded(problem_, mlp_, GetParam(), kOptions, MatrixPrecision::f32));
  EXPECT_EQ(judge(ours_, port).outcome, Outcome::disagree);
}

// A certificate of other rounding is no certificate, nor is a stated exponent.
TEST_P(RoundedNets, are_judged_by_no_other_rounding) {
  const HeldEnsemble port(problem_, solve_rounded(problem_, mlp_, GetParam(), kOptions));
  EXPECT_FALSE(brings_certificate(ours_, port));
  EXPECT_EQ(judge(ours_, port).outcome, Outcome::undecided);
  EXPECT_EQ(judge(ours_, port, {.lyapunov = 0.9}).outcome, Outcome::undecided);
  Numbers certified = solve_rounded(problem_, mlp_, GetParam(), kOptions);
  certified.certificate = make_certificate(problem_, kOptions, {.matrix_precision = GetParam()});
  const HeldEnsemble with(problem_, certified);
  EXPECT_TRUE(brings_certificate(ours_, with));
  const Verdict verdict = judge(ours_, with);
  EXPECT_EQ(verdict.outcome, Outcome::agree) << explain(verdict);
  EXPECT_THAT(verdict.evidence->spread.source, HasSubstr("as " + name_of(GetParam()) + " rounds products, stored in"));
}

// The sanitizers see the same code in every mode.
INSTANTIATE_TEST_SUITE_P(Modes, RoundedNets,
                         ::testing::ValuesIn(std::begin(kModes),
                                             std::begin(kModes) + (kSanitized ? 1 : std::size(kModes))),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(with_moved_weights, moves_each_weight_within_twice_the_roundoff_and_nothing_else) {
  const Mlp mlp = testing::random_net(1);
  const double most = 2 * factor_roundoff(MatrixPrecision::bf16);
  const ode::Rhs clamped = ode::clamp_to_range(ode::net(mlp), {{-1, -1, -1}, {1, 1, 1}});
  const ode::Rhs moved = with_moved_weights(ode::sum(ode::system("lorenz"), clamped), MatrixPrecision::bf16, 1, 0);
  const auto parts = moved->parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(std::get<ode::SystemPart>(parts[0].what).name, "lorenz");
  const auto& net = std::get<ode::NetPart>(parts[1].what);
  ASSERT_NE(net.range.minimum, nullptr);
  EXPECT_THAT(*net.range.minimum, ::testing::ElementsAre(-1, -1, -1));
  double farthest = 0;
  for (std::size_t i = 0; i < mlp.layers.size(); ++i) {
    EXPECT_EQ(net.mlp->layers[i].bias, mlp.layers[i].bias);
    for (std::size_t j = 0; j < mlp.layers[i].weights.size(); ++j) {
      const double w = mlp.layers[i].weights[j], by = std::abs(net.mlp->layers[i].weights[j] - w);
      EXPECT_LE(by, most * std::abs(w) * (1 + 1e-12));
      farthest = std::max(farthest, by / std::abs(w));
    }
  }
  EXPECT_GT(farthest, 0.95 * most);
  const ode::Rhs other = with_moved_weights(ode::net(mlp), MatrixPrecision::bf16, 1, 1);
  EXPECT_NE(with_moved_weights(ode::net(mlp), MatrixPrecision::bf16, 1, 0)->digest(), other->digest());
}

TEST(with_moved_weights, refuses_what_it_does_not_know) {
  const auto rhs = ode::testing::plain_function(1, 0, [](double, auto u, auto, auto out) { out(0) = u(0); });
  EXPECT_THROW(with_moved_weights(rhs, MatrixPrecision::tf32, 0, 0), Error);
}

}  // namespace
}  // namespace lockstep::agreement

// A net with one steep unit, advanced by adaptive steps in float32 to a tolerance of 8 roundings: in a few trajectories
// of 10,000 a step is accepted whose error is ten thousand times that, and rounding decides in which.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/agreement/scale.h"
#include "lockstep/agreement/testing/ensembles.h"
#include "lockstep/agreement/verdict.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/model.h"

namespace lockstep::agreement {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::size_t kTrajectories = 10'000;
constexpr std::size_t kSaves = 101;
constexpr const char* kSlow = "slow under the sanitizers, where the tests beside run the same code";

Mlp lorenz_net() { return nn::to_mlp(nn::load(LOCKSTEP_LORENZ_NET)); }

// The same net, its hidden units in another order: the same sums, rounded otherwise.
Mlp shuffled(Mlp net, std::uint64_t seed) {
  DenseLayer &hidden = net.layers[0], &output = net.layers[1];
  const Random random(seed);
  for (std::size_t i = hidden.outputs - 1; i > 0; --i) {
    const std::size_t j = random.bits(0, static_cast<std::uint32_t>(i)) % (i + 1);
    for (std::size_t c = 0; c < hidden.inputs; ++c)
      std::swap(hidden.weights[i * hidden.inputs + c], hidden.weights[j * hidden.inputs + c]);
    std::swap(hidden.bias[i], hidden.bias[j]);
    for (std::size_t o = 0; o < output.outputs; ++o)
      std::swap(output.weights[o * output.inputs + i], output.weights[o * output.inputs + j]);
  }
  return net;
}

ode::Problem ensemble(ode::Rhs rhs) {
  ode::Problem problem;
  problem.rhs = std::move(rhs);
  problem.end_times = {1};
  for (std::size_t k = 0; k < kSaves; ++k) problem.save_times.push_back(0.01 * static_cast<double>(k));
  problem.save_times.back() = 1;
  const Random random(1);
  for (std::size_t i = 0; i < kTrajectories; ++i) {
    for (std::uint32_t c = 0; c < 3; ++c)
      problem.initial_states.push_back((c == 0 ? 1 : 0) + 0.1 * random.normal(i, c));
  }
  return problem;
}

struct AcceptedSteps : ::testing::Test {
  static void SetUpTestSuite() {
    if (kSanitized) return;
    problem_ = new ode::Problem(ensemble(ode::net(lorenz_net())));
    ours_ = new HeldEnsemble(testing::solved(*problem_, steps()));
  }
  static void TearDownTestSuite() {
    delete std::exchange(ours_, nullptr);
    delete std::exchange(problem_, nullptr);
  }
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << kSlow;
  }

  static ode::Options steps() { return testing::adaptive(Precision::f32, 1e-6); }

  static std::vector<double> states_by(ode::Rhs rhs) {
    ode::Problem other = *problem_;
    other.rhs = std::move(rhs);
    return numbers_of(ode::solve(other, steps())).states;
  }
  static Verdict judged(std::vector<double> states, bool by_accepted_steps = true) {
    Settings settings;
    settings.examine = [&](const std::vector<std::size_t>& chosen) {
      return make_certificate(*problem_, steps(), {.chosen = chosen, .members = kOwnMembers});
    };
    if (by_accepted_steps) {
      settings.solved_by = [&](std::size_t i) { return Settings::OwnProblem{problem_->part(i, 1), steps()}; };
    }
    Numbers numbers;
    numbers.name = "port";
    numbers.precision = Precision::f32;
    numbers.states = std::move(states);
    numbers.provenance = testing::stated(steps());
    return judge(*ours_, HeldEnsemble(*problem_, std::move(numbers)), settings);
  }
  static double* at(std::vector<double>& states, std::size_t trajectory, std::size_t save) {
    return states.data() + (trajectory * kSaves + save) * 3;
  }
  // The right solution from a trajectory's state at a save point on, after what `change` does to that.
  template <class F>
  static void go_on(std::vector<double>& states, std::size_t trajectory, std::size_t save, ode::Rhs rhs, F change) {
    double* const from = at(states, trajectory, save);
    for (std::size_t c = 0; c < 3; ++c) from[c] = change(from[c], c);
    ode::Problem rest = problem_->part(trajectory, 1);
    rest.rhs = std::move(rhs);
    rest.initial_states.assign(from, from + 3);
    rest.start_times = {problem_->save_times[save]};
    rest.save_times.assign(problem_->save_times.begin() + static_cast<std::ptrdiff_t>(save),
                           problem_->save_times.end());
    const std::vector<double> way = numbers_of(ode::solve(rest, steps())).states;
    std::copy(way.begin(), way.end(), from);
  }
  static void expect_found(std::vector<double> states, std::size_t trajectory, const std::string& what) {
    const Verdict verdict = judged(std::move(states));
    EXPECT_EQ(verdict.outcome, Outcome::disagree) << what << ": " << verdict.sentence;
    EXPECT_THAT(verdict.sentence, HasSubstr("trajectory " + std::to_string(trajectory) + " ")) << what;
  }

  static inline ode::Problem* problem_ = nullptr;
  static inline HeldEnsemble* ours_ = nullptr;
};

TEST_F(AcceptedSteps, that_rounding_chose_are_no_disagreement) {
  std::size_t alarms_by_members_alone = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const std::vector<double> states = states_by(ode::net(shuffled(lorenz_net(), seed)));
    const Verdict verdict = judged(states);
    EXPECT_EQ(verdict.outcome, Outcome::agree) << seed << ": " << verdict.sentence;
    if (judged(states, false).outcome == Outcome::agree) continue;
    ++alarms_by_members_alone;
    EXPECT_THAT(verdict.evidence->spread_tier.by_accepted_steps, Not(IsEmpty())) << seed;
  }
  EXPECT_GE(alarms_by_members_alone, 2u);
}

TEST_F(AcceptedSteps, hide_no_wrong_trajectory) {
  constexpr std::size_t kWrong = 4711;
  const Mlp net = lorenz_net();
  const std::vector<double> right = states_by(ode::net(shuffled(net, 1)));
  // In units of the components' extents over the ensemble.
  const std::vector<double> size = measure_scale(*ours_).size;
  for (const std::size_t save : {std::size_t{20}, std::size_t{50}, std::size_t{80}}) {
    std::vector<double> states = right;
    go_on(states, kWrong, save, problem_->rhs,
          [&](double u, std::size_t c) { return u + (c == 1 ? -0.01 : 0.01) * size[c]; });
    expect_found(std::move(states), kWrong, "one step off by 1 % of the size");
  }
  std::vector<double> states = right;
  for (const std::size_t save : {std::size_t{40}, std::size_t{70}}) {
    for (std::size_t c = 0; c < 3; ++c) at(states, kWrong, save)[c] *= 1.01;
  }
  expect_found(std::move(states), kWrong, "two save points off by 1 %");
  states = right;
  Mlp wrong = net;
  for (double& bias : wrong.layers[1].bias) bias += 0.1;
  go_on(states, kWrong, 0, ode::net(wrong), [](double u, std::size_t) { return u; });
  expect_found(std::move(states), kWrong, "parameters of its own");
  states = right;
  std::swap_ranges(at(states, kWrong, 0), at(states, kWrong + 1, 0), at(states, kWrong + 1, 0));
  EXPECT_EQ(judged(std::move(states)).outcome, Outcome::disagree) << "swapped with its neighbour";
}

TEST_F(AcceptedSteps, hide_no_wrong_net) {
  Mlp wrong = lorenz_net();
  for (double& weight : wrong.layers[1].weights) weight *= 1 + 1e-4;
  EXPECT_EQ(judged(states_by(ode::net(wrong))).outcome, Outcome::disagree);
}

}  // namespace
}  // namespace lockstep::agreement

// Where trajectories run together, members meet to the bit while another program's rounding goes on.
#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "lockstep/agreement/scale.h"
#include "lockstep/agreement/testing/ensembles.h"
#include "lockstep/agreement/verdict.h"
#include "lockstep/kernels/math/math.h"
#include "lockstep/ode/function.h"

namespace lockstep::agreement {
namespace {

ode::Options tenths() {
  ode::Options options = testing::fixed_rk4();
  options.dt = 0.1;
  return options;
}

// x' = sin(t) - 0.1 x: all trajectories come to one oscillation, which passes through zero at some save points.
ode::Problem driven(ode::Rhs rhs) {
  ode::Problem problem;
  problem.rhs = std::move(rhs);
  problem.end_times = {110};
  for (int k = 0; k <= 55; ++k) problem.save_times.push_back(2.0 * k);
  const Random random(1);
  for (std::uint64_t i = 0; i < 20; ++i) problem.initial_states.push_back(random.uniform(i, 0));
  return problem;
}

ode::Rhs oscillator() {
  return ode::function<1>("driven", [](auto t, const auto& u, const auto&, auto& du) {
    using T = std::decay_t<decltype(u[0])>;
    du[0] = T(math::sin(static_cast<double>(t))) - T(0.1) * u[0];
  });
}

// The same, rounded otherwise, and by a damping off by `error`.
ode::Rhs ported(double error) {
  return ode::function<1>(
      "driven, a port",
      [error](auto t, const auto& u, const auto&, auto& du) {
        using T = std::decay_t<decltype(u[0])>;
        du[0] = T(-(0.1 + error)) * (u[0] - T(10 * math::sin(static_cast<double>(t))));
        if (error != 0) du[0] = du[0] - T(10 * error * math::sin(static_cast<double>(t)));
      },
      std::to_string(error));
}

Verdict judge_port(double error) {
  const ode::Problem problem = driven(oscillator());
  const HeldEnsemble ours = testing::solved(problem, tenths());
  ode::Problem port = problem;
  port.rhs = ported(error);
  return judge(ours, HeldEnsemble(problem, numbers_of(ode::solve(port, tenths()))));
}

TEST(ContractingFlow, a_right_port_agrees_where_all_trajectories_pass_through_zero) {
  const Verdict verdict = judge_port(0);
  EXPECT_EQ(verdict.outcome, Outcome::agree) << verdict.sentence;
  EXPECT_FALSE(verdict.same_bits);
  // Else this shows nothing: somewhere the solution is small beside what it was before.
  const Scale& scale = verdict.evidence->scale;
  double least = 1;
  for (std::size_t k = 0; k < scale.magnitude.size(); ++k)
    least = std::min(least, scale.magnitude[k] / scale.largest_so_far[k]);
  EXPECT_LT(least, 0.01);
}

TEST(ContractingFlow, a_wrong_port_does_not) { EXPECT_EQ(judge_port(1e-13).outcome, Outcome::disagree); }

}  // namespace
}  // namespace lockstep::agreement

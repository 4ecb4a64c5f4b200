#include "lockstep/cli/trajectory_judgement.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::cli {
namespace {

// A curve of more points than are drawn, with jumps between points of the data and at some.
TEST(TrajectoryJudgement, draws_every_jump_of_a_long_curve) {
  constexpr std::size_t kPoints = 5000, kJumps = 50;
  constexpr double kStep = 0.002, kChange = 1;
  const ode::Rhs decay =
      ode::train_parameters(ode::differentiable_function<1, 1>(
                                "decay", [](auto, const auto& u, const auto& p, auto& du) { du[0] = -p[0] * u[0]; }),
                            {{.parameter = 0, .start = 0.5}});
  TrajectoryTable table;
  table.component_names = {"x"};
  table.lengths = {kPoints};
  for (std::size_t i = 0; i < kPoints; ++i) table.times.push_back(kStep * static_cast<double>(i));
  table.states.assign(kPoints, 1);
  table.impulses.emplace_back();
  for (std::size_t i = 0; i < kJumps; ++i) {
    const std::size_t point = 7 + 97 * i;
    const double time = table.times[point] + (i % 2 == 0 ? 0.25 * kStep : 0);
    table.impulses.front().push_back({time, 0, kChange});
  }
  ode::TrajectoryData data{.times = table.times, .states = table.states, .impulses = table.impulses.front()};
  const ode::Options options{.precision = Precision::f64, .threads = 1};
  const TrajectoryTable none;
  const Judgement judgement =
      judge_fit({decay, std::vector<double>{0.5}, options, {}}, {table, data, {}}, {none, {}, {}});
  ASSERT_EQ(judgement.curves.trajectories.size(), 1U);
  const FittedTrajectory& fitted = judgement.curves.trajectories.front();
  std::size_t jumps = 0;
  for (std::size_t i = 1; i < fitted.curve.size(); ++i) {
    if (fitted.curve_times[i] != fitted.curve_times[i - 1]) continue;
    EXPECT_EQ(fitted.curve_times[i], table.impulses.front()[jumps++].time);
    EXPECT_EQ(fitted.curve[i], fitted.curve[i - 1] + kChange);
  }
  EXPECT_EQ(jumps, kJumps);
  EXPECT_LT(fitted.curve.size(), kPoints);
}

// Points a minute apart, as seconds since 1970, of which six digits tell none from another.
TEST(TrajectoryJudgement, places_are_told_by_times_that_differ) {
  constexpr std::size_t kPoints = 100;
  constexpr double kStart = 1.7e9, kStep = 60;
  const ode::Rhs rest =
      ode::train_parameters(ode::differentiable_function<1, 1>(
                                "rest", [](auto, const auto& u, const auto& p, auto& du) { du[0] = p[0] * u[0]; }),
                            {{.parameter = 0, .start = 0}});
  TrajectoryTable table;
  table.component_names = {"x"};
  table.lengths = {kPoints};
  for (std::size_t i = 0; i < kPoints; ++i) table.times.push_back(kStart + kStep * static_cast<double>(i));
  table.states.assign(kPoints, 1);
  table.states[37] += 3;
  table.states[71] -= 2;
  table.impulses.emplace_back();
  const ode::TrajectoryData data{.times = table.times, .states = table.states};
  const ode::Options options{.precision = Precision::f64, .threads = 1};
  const TrajectoryTable none;
  const std::vector<double> weights{0.0};
  FittedEquations fitted{rest, weights, options, {}};
  fitted.huber_threshold = 1.345;
  fitted.thresholds = {0.1};
  const Judgement judgement = judge_fit(fitted, {table, data, {}}, {none, {}, {}});
  EXPECT_EQ(judgement.report.rows.front().largest_at, "t = 1700002220");
  EXPECT_NE(judgement.report.outliers.find("x at t = 1700002220 "), std::string::npos) << judgement.report.outliers;
  EXPECT_NE(judgement.report.outliers.find("x at t = 1700004260 "), std::string::npos) << judgement.report.outliers;
}

}  // namespace
}  // namespace lockstep::cli

#include "lockstep/agreement/comparable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "lockstep/agreement/testing/ensembles.h"
#include "lockstep/agreement/verdict.h"

namespace lockstep::agreement {
namespace {

// As `save = n` has them, product first; and numpy.arange(n) * dt + start, which numpy.linspace is alike.
std::vector<double> evenly(double start, double end, int intervals) {
  std::vector<double> times;
  for (int k = 0; k <= intervals; ++k) times.push_back(start + (end - start) * k / intervals);
  return times;
}
std::vector<double> arange(double start, double dt, int intervals) {
  std::vector<double> times;
  for (int k = 0; k <= intervals; ++k) times.push_back(k * dt + start);
  return times;
}

TEST(Comparable, save_times_may_differ_by_how_programs_compute_them) {
  const struct {
    double start, dt, end;
    int intervals;
  } grids[] = {
      {0, 0.2, 5, 25}, {0, 0.1, 100, 1000}, {-0.7, 0.01, 9.3, 1000}, {1e6, 1e-3, 1e6 + 1, 1000}, {3, -0.3, 0, 10}};
  for (const auto& [start, dt, end, intervals] : grids) {
    EXPECT_EQ(first_other_time(evenly(start, end, intervals), arange(start, dt, intervals)), std::nullopt) << dt;
  }
  const std::vector<double> times = evenly(0, 5, 25);
  EXPECT_NE(times, arange(0, 0.2, 25)) << "3 times 0.2 is 0.6000000000000001";
  std::vector<double> in_float(times), late(times);
  for (double& t : in_float) t = static_cast<float>(t);
  late[7] *= 1 + 1e-14;
  EXPECT_EQ(first_other_time(times, in_float), 1u);
  EXPECT_EQ(first_other_time(times, late), 7u);
  EXPECT_EQ(first_other_time(times, evenly(0, 4.8, 24)), 25u) << "another number of them";
  EXPECT_EQ(first_other_time({}, {}), std::nullopt);
}

TEST(Comparable, a_port_whose_times_were_computed_otherwise_is_judged) {
  ode::Problem problem = testing::lotka_volterra(20, 5);
  problem.save_times = evenly(0, 5, 25);
  const HeldEnsemble ours = testing::solved(problem, testing::fixed_rk4());
  Numbers numbers = numbers_of(ode::solve(problem, testing::fixed_rk4()));
  problem.save_times = arange(0, 0.2, 25);
  ASSERT_NE(problem.save_times, ours.times(0));
  const Verdict verdict = judge(ours, HeldEnsemble(problem, numbers));
  EXPECT_TRUE(verdict.same_bits) << verdict.sentence;
  problem.save_times[3] += 1e-9;
  EXPECT_THAT(judge(ours, HeldEnsemble(problem, numbers)).sentence,
              ::testing::HasSubstr("save times [3] differs, 0.6"));
}

}  // namespace
}  // namespace lockstep::agreement

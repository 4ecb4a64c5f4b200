// What a certificate holds, and how many of its members speak for a trajectory.
#include "lockstep/agreement/certificate.h"

#include <gmock/gmock.h>

#include <cmath>

#include "lockstep/agreement/detail/own_members.h"
#include "lockstep/agreement/testing/ensembles.h"

namespace lockstep::agreement {
namespace {

using testing::fixed_rk4;
using ::testing::SizeIs;

TEST(certificate, moves_each_component_by_four_to_seven_ulps) {
  ode::Problem problem = testing::lorenz(5, 1);
  problem.save_times = {0};
  problem.initial_states[0] = 0;  // moves by ulps of the largest component instead
  const Certificate certificate = make_certificate(problem, fixed_rk4(), {.samples = 3, .members = 2});
  EXPECT_THAT(certificate.trajectories, ::testing::ElementsAre(0, 1, 3));
  ASSERT_THAT(certificate.states, SizeIs(2 * 3 * 3));
  for (std::size_t s = 0; s < 3; ++s) {
    for (std::size_t c = 0; c < 3; ++c) {
      const double from = problem.initial_states[certificate.trajectories[s] * 3 + c];
      const double moved = std::abs(certificate.states_of(1, s)[c] - from);
      const double ulp = std::abs(from) * 0x1p-52;  // at most twice the true one
      if (s == 0 && c == 0) {
        EXPECT_GT(moved, 0);
        EXPECT_LE(moved, 7 * 0x1p-52 * 50);
      } else {
        EXPECT_GE(moved, 2 * ulp);
        EXPECT_LE(moved, 7 * ulp);
      }
    }
  }
}

TEST(own_members, count_as_witnesses_once) {
  EXPECT_EQ(witnesses({}), 0u);
  EXPECT_EQ(witnesses({0, 0, 0}), 0u);
  EXPECT_EQ(witnesses({3, 0, 1, 3, 1, 2}), 3u);
}

TEST(own_members, allow_more_where_they_are_few_or_trajectories_many) {
  EXPECT_NEAR(allowed_alone(8, 100), 100, 1e-9);
  EXPECT_EQ(allowed_alone(16, 100), allowed_alone(8, 100));
  EXPECT_NEAR(allowed_alone(8, 1'000'000), 100 * std::pow(100, 1.0 / 8), 1e-9);
  for (std::size_t n = 1; n < 8; ++n) EXPECT_GT(allowed_alone(n, 100), allowed_alone(n + 1, 100)) << n;
  EXPECT_GT(allowed_alone(2, 100), 1e5);  // 1/r^2 is a long tail
  EXPECT_TRUE(std::isinf(allowed_alone(0, 100)));
}

}  // namespace
}  // namespace lockstep::agreement

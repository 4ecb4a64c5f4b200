#include "lockstep/cli/plot/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

TEST(Sweep, spacing_is_what_the_values_say) {
  EXPECT_EQ(spacing_of({0, 0.1, 0.2, 0.3}), ValueSpacing::even);
  EXPECT_EQ(spacing_of({0.1, 1, 10}), ValueSpacing::logarithmic);
  EXPECT_EQ(spacing_of({1, 1.2599210499, 1.587401052, 2}), ValueSpacing::logarithmic);
  EXPECT_EQ(spacing_of({0.5, 1, 1.7, 4}), ValueSpacing::uneven);
  EXPECT_EQ(spacing_of({-10, -1, -0.1}), ValueSpacing::uneven);
  EXPECT_EQ(spacing_of({1, 100}), ValueSpacing::even);
  EXPECT_EQ(spacing_of({7}), ValueSpacing::even);
}

TEST(Sweep, ticks_are_round_numbers_within_the_range) {
  const auto near = [](const std::vector<double>& expected) { return Pointwise(DoubleNear(1e-12), expected); };
  EXPECT_THAT(round_ticks(0.5, 2, false, 5), near({0.5, 1, 1.5, 2}));
  EXPECT_THAT(round_ticks(0, 10, false, 9), near({0, 2, 4, 6, 8, 10}));
  EXPECT_THAT(round_ticks(0.1, 100, true, 9), near({0.1, 1, 10, 100}));
  EXPECT_THAT(round_ticks(1e-12, 1, true, 5), near({1e-12, 1e-9, 1e-6, 1e-3, 1}));
  EXPECT_THAT(round_ticks(1, 10, true, 9), near({1, 2, 5, 10}));
  EXPECT_THAT(round_ticks(1, 4, true, 9), near({1, 1.5, 2, 2.5, 3, 3.5, 4}));
  EXPECT_THAT(round_ticks(3, 3, false, 9), ElementsAre(3));
}

TEST(Sweep, a_grid_is_told_from_random_numbers) {
  EXPECT_TRUE(is_grid(21, 31, 651));
  EXPECT_TRUE(is_grid(21, 31, 400));  // others are unfinished
  EXPECT_FALSE(is_grid(100, 100, 100));
  EXPECT_FALSE(is_grid(2, 2, 2));
  EXPECT_FALSE(is_grid(50, 1, 50));
}

}  // namespace
}  // namespace lockstep::cli

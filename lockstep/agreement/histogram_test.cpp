#include "lockstep/agreement/detail/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace lockstep::agreement {
namespace {

// Numbers from 1e-12 to 1, in no order.
std::vector<double> distances(std::size_t count) {
  std::vector<double> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back(std::pow(10, -12 * std::fmod(0.618 * static_cast<double>(i), 1)));
  return all;
}

TEST(HistogramTest, quantiles_of_few_and_of_many_distances_are_within_a_bin) {
  for (const std::size_t count : {1, 2, 3, 100, 255, 256, 257, 258, 1000}) {
    std::vector<double> all = distances(count);
    Histogram histogram;
    for (const double distance : all) histogram.add(distance);
    EXPECT_EQ(histogram.total(), count);
    std::ranges::sort(all);
    for (const double level : {0.0, 0.5, 0.9, 0.999, 1.0}) {
      const double exact = all[static_cast<std::size_t>(std::llround(level * static_cast<double>(count - 1)))];
      // Bins of an eighth of an octave: their middle is at most 1/16 of its lower end away.
      EXPECT_NEAR(histogram.quantile(level), exact, exact / 16) << count << " distances, level " << level;
    }
  }
}

TEST(HistogramTest, what_lies_outside_the_bins_is_counted) {
  EXPECT_EQ(Histogram().total(), 0u);
  EXPECT_EQ(Histogram().quantile(0.5), 0);
  for (const std::size_t count : {3, 3000}) {
    Histogram histogram;
    for (std::size_t i = 0; i < count / 3; ++i) {
      for (const double distance : {0.0, 1.0, std::numeric_limits<double>::infinity()}) histogram.add(distance);
    }
    EXPECT_EQ(histogram.total(), count);
    EXPECT_EQ(histogram.quantile(0), 0);
    EXPECT_NEAR(histogram.quantile(0.5), 1, 1.0 / 16);
    EXPECT_EQ(histogram.quantile(1), std::numeric_limits<double>::infinity());
  }
}

}  // namespace
}  // namespace lockstep::agreement

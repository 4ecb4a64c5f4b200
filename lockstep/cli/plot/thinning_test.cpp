#include "lockstep/cli/plot/thinning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

namespace lockstep::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;

TEST(Thinned, short_curves_keep_all_their_points) {
  EXPECT_THAT(thinned({{3, 1, 2}}, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(thinned({{3, 1, 2}}, 2), ElementsAre(0, 1, 2));
  EXPECT_EQ(bins_of(4000), 0);
  EXPECT_TRUE(thinned({{}}, 0).empty());
}

TEST(Thinned, of_each_bin_ends_and_extremes_stay_in_the_order_of_time) {
  const std::vector<double> curve{0, 5, 1, -7, 2, 3, /**/ 4, 4, 9, 8, 8, 6};
  EXPECT_EQ(bins_of(curve.size(), 8), 2);
  EXPECT_THAT(thinned({curve}, 2), ElementsAre(0, 1, 3, 5, 6, 8, 11));
  // Of two columns those of both.
  const std::vector<double> other{0, 0, 0, 0, 1, 0, /**/ 0, -1, 0, 0, 0, 0};
  EXPECT_THAT(thinned({curve, other}, 1), ElementsAre(0, 3, 4, 7, 8, 11));
  EXPECT_THAT(thinned({curve, other}, 2), ElementsAre(0, 1, 3, 4, 6, 7, 8, 11));
}

TEST(Thinned, a_spike_of_one_point_and_a_gap_of_one_stay) {
  std::vector<double> curve(200'001, 1.0);
  curve[77'777] = 50;
  curve[123'456] = NAN;
  const std::vector<std::size_t> drawn = thinned({curve}, bins_of(curve.size()));
  EXPECT_LE(drawn.size(), 4001);
  EXPECT_THAT(drawn, Contains(77'777));
  EXPECT_THAT(drawn, Contains(123'456));
  EXPECT_EQ(drawn.front(), 0);
  EXPECT_EQ(drawn.back(), 200'000);
  EXPECT_TRUE(std::ranges::is_sorted(drawn));
}

TEST(Thinned, bands_are_as_wide_as_their_widest_in_each_bin) {
  const Bands bands{{0, 1, 2, 3, 4, 5, 6, 7}, {-1, 1, -3, 2, -2, 4, 0, 0, /**/ NAN, NAN, 5, 6, 4, 5, NAN, NAN}};
  const Bands drawn = thinned_bands(bands, 7);  // a single bin
  EXPECT_THAT(drawn.times, ElementsAre(0, 7));
  EXPECT_THAT(drawn.quantiles, ElementsAre(-3, 6, -3, 6));
  EXPECT_EQ(thinned_bands(bands, 8).times, bands.times);
  const Bands none = thinned_bands(Bands{{0, 1}, {NAN, NAN, NAN, NAN}}, 1);
  EXPECT_TRUE(std::isnan(none.quantiles[0]) && std::isnan(none.quantiles[1])) << "a gap";
}

TEST(UnevenlyChosen, has_both_ends_and_no_stride) {
  const std::vector<std::size_t> some = unevenly_chosen(20'001, 400);
  EXPECT_EQ(some.size(), 400);
  EXPECT_EQ(some.front(), 0);
  EXPECT_EQ(some.back(), 20'000);
  EXPECT_EQ(std::ranges::adjacent_find(some, std::greater_equal<>()), some.end());
  // Of a wave of 50 points each part is met, where a stride of 50 would meet one.
  std::set<std::size_t> phases;
  for (const std::size_t i : some) phases.insert(i % 50);
  EXPECT_GT(phases.size(), 45);
  EXPECT_THAT(unevenly_chosen(3, 7), ElementsAre(0, 1, 2));
  EXPECT_TRUE(unevenly_chosen(0, 7).empty());
}

TEST(SampledTimes, are_all_where_there_is_memory_and_never_few) {
  EXPECT_EQ(sampled_times(721, 2000).size(), 721);
  EXPECT_EQ(sampled_times(20'001, 10'000).size(), 4000);
  EXPECT_EQ(sampled_times(20'001, 10'000'000).size(), 400);
}

TEST(TimesText, tells_what_is_left_out) {
  EXPECT_EQ(times_text(20'001, 20'001, 0), "");
  EXPECT_EQ(times_text(20'001, 20'001, 1000), "20,001 times in 1,000 bins");
  EXPECT_EQ(times_text(20'001, 666, 0), "666 of 20,001 times");
  EXPECT_EQ(times_text(200'001, 5000, 1000), "5,000 of 200,001 times in 1,000 bins");
}

}  // namespace
}  // namespace lockstep::cli

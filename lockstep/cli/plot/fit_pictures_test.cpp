#include "lockstep/cli/plot/fit_pictures.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The range of the vertical axis of the one row that is shown.
std::array<double, 2> shown(const std::vector<double>& data, const std::vector<double>& curve) {
  FittedTrajectory of{.title = "training: trajectory 0", .times = {0, 1, 2}, .data = data};
  of.curve_times = {0, 1, 2};
  of.curve = curve;
  const Figure figure = fitted_curves({.labels = {"y"}, .time_label = "t", .trajectories = {of, of}}, "fit", "");
  std::array<double, 2> range{kNone, kNone};
  const std::size_t at = figure.script.find("set yrange [");
  if (at != std::string::npos) std::sscanf(figure.script.c_str() + at, "set yrange [%lf:%lf]", &range[0], &range[1]);
  return range;
}

TEST(FitPictures, what_was_measured_once_a_trajectory_is_seen_beside_its_curve) {
  const auto [low, high] = shown({kNone, kNone, 7}, {0, 1, 2});
  EXPECT_LT(low, 0);
  EXPECT_GT(low, -1);
  EXPECT_GT(high, 7);
  EXPECT_LT(high, 8);
  EXPECT_GT(shown({7, kNone, kNone}, {7, 100, 200})[1], 200) << "nor does one point flatten the curve";
}

TEST(FitPictures, a_curve_is_seen_where_nothing_was_measured) {
  const auto [low, high] = shown({kNone, kNone, kNone}, {10, 11, 12});
  EXPECT_LT(low, 10);
  EXPECT_GT(low, 9);
  EXPECT_GT(high, 12);
  EXPECT_LT(high, 13);
}

TEST(FitPictures, a_curve_far_from_the_data_does_not_flatten_them) { EXPECT_LT(shown({0, 1, 2}, {0, 1, 1000})[1], 4); }

}  // namespace
}  // namespace lockstep::cli

#include "lockstep/cli/plot/fit_pictures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "lockstep/cli/plot/loss_curve.h"

namespace lockstep::cli {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The range of the vertical axis of the one row that is shown.
std::array<double, 2> shown(const std::vector<double>& data, const std::vector<double>& curve) {
  FittedTrajectory of{.title = "training: trajectory 0", .times = {0, 1, 2}, .data = data};
  of.curve_times = {0, 1, 2};
  of.curve = curve;
  const Figure figure = fitted_curves({.names = {"y"}, .time_name = "t", .trajectories = {of, of}}, "fit", "");
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

TEST(FitPictures, what_is_near_a_large_number_has_it_taken_off) {
  FittedTrajectory of{
      .title = "training: trajectory 0", .times = {1e9, 1e9 + 1, 1e9 + 2}, .data = {101325.01, 101325.03, 101325.02}};
  of.curve_times = of.times;
  of.curve = of.data;
  const std::string script =
      fitted_curves({.names = {"p"}, .units = {"Pa"}, .time_name = "t", .time_unit = "s", .trajectories = {of}}, "fit",
                    "")
          .script;
  EXPECT_THAT(script, ::testing::HasSubstr("t − 1000000000 (s)"));
  EXPECT_THAT(script, ::testing::HasSubstr("'p − 101325 (Pa)'"));
  EXPECT_THAT(script, ::testing::HasSubstr("set xrange [ -0.12: 2.12]"));
  PredictedOutput output{.name = "p",
                         .unit = "Pa",
                         .summary = "",
                         .training_true = of.data,
                         .training_predicted = of.data,
                         .validation_true = {},
                         .validation_predicted = {}};
  const std::string scatter = predicted_over_true({output}, 1, "fit", "").script;
  EXPECT_THAT(scatter, ::testing::HasSubstr("'p − 101325 (Pa), data'"));
  EXPECT_THAT(scatter, ::testing::Not(::testing::HasSubstr("101325.01")));
}

TEST(LossCurve, a_loss_that_hardly_changes_is_drawn_from_a_round_number) {
  std::vector<train::CurvePoint> curve(3);
  for (std::size_t i = 0; i < 3; ++i) {
    curve[i].iteration = static_cast<std::int64_t>(i);
    curve[i].loss = curve[i].watched = 116.0991 + 0.0001 * static_cast<double>(2 - i);
  }
  const auto script = [&] { return loss_curve(curve, "fit", "", "loss", "", {""}).script; };
  EXPECT_THAT(script(), ::testing::HasSubstr("loss − 116.099"));
  EXPECT_THAT(script(), ::testing::Not(::testing::HasSubstr("set logscale y")));
  curve[0].loss = curve[0].watched = 1000;
  EXPECT_THAT(script(), ::testing::HasSubstr("set logscale y"));
  EXPECT_THAT(script(), ::testing::HasSubstr("116.0991"));
}

}  // namespace
}  // namespace lockstep::cli
